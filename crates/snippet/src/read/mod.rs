//! Arguments of directives, read into values as nginx reads them.

pub(crate) mod answers;
pub(crate) mod client;
pub(crate) mod guards;
pub(crate) mod headers;
pub(crate) mod upstreams;

use crate::Position;
use crate::level::Level;
use crate::mistake::shown;
use crate::syntax::{Bounds, Directive, Word};
use crate::table::is_heeded;
use crate::typed::{Regex, Template};
use crate::variables::{Names, groups};
use crate::{Mistake, Need, Needed, Note};
use model::{Pattern, is_of_connection};
use std::time::Duration;

/// What reading a directive may ask for.
pub(crate) struct Reader<'n> {
    /// The variables that there are.
    pub names: &'n Names,
    /// What has no effect.
    pub notes: Vec<Note>,
    /// What must be there where the snippet counts.
    pub needs: Vec<Need>,
    /// The regular expressions so far.
    pub patterns: Vec<Pattern>,
    /// Regular expressions that may still be compiled.
    pub expressions: usize,
    /// Those of them that may still be tried for endless backtracking, which takes milliseconds; all others only when
    /// they run.
    pub probes: usize,
    /// Headers that may still be said.
    headers: usize,
}

impl<'n> Reader<'n> {
    /// A reader of a snippet with these bounds.
    pub fn new(names: &'n Names, bounds: &Bounds, probes: usize) -> Self {
        let &Bounds { expressions, headers, .. } = bounds;
        let (notes, needs, patterns) = (Vec::new(), Vec::new(), Vec::new());
        Self { names, notes, needs, patterns, expressions, probes, headers }
    }

    /// Text with variables.
    pub fn template(&self, word: &Word) -> Result<Template, Mistake> {
        self.names.template(&word.text, word.at)
    }

    /// A regular expression, with the variables of its named groups.
    pub fn regex(
        &mut self,
        source: &str,
        ignore_case: bool,
        at: Position,
    ) -> Result<Regex, Mistake> {
        self.expressions = self.expressions.checked_sub(1).ok_or_else(|| {
            Mistake::refused(at, "more regular expressions than one snippet may have")
        })?;
        let pattern = Pattern::for_captures(source, ignore_case).map_err(|error| {
            let text = format!(
                "the regular expression \"{}\" cannot be read: {}",
                shown(source),
                error.reason
            );
            Mistake::refused(at, text)
        })?;
        let is_probed = self.probes > 0;
        self.probes = self.probes.saturating_sub(1);
        if is_probed && pattern.is_catastrophic() {
            let text = format!("the regular expression \"{}\" takes too many steps", shown(source));
            return Err(Mistake::refused(at, text));
        }
        self.patterns.push(pattern.clone());
        let named = groups(source).into_iter().filter_map(|(group, name)| Some((group, name?)));
        let names = named.map(|(group, name)| {
            let name = self.names.target(&format!("${name}"), at)?;
            Ok((group, name))
        });
        Ok(Regex { pattern, names: names.collect::<Result<_, _>>()? })
    }

    /// Counts a header that is set or taken away.
    pub fn header(&mut self, at: Position) -> Result<(), Mistake> {
        self.headers = self.headers.checked_sub(1).ok_or_else(|| {
            Mistake::refused(at, "more headers than the directives of one snippet may say")
        })?;
        Ok(())
    }

    /// Says what must be there.
    pub fn need(&mut self, directive: &Directive, what: Needed) {
        self.needs.push(Need::of(directive, what));
    }

    /// Says that something has no effect.
    pub fn note(&mut self, directive: &Directive, why: &'static str) {
        let (at, name) = (directive.at(), directive.name().to_owned());
        let note = Note { at, directive: name, why, is_heeded_there: false };
        // A directive may say the same of each of its words.
        let is_said = |last: &Note| (last.at, last.why) == (at, why);
        if !self.notes.last().is_some_and(is_said) {
            self.notes.push(note);
        }
    }

    /// The same of a directive at this level that means nothing here, and may mean something to nginx.
    pub fn idle(&mut self, level: Level, directive: &Directive, why: &'static str) {
        self.note(directive, why);
        if is_heeded(level, directive) {
            self.heeded_there();
        }
    }

    /// Nginx does something with what was noted last.
    pub fn heeded_there(&mut self) {
        if let Some(note) = self.notes.last_mut() {
            note.is_heeded_there = true;
        }
    }
}

/// Sets what may be said once.
pub(crate) fn once<T>(
    field: &mut Option<T>,
    directive: &Directive,
    value: T,
) -> Result<(), Mistake> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => {
            Err(Mistake::refused(directive.at(), format!("\"{}\" is said twice", directive.name())))
        }
    }
}

pub(crate) fn invalid(word: &Word, expected: &str) -> Mistake {
    Mistake::refused(word.at, format!("\"{}\" is no {expected}", shown(&word.text)))
}

