//! `add_header`, `expires` and the directives of headers-more.

use super::{Reader, header_value, invalid, is_digits, is_header, note_framing, time};
use crate::Mistake;
use crate::mistake::shown;
use crate::syntax::{Directive, Word};
use crate::typed::{
    AddHeader, Expires, HeaderPattern, InputAction, InputHeader, MoreAction, MoreHeader, Template,
};
use std::sync::Arc;

pub(crate) fn add_header(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Option<AddHeader>, Mistake> {
    let words = directive.arguments();
    let always = match words.get(2) {
        None => false,
        Some(word) if word.text == "always" => true,
        Some(word) => {
            return Err(invalid(word, "\"always\"; a value with blanks stands in quotes"));
        }
    };
    let (name, value) = (words[0].text.clone(), header_value(reader, &words[1])?);
    reader.header(words[0].at)?;
    let is_header = is_header(reader, directive, &name);
    note_framing(reader, directive, &name, &[]);
    Ok(is_header.then_some(AddHeader { name, value, always }))
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
    expires_of(&word.text, modified).ok_or_else(|| invalid(word, "time"))
}

/// Reads what follows `expires`, `modified` already said.
pub fn expires_of(text: &str, modified: bool) -> Option<Expires> {
    match text {
        "off" if !modified => return Some(Expires::Off),
        "epoch" if !modified => return Some(Expires::Epoch),
        "max" if !modified => return Some(Expires::Max),
        _ => {}
    }
    if let Some(daily) = text.strip_prefix('@') {
        let daily = time(daily).filter(|time| !modified && time.as_secs() <= 86_400)?;
        return Some(Expires::Daily(daily));
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let seconds = sign * i64::try_from(time(rest)?.as_secs()).ok()?;
    Some(match modified {
        true => Expires::Modified(seconds),
        false => Expires::After(seconds),
    })
}

/// What stands before the headers of a directive of headers-more.
#[derive(Default)]
struct Options<'d> {
    statuses: Arc<[u16]>,
    types: Arc<[String]>,
    flag: bool,
    headers: Vec<&'d Word>,
}

/// Reads options; `letters` are those that this directive has beside `-t`.
fn options<'d>(directive: &'d Directive, letters: &str) -> Result<Options<'d>, Mistake> {
    let mut options = Options::default();
    let (mut statuses, mut types) = (Vec::new(), Vec::new());
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
            "s" => statuses
                .extend(items.map(|item| status(item, value)).collect::<Result<Vec<_>, _>>()?),
            // Of requests the value is compared as it is.
            _ if letters.contains('s') => types.extend(items.map(str::to_ascii_lowercase)),
            _ => types.extend(items.map(str::to_owned)),
        }
    }
    (options.statuses, options.types) = (statuses.into(), types.into());
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

/// `Name: value`; the value is none if nothing follows the name, which is nothing where no header is called so.
fn header(
    reader: &mut Reader<'_>,
    directive: &Directive,
    word: &Word,
    free: &[&str],
) -> Result<Option<(String, Option<Template>)>, Mistake> {
    reader.header(word.at)?;
    let (name, value) = word.text.split_once(':').unwrap_or((&word.text, ""));
    let name = name.trim();
    if name.is_empty() {
        return Err(invalid(word, "header such as \"Name: value\""));
    }
    let value = Word { text: value.trim_start().to_owned(), at: word.at };
    let value = match value.text.is_empty() {
        true => None,
        false => Some(header_value(reader, &value)?),
    };
    note_framing(reader, directive, name, free);
    Ok(is_header(reader, directive, name).then(|| (name.to_owned(), value)))
}

fn pattern(name: &str) -> HeaderPattern {
    let start = name.strip_suffix('*');
    HeaderPattern { name: start.unwrap_or(name).to_ascii_lowercase(), wildcard: start.is_some() }
}

/// Reads every header of a directive of headers-more; those that no header is called by are left out. `free` are those
/// of the connection that may be said.
fn each<T>(
    reader: &mut Reader<'_>,
    directive: &Directive,
    letters: &str,
    free: &[&str],
    make: impl Fn((String, Option<Template>), &Options<'_>) -> T,
) -> Result<Vec<T>, Mistake> {
    let options = options(directive, letters)?;
    let mut found = Vec::new();
    for word in &options.headers {
        found.extend(header(reader, directive, word, free)?.map(|header| make(header, &options)));
    }
    Ok(found)
}

fn more(action: MoreAction, options: &Options<'_>) -> MoreHeader {
    MoreHeader {
        action,
        statuses: Arc::clone(&options.statuses),
        types: Arc::clone(&options.types),
    }
}

pub(crate) fn set(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<MoreHeader>, Mistake> {
    each(reader, directive, "sta", &[], |header, options| {
        let action = match header {
            (name, None) => MoreAction::Clear(pattern(&name)),
            (name, Some(value)) if options.flag => MoreAction::Append(name, value),
            (name, Some(value)) => MoreAction::Set(name, value),
        };
        more(action, options)
    })
}

pub(crate) fn clear(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<MoreHeader>, Mistake> {
    each(reader, directive, "st", &[], |(name, _), options| {
        more(MoreAction::Clear(pattern(&name)), options)
    })
}

pub(crate) fn set_input(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<InputHeader>, Mistake> {
    each(reader, directive, "tr", &["host", "upgrade"], |header, options| {
        let action = match header {
            (name, None) => InputAction::Clear(pattern(&name)),
            (name, Some(value)) if options.flag => InputAction::Replace(name, value),
            (name, Some(value)) => InputAction::Set(name, value),
        };
        InputHeader { action, types: Arc::clone(&options.types) }
    })
}

pub(crate) fn clear_input(
    reader: &mut Reader<'_>,
    directive: &Directive,
) -> Result<Vec<InputHeader>, Mistake> {
    each(reader, directive, "t", &["upgrade"], |(name, _), options| {
        let action = InputAction::Clear(pattern(&name));
        InputHeader { action, types: Arc::clone(&options.types) }
    })
}
