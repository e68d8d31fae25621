//! Splits a header section into field lines, strictly: CR LF ends a line and nothing else does.

use crate::headers::Line;
use crate::{Headers, is_token_byte, trailers};
use bytes::Bytes;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// What is wrong with a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLine {
    /// A byte that may not stand there, a folded line, or no name.
    Malformed,
    /// More lines than allowed.
    TooMany,
    /// A line longer than allowed.
    TooLong,
}

/// What to do with names that are tokens, but not of letters, digits and `-` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// `_` is an ordinary letter (`enable-underscores-in-headers`).
    pub underscores: bool,
    /// Other odd names are dropped, not passed on (`ignore-invalid-headers`).
    pub drop_odd: bool,
}

impl Names {
    /// Whether a field of this name is passed on.
    pub fn keep(self, name: &[u8]) -> bool {
        judge_name(name, self).is_ok_and(|judged| judged.keep)
    }
}

/// Where the head that starts `buffer` ends (after its empty line), looking at bytes from `scanned` on.
pub fn head_end(buffer: &[u8], scanned: usize) -> Option<usize> {
    // Preparing the search costs more than searching a head does.
    static EMPTY_LINE: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));
    let from = scanned.saturating_sub(3);
    let rest = buffer.get(from..).filter(|rest| rest.len() >= 4)?;
    EMPTY_LINE.find(rest).map(|at| from + at + 4)
}

/// Whether a line ends without CR.
pub fn has_bare_newline(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r')
}

/// Bounds of a header section.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Field lines.
    pub count: usize,
    /// Bytes of one line.
    pub line: usize,
}

/// Reads field lines up to the empty line that ends `section`. All of it is there.
pub fn parse_fields(section: &Bytes, bounds: Bounds, names: Names) -> Result<Headers, BadLine> {
    let mut headers = Headers::of(section.clone());
    let mut lines = 0;
    let mut start = 0;
    for newline in memchr::memchr_iter(b'\n', section) {
        if newline == start || section[newline - 1] != b'\r' {
            return Err(BadLine::Malformed);
        }
        let end = newline - 1;
        if end == start {
            break;
        }
        lines += 1;
        if lines > bounds.count {
            return Err(BadLine::TooMany);
        }
        if end - start > bounds.line {
            return Err(BadLine::TooLong);
        }
        push_field(&mut headers, section, start, end, names)?;
        start = newline + 1;
    }
    Ok(headers)
}

fn push_field(
    headers: &mut Headers,
    section: &[u8],
    start: usize,
    end: usize,
    names: Names,
) -> Result<(), BadLine> {
    let line = &section[start..end];
    let plain = line.iter().position(|&byte| !PLAIN[usize::from(byte)]).unwrap_or(line.len());
    let (colon, keep) = match line.get(plain) {
        Some(b':') if plain > 0 => (Some(plain), true),
        _ => odd_name(line, names)?,
    };
    let name_end = start + colon.unwrap_or(line.len());
    let (value, end) = match colon {
        Some(colon) => {
            let value = trim_optional_space(&line[colon + 1..]);
            (name_end + 1 + value.start, name_end + 1 + value.end)
        }
        None => (end, end),
    };
    // Short values are looked through faster than a search is set up.
    let is_bad = |any: bool, &byte: &u8| any | (byte == b'\r') | (byte == 0);
    if section[value..end].iter().fold(false, is_bad) {
        return Err(BadLine::Malformed);
    }
    if keep {
        headers.found(Line { added: false, start, name_end, value, end });
    }
    Ok(())
}

/// Where the colon of a line is that does not begin with a usual name, if it has one, and whether the field is passed
/// on.
fn odd_name(line: &[u8], names: Names) -> Result<(Option<usize>, bool), BadLine> {
    let Some(colon) = memchr::memchr(b':', line) else {
        // nginx takes a lone word for a name without value (recording protocol/header-lines); the rest is refused.
        if !line.iter().all(|&byte| is_token_byte(byte)) {
            return Err(BadLine::Malformed);
        }
        return Ok((None, judge_name(line, names)?.keep));
    };
    Ok((Some(colon), judge_name(&line[..colon], names)?.keep))
}

/// Letters, digits and `-`: nearly all names have nothing else.
static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'-';
        byte += 1;
    }
    table
};

struct Judged {
    keep: bool,
}

/// Control bytes and spaces in a name are an attack or a folded line; other bytes make it odd (nginx: invalid_header).
fn judge_name(name: &[u8], names: Names) -> Result<Judged, BadLine> {
    if name.iter().fold(!name.is_empty(), |all, &byte| all & PLAIN[usize::from(byte)]) {
        return Ok(Judged { keep: true });
    }
    if name.is_empty() || name.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        return Err(BadLine::Malformed);
    }
    let underscored = |byte: u8| PLAIN[usize::from(byte)] || byte == b'_';
    if name.iter().all(|&byte| underscored(byte)) {
        return Ok(Judged { keep: names.underscores || !names.drop_odd });
    }
    Ok(Judged { keep: !names.drop_odd && name.iter().all(|&byte| is_token_byte(byte)) })
}

/// Where a value is without spaces and tabs at both ends (RFC 9110 section 5.6.3).
fn trim_optional_space(value: &[u8]) -> Range<usize> {
    let is_space = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let start = value.iter().position(|byte| !is_space(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_space(byte)).map_or(start, |at| at + 1);
    start..end
}

/// Reads a trailer section, without what may not stand in one.
pub(super) fn parse_trailers(section: &Bytes, bounds: Bounds) -> Result<Headers, BadLine> {
    let mut headers = parse_fields(section, bounds, Names { underscores: true, drop_odd: false })?;
    trailers::strip(&mut headers);
    Ok(headers)
}
