//! Splits a header section into field lines, strictly: CR LF ends a line and nothing else does.

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
    // Nearly all sections are clean, which is found out for all of their bytes at once. Others are read once more.
    match read(section, bounds, names, true) {
        Ok((headers, end)) if is_clean(&section[..end]) => Ok(headers),
        _ => read(section, bounds, names, false).map(|(headers, _)| headers),
    }
}

/// The fields, and where they end. `clean`: no value can have a CR or a NUL.
fn read(
    section: &Bytes,
    bounds: Bounds,
    names: Names,
    clean: bool,
) -> Result<(Headers, usize), BadLine> {
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
        push_field(&mut headers, section, start..end, names, clean)?;
        start = newline + 1;
    }
    Ok((headers, start))
}

/// Whether lines that all end in CR LF have neither a CR nor a NUL besides: then there are as many of these two
/// together as there are lines. Many bytes are looked at in one instruction.
fn is_clean(lines: &[u8]) -> bool {
    let count = |part: &[u8]| {
        part.iter().fold(0_i8, |sum, &byte| {
            sum + i8::from(byte == b'\n') - i8::from(byte == b'\r') - i8::from(byte == 0)
        })
    };
    let parts = lines.chunks_exact(32);
    let rest = i64::from(count(parts.remainder()));
    parts.map(|part| i64::from(count(part))).sum::<i64>() + rest == 0
}

fn push_field(
    headers: &mut Headers,
    section: &[u8],
    Range { start, end }: Range<usize>,
    names: Names,
    clean: bool,
) -> Result<(), BadLine> {
    let line = &section[start..end];
    let plain = line.iter().position(|&byte| !PLAIN[usize::from(byte)]).unwrap_or(line.len());
    let (colon, keep) = match line.get(plain) {
        Some(b':') if plain > 0 => (Some(plain), true),
        _ => odd_name(line, names)?,
    };
    let value = match colon {
        Some(colon) => trim_optional_space(line, colon + 1),
        None => line.len()..line.len(),
    };
    if !clean && line[value.clone()].iter().any(|&byte| byte == b'\r' || byte == 0) {
        return Err(BadLine::Malformed);
    }
    if keep {
        let name_end = start + colon.unwrap_or(line.len());
        headers.found(start..name_end, start + value.start..start + value.end);
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

/// Where the value that follows `from` is without spaces and tabs at both ends (RFC 9110 section 5.6.3).
fn trim_optional_space(line: &[u8], from: usize) -> Range<usize> {
    let is_space = |byte: u8| byte == b' ' || byte == b'\t';
    let (mut start, mut end) = (from, line.len());
    while start < end && is_space(line[start]) {
        start += 1;
    }
    while start < end && is_space(line[end - 1]) {
        end -= 1;
    }
    start..end
}

/// Reads a trailer section, without what may not stand in one.
pub(super) fn parse_trailers(section: &Bytes, bounds: Bounds) -> Result<Headers, BadLine> {
    let mut headers = parse_fields(section, bounds, Names { underscores: true, drop_odd: false })?;
    trailers::strip(&mut headers);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::{BadLine, Bounds, Names, parse_fields};
    use bytes::Bytes;

    fn judged(section: &[u8]) -> Result<usize, BadLine> {
        let names = Names { underscores: false, drop_odd: true };
        let bounds = Bounds { count: 3, line: 40 };
        parse_fields(&Bytes::copy_from_slice(section), bounds, names).map(|fields| fields.len())
    }

    #[test]
    fn a_cr_or_a_nul_in_a_value_is_found_whatever_stands_around_it() {
        assert_eq!(judged(b"A: 1\r\nB:\r\nc_d: 3\r\n\r\n"), Ok(2));
        for bad in [&b"\r"[..], b"\0", b"\r\r", b"x\r", b"\0x", b"\n", b"\r\0\n"] {
            for behind in [&b"\r\n\r\n"[..], b"\r\nB: 2\r\n\r\n", b"\r\n\r\n\n\n", b"\n\r\n\n"] {
                let section = [b"A: ", bad, b"1", bad, b"2", behind].concat();
                assert_eq!(judged(&section), Err(BadLine::Malformed), "{section:?}");
            }
        }
    }

    #[test]
    fn what_is_wrong_first_is_told() {
        let lines = |count| "A: 1\r\n".repeat(count);
        assert_eq!(judged(format!("{}\r\n", lines(3)).as_bytes()), Ok(3));
        assert_eq!(judged(format!("{}\r\n", lines(4)).as_bytes()), Err(BadLine::TooMany));
        let odd = format!("A: \r1\r\n{}\r\n", lines(4));
        assert_eq!(judged(odd.as_bytes()), Err(BadLine::Malformed));
        let long = format!("{}A: {}\r\n\r\n", lines(2), "x".repeat(40));
        assert_eq!(judged(long.as_bytes()), Err(BadLine::TooLong));
    }
}