/// `on` or `off`.
pub(crate) fn flag(word: &Word) -> Result<bool, Mistake> {
    match word.text.to_ascii_lowercase().as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(invalid(word, "\"on\" or \"off\"")),
    }
}

/// A whole number.
pub(crate) fn number(word: &Word) -> Result<u32, Mistake> {
    let number = word.text.parse().ok().filter(|_| is_digits(&word.text));
    number.ok_or_else(|| invalid(word, "number"))
}

/// A degree of compression.
pub(crate) fn level(word: &Word) -> Result<u32, Mistake> {
    number(word)
        .ok()
        .filter(|level| *level <= 11)
        .ok_or_else(|| invalid(word, "level of compression"))
}

/// Text as it is.
pub(crate) fn text(word: &Word) -> Result<String, Mistake> {
    Ok(word.text.clone())
}

/// Text in lower case.
pub(crate) fn lower(word: &Word) -> Result<String, Mistake> {
    Ok(word.text.to_ascii_lowercase())
}

/// `1.0` or `1.1`.
pub(crate) fn http_version(word: &Word) -> Result<bool, Mistake> {
    match word.text.as_str() {
        "1.0" => Ok(false),
        "1.1" => Ok(true),
        _ => Err(invalid(word, "version of HTTP; 1.0 and 1.1 are")),
    }
}

pub(crate) use guards::{limit_status, satisfy};

/// Bytes: `k` and `m` may follow.
pub(crate) fn size(word: &Word) -> Result<u64, Mistake> {
    bytes(&word.text, "kKmM").ok_or_else(|| invalid(word, "size"))
}

/// Bytes: `k`, `m` and `g` may follow.
pub(crate) fn offset(word: &Word) -> Result<u64, Mistake> {
    bytes(&word.text, "kKmMgG").ok_or_else(|| invalid(word, "size"))
}

pub(crate) fn bytes(text: &str, units: &str) -> Option<u64> {
    let number = text.strip_suffix(|c| units.contains(c)).unwrap_or(text);
    let shift = match text[number.len()..].to_ascii_lowercase().as_str() {
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => 0,
    };
    let number: u64 = number.parse().ok().filter(|_| is_digits(number))?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes <= i64::MAX as u64)
}

/// A time such as `60`, `1m30s` or `500ms`.
pub(crate) fn duration(word: &Word) -> Result<Duration, Mistake> {
    time(&word.text).ok_or_else(|| invalid(word, "time"))
}

/// Units that follow numbers, from the longest to the shortest; a number without one is seconds and the last.
pub(crate) fn time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 8] = [
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("M", 2_592_000_000),
        ("y", 31_536_000_000),
    ];
    let mut total: u64 = 0;
    let mut rest = text;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().ok()?;
        let after = &rest[end..];
        let unit = UNITS.iter().find(|(unit, _)| after.starts_with(unit));
        let (unit, milliseconds) = match (unit, after.is_empty()) {
            (Some((unit, milliseconds)), _) => (*unit, *milliseconds),
            (None, true) => ("", 1_000),
            (None, false) => return None,
        };
        if milliseconds >= last {
            return None;
        }
        last = milliseconds;
        total = total.checked_add(number.checked_mul(milliseconds)?)?;
        rest = after[unit.len()..].trim_start_matches(' ');
    }
    (!text.is_empty() && total <= i64::MAX as u64).then(|| Duration::from_millis(total))
}

/// All arguments as text.
pub(crate) fn words(_: &mut Reader<'_>, directive: &Directive) -> Result<Vec<String>, Mistake> {
    Ok(directive.arguments().iter().map(|word| word.text.clone()).collect())
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether this can be the name of a header.
pub(crate) fn is_token(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}

/// Whether a header may be called so; else it is noted: nginx sends it, and nobody takes it.
pub(crate) fn is_header(reader: &mut Reader<'_>, directive: &Directive, name: &str) -> bool {
    if !is_token(name) {
        reader.note(directive, "no header has this name; a colon or a blank is no part of one");
    }
    is_token(name)
}

/// Notes a header that is never a snippet's to say: it frames the message, or belongs to a connection. `free` are those
/// that are, among them.
pub(crate) fn note_framing(
    reader: &mut Reader<'_>,
    directive: &Directive,
    name: &str,
    free: &[&str],
) {
    let is_free = free.iter().any(|free| name.eq_ignore_ascii_case(free));
    let frames = is_of_connection(name.as_bytes()) || name.eq_ignore_ascii_case("trailer");
    if frames && !is_free {
        reader.note(
            directive,
            "how a message is framed, and what a connection is told, is never a snippet's to say",
        );
        reader.heeded_there();
    }
}

/// Text with variables that goes into a header: a value over several lines becomes one line (RFC 9112 section 5.2).
pub(crate) fn header_value(reader: &Reader<'_>, word: &Word) -> Result<Template, Mistake> {
    if !word.text.contains(['\r', '\n']) {
        return reader.template(word);
    }
    let lines = word.text.split(['\r', '\n']).map(str::trim).filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ");
    reader.template(&Word { text, at: word.at })
}
