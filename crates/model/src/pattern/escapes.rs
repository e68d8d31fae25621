//! What stands behind a backslash, as PCRE reads it; and the bytes of a pattern, one after the other.

use super::error::PatternError;
use super::sets::Set;

/// What is left of a pattern's text.
pub(super) struct Reader<'s>(pub(super) &'s [u8]);

impl<'s> Reader<'s> {
    pub(super) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Goes past this text, if it is the next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text.as_bytes());
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// What comes before this text, which is passed, too.
    pub(super) fn up_to(&mut self, text: &str) -> Option<&'s [u8]> {
        let found = self.0.windows(text.len()).position(|part| part == text.as_bytes())?;
        let before = &self.0[..found];
        self.0 = &self.0[found + text.len()..];
        Some(before)
    }

    /// The same; all that is left where the text does not come.
    pub(super) fn before(&mut self, text: &str) -> &'s [u8] {
        self.up_to(text).unwrap_or_else(|| std::mem::take(&mut self.0))
    }

    /// The next bytes of a kind, `most` of them.
    pub(super) fn all(&mut self, most: usize, kind: impl Fn(u8) -> bool) -> &'s [u8] {
        let end = self.0.iter().take(most).position(|byte| !kind(*byte));
        let (found, rest) = self.0.split_at(end.unwrap_or(self.0.len().min(most)));
        self.0 = rest;
        found
    }

    /// The digits that are next, as a number.
    pub(super) fn number(&mut self) -> Option<usize> {
        value(self.all(usize::MAX, |byte| byte.is_ascii_digit()), 10)
    }

    /// The name that is next.
    pub(super) fn name(&mut self) -> Option<&'s str> {
        let name = self.all(usize::MAX, |byte| byte == b'_' || byte.is_ascii_alphanumeric());
        let starts = name.first().is_some_and(|first| !first.is_ascii_digit());
        str::from_utf8(name).ok().filter(|_| starts)
    }
}

/// What an escape stands for.
pub(super) enum Escaped {
    /// One byte.
    Byte(u8),
    /// One of several.
    Set(Set),
    /// What a group has matched.
    Group(usize),
    /// What only makes sense outside of sets.
    Letter(u8),
}

/// Reads on behind a backslash; `groups` have been opened before it, none where it stands in a set.
pub(super) fn escaped(
    reader: &mut Reader<'_>,
    groups: Option<usize>,
) -> Result<Escaped, PatternError> {
    let Some(byte) = reader.next() else { return Err(wrong("it ends with a backslash")) };
    Ok(match byte {
        b'a' => Escaped::Byte(0x07),
        b'b' if groups.is_none() => Escaped::Byte(0x08),
        b'e' => Escaped::Byte(0x1b),
        b'f' => Escaped::Byte(0x0c),
        b'n' => Escaped::Byte(b'\n'),
        b'r' => Escaped::Byte(b'\r'),
        b't' => Escaped::Byte(b'\t'),
        b'c' => match reader.next() {
            Some(key @ b' '..=b'~') => Escaped::Byte(key.to_ascii_uppercase() ^ 0x40),
            _ => return Err(wrong("\\c is followed by no character")),
        },
        b'o' if reader.take("{") => braced(reader, 8)?,
        b'x' if reader.take("{") => braced(reader, 16)?,
        // No digit is the byte 0.
        b'x' => one(value(reader.all(2, |byte| byte.is_ascii_hexdigit()), 16).unwrap_or(0))?,
        b'0' => one(value(reader.all(2, is_octal), 8).unwrap_or(0))?,
        b'1'..=b'9' => numbered(byte, reader, groups)?,
        _ => match Set::of_letter(byte) {
            Some(set) => Escaped::Set(set),
            None if byte.is_ascii_alphanumeric() => Escaped::Letter(byte),
            None => Escaped::Byte(byte),
        },
    })
}

/// A number is a group, or octal where there are too few of them.
fn numbered(
    first: u8,
    reader: &mut Reader<'_>,
    groups: Option<usize>,
) -> Result<Escaped, PatternError> {
    let before = reader.0;
    let digit = usize::from(first - b'0');
    if let Some(groups) = groups {
        let digits = reader.all(usize::MAX, |byte| byte.is_ascii_digit());
        let number = value(&[&[first], digits].concat(), 10).unwrap_or(usize::MAX);
        if number < 10 || number <= groups {
            return Ok(Escaped::Group(number));
        }
        if i32::try_from(number).is_err() {
            return Err(wrong(&format!("{number} is the number of no group")));
        }
        reader.0 = before;
    }
    if !is_octal(first) {
        return Err(wrong(&format!("\\{digit} is neither a group nor octal")));
    }
    let digits = reader.all(2, is_octal);
    one(value(&[&[first], digits].concat(), 8).unwrap_or(usize::MAX))
}

/// The number up to a brace.
fn braced(reader: &mut Reader<'_>, base: u32) -> Result<Escaped, PatternError> {
    let inner = reader.up_to("}").unwrap_or_default();
    one(value(inner, base).ok_or_else(|| wrong("braces of a \\x or \\o hold no number"))?)
}

fn one(value: usize) -> Result<Escaped, PatternError> {
    let byte = u8::try_from(value).map_err(|_| wrong(&format!("{value} is no byte")));
    byte.map(Escaped::Byte)
}

fn is_octal(byte: u8) -> bool {
    matches!(byte, b'0'..=b'7')
}

fn value(digits: &[u8], base: u32) -> Option<usize> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(base);
    let digits =
        str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| is_digit(&b)))?;
    (!digits.is_empty()).then(|| usize::from_str_radix(digits, base).unwrap_or(usize::MAX))
}

pub(super) fn wrong(reason: &str) -> PatternError {
    PatternError::wrong(reason)
}

/// What PCRE knows.
pub(super) fn unsupported(reason: &str) -> PatternError {
    PatternError::of_ours(reason)
}
