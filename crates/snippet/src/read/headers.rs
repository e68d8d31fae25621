//! `add_header`, `expires` and the directives of headers-more.

use super::{Reader, header_name, header_value, invalid, is_digits, is_token, time};
use crate::Mistake;
use crate::mistake::shown;
use crate::syntax::{Directive, Word};
use crate::typed::{
    AddHeader, Expires, HeaderPattern, InputAction, InputHeader, MoreAction, MoreHeader, Template,
};

pub(crate) fn add_header(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<AddHeader, Mistake> {
    let words = directive.arguments();
    let always = match words.get(2) {
        None => false,
        Some(word) if word.text == "always" => true,
        Some(word) => {
            return Err(invalid(word, "\"always\"; a value with blanks stands in quotes"));
        }
    };
    Ok(AddHeader { name: header_name(&words[0])?, value: header_value(reader, &words[1])?, always })
}

pub(crate) fn expires(reader: &mut Reader<'_>, directive: &Directive) -> Result<Expires, Mistake> {
    let words = directive.arguments();
    let modified = words.len() == 2;
    if modified && words[0].text != "modified" {
        return Err(invalid(&words[0], "\"modified\""));
    }
    let word = &words[words.len() - 1];
    if word.text.contains('$') {
        return Ok(Expires::Variable { value: reader.template(word)?, modified });
    }
    Expires::read(&word.text, modified).ok_or_else(|| invalid(word, "time"))
}

impl Expires {
    /// Reads what follows `expires`, `modified` already said.
    pub fn read(text: &str, modified: bool) -> Option<Self> {
        match text {
            "off" if !modified => return Some(Self::Off),
            "epoch" if !modified => return Some(Self::Epoch),
            "max" if !modified => return Some(Self::Max),
            _ => {}
        }
        if let Some(daily) = text.strip_prefix('@') {
            let daily = time(daily).filter(|time| !modified && time.as_secs() <= 86_400)?;
            return Some(Self::Daily(daily));
        }
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let seconds = sign * i64::try_from(time(rest)?.as_secs()).ok()?;
        Some(match modified {
            true => Self::Modified(seconds),
            false => Self::After(seconds),
        })
    }
}

/// What stands before the headers of a directive of headers-more.
#[derive(Default)]
struct Options<'d> {
    statuses: Vec<u16>,
    types: Vec<String>,
    flag: bool,
    headers: Vec<&'d Word>,
}

/// Reads options; `letters` are those that this directive has beside `-t`.
fn options<'d>(directive: &'d Directive, letters: &str) -> Result<Options<'d>, Mistake> {
    let mut options = Options::default();
    let mut words = directive.arguments().iter();
    while let Some(word) = words.next() {
        let Some(letter) = word.text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            options.headers.push(word);
            continue;
        };
        if !letters.contains(letter) {
            return Err(Mistake::refused(
                word.at,
                format!("\"{}\" has no option \"{}\"", directive.name(), shown(&word.text)),
            ));
        }
        let is_flag = letter == "a" || letter == "r";
        if is_flag {
            options.flag = true;
            continue;
        }
        let value = words.next().ok_or_else(|| {
            Mistake::refused(word.at, format!("\"{}\" lacks its value", word.text))
        })?;
        let items = value.text.split_ascii_whitespace();
        match letter {
            "s" => options
                .statuses
                .extend(items.map(|item| status(item, value)).collect::<Result<Vec<_>, _>>()?),
            _ => options.types.extend(items.map(str::to_ascii_lowercase)),
        }
    }
    match options.headers.is_empty() {
        true => Err(Mistake::refused(
            directive.at(),
            format!("\"{}\" names no header", directive.name()),
        )),
        false => Ok(options),
    }
}

fn status(text: &str, word: &Word) -> Result<u16, Mistake> {
    let status = text.parse().ok().filter(|_| is_digits(text) && text.len() <= 3);
    status.ok_or_else(|| {
        invalid(word, "list of statuses with blanks between them; ranges do not exist")
    })
}

/// `Name: value`; the value is none if nothing follows the name.
fn header(reader: &Reader<'_>, word: &Word) -> Result<(String, Option<Template>), Mistake> {
    let (name, value) = word.text.split_once(':').unwrap_or((&word.text, ""));
    let name = name.trim();
    if !is_token(name) {
        return Err(invalid(word, "header such as \"Name: value\""));
    }
    let value = Word { text: value.trim_start().to_owned(), at: word.at };
    let value = match value.text.is_empty() {
        true => None,
        false => Some(header_value(reader, &value)?),
    };
    Ok((name.to_owned(), value))
}

fn pattern(name: &str) -> HeaderPattern {
    let start = name.strip_suffix('*');
    HeaderPattern { name: start.unwrap_or(name).to_ascii_lowercase(), wildcard: start.is_some() }
}

pub(crate) fn set(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<MoreHeader>, Mistake> {
    let options = options(directive, "sta")?;
    let read = |word: &&Word| {
        let action = match header(reader, word)? {
            (name, None) => MoreAction::Clear(pattern(&name)),
            (name, Some(value)) if options.flag => MoreAction::Append(name, value),
            (name, Some(value)) => MoreAction::Set(name, value),
        };
        Ok(MoreHeader { action, statuses: options.statuses.clone(), types: options.types.clone() })
    };
    options.headers.iter().map(read).collect()
}

pub(crate) fn clear(_: &mut Reader<'_>, directive: &Directive) -> Result<Vec<MoreHeader>, Mistake> {
    let options = options(directive, "st")?;
    let read = |word: &&Word| {
        let action = MoreAction::Clear(cleared(word)?);
        Ok(MoreHeader { action, statuses: options.statuses.clone(), types: options.types.clone() })
    };
    options.headers.iter().map(read).collect()
}

/// The name of a header that is taken away; what may follow a colon does not matter.
fn cleared(word: &Word) -> Result<HeaderPattern, Mistake> {
    let name = word.text.split(':').next().unwrap_or_default().trim();
    match is_token(name) {
        true => Ok(pattern(name)),
        false => Err(invalid(word, "name of a header")),
    }
}

pub(crate) fn set_input(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<InputHeader>, Mistake> {
    let options = options(directive, "tr")?;
    let read = |word: &&Word| {
        let action = match header(reader, word)? {
            (name, None) => InputAction::Clear(pattern(&name)),
            (name, Some(value)) if options.flag => InputAction::Replace(name, value),
            (name, Some(value)) => InputAction::Set(name, value),
        };
        Ok(InputHeader { action, types: options.types.clone() })
    };
    options.headers.iter().map(read).collect()
}

pub(crate) fn clear_input(
    _: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<InputHeader>, Mistake> {
    let options = options(directive, "t")?;
    let read = |word: &&Word| {
        Ok(InputHeader { action: InputAction::Clear(cleared(word)?), types: options.types.clone() })
    };
    options.headers.iter().map(read).collect()
}
