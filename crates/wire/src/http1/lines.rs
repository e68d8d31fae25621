//! Splits a header section into field lines, strictly: CR LF ends a line and nothing else does.

use crate::controls::before_control;
use crate::headers::Reading;
use crate::names::bit;
use crate::{Headers, NameSet, is_token_byte, trailers};
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

/// Whether an empty line stands behind another line, however these end, looking at bytes from `scanned` on.
pub fn has_empty_line(bytes: &[u8], scanned: usize) -> bool {
    let rest = bytes.get(scanned.saturating_sub(2)..).unwrap_or_default();
    let is_followed = |at: usize| matches!(&rest[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]);
    memchr::memchr_iter(b'\n', rest).any(is_followed)
}

/// Whether a line ends without CR, looking at bytes from `scanned` on.
pub(super) fn has_bare_newline(bytes: &[u8], scanned: usize) -> bool {
    let rest = bytes.get(scanned..).unwrap_or_default();
    memchr::memchr_iter(b'\n', rest)
        .map(|at| scanned + at)
        .any(|at| at == 0 || bytes[at - 1] != b'\r')
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
    match usual_fields(section, bounds) {
        Some(headers) => Ok(headers),
        None => read(section, bounds, names),
    }
}

/// The fields of a section in which there is nothing to judge, as in nearly all of them. Each byte is looked at once.
pub(super) fn usual_fields(section: &Bytes, bounds: Bounds) -> Option<Headers> {
    const NONE: NameSet = NameSet::new(&[]);
    let usual = usual_from::<0>(section, 0, &NONE, bounds.count)?;
    (usual.longest <= bounds.line).then(|| usual.fields.of(section.clone()))
}

/// A head in whose lines there is nothing to judge: names are plain, and values have no control bytes but tabs. What
/// its first line says, and what its fields do, is for others.
#[derive(Debug)]
pub(super) struct Usual<const N: usize> {
    /// Bytes of the first line, which CR LF follows.
    pub line: usize,
    /// Where it ends, behind its empty line.
    pub end: usize,
    /// Bytes of the longest field line.
    pub longest: usize,
    /// All fields but those that were taken.
    fields: Reading,
    /// The values of those that were, each of which is there once at most.
    taken: [Option<Range<u32>>; N],
}

impl<const N: usize> Usual<N> {
    /// The value of a field that was taken, by its number.
    pub(super) fn taken(&self, number: usize) -> Option<Range<usize>> {
        let place = self.taken[number].as_ref()?;
        Some(place.start as usize..place.end as usize)
    }

    /// Whether it keeps to these bounds.
    pub(super) fn keeps(&self, bounds: Bounds) -> bool {
        let taken = self.taken.iter().flatten().count();
        self.longest <= bounds.line && self.fields.len() + taken <= bounds.count
    }

    /// The fields that were not taken. `head` is what it was found in.
    pub(super) fn fields(self, head: Bytes) -> Headers {
        self.fields.of(head)
    }
}

/// The head that starts `bytes`, if all of it is there and usual. It says where the values of `takes` are, which are
/// not among its fields; where one of them is there twice it is not usual, and no more than `most` lines are.
pub(super) fn usual<const N: usize>(
    bytes: &[u8],
    takes: &NameSet,
    most: usize,
) -> Option<Usual<N>> {
    let line = end_of_value(bytes, 0)?;
    Some(Usual { line, ..usual_from(bytes, line + 2, takes, most)? })
}

fn usual_from<const N: usize>(
    bytes: &[u8],
    mut start: usize,
    takes: &NameSet,
    most: usize,
) -> Option<Usual<N>> {
    // No place in it needs more bits.
    u32::try_from(bytes.len()).ok()?;
    let (mut fields, mut taken, mut longest) = (Reading::new(), [const { None }; N], 0);
    for _ in 0..=most {
        let line = bytes.get(start..)?;
        let colon = line.iter().position(|&byte| !PLAIN[usize::from(byte)])?;
        if colon == 0 {
            let end = start + 2;
            return line.starts_with(b"\r\n").then_some(Usual {
                line: 0,
                end,
                longest,
                fields,
                taken,
            });
        }
        if line[colon] != b':' {
            return None;
        }
        let end = end_of_value(line, colon + 1)?;
        longest = longest.max(end);
        let value = trim_optional_space(&line[..end], colon + 1);
        let whole = value.start == colon + 2 && line[colon + 1] == b' ' && value.end == end;
        let place = |at: usize| (start + at) as u32;
        let value = place(value.start)..place(value.end);
        let name = &line[..colon];
        let bit = bit(name);
        fields.named(bit);
        if let Some(which) = takes.position_by(bit, name) {
            if taken[which].replace(value).is_some() {
                return None;
            }
        } else {
            fields.found(place(0), place(colon), value, whole);
        }
        start += end + 2;
    }
    None
}

/// Where the CR LF stands that ends a value, if it has no other control byte than tabs.
fn end_of_value(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += before_control(line.get(at..)?);
        match line.get(at..)? {
            [b'\t', ..] => at += 1,
            [b'\r', b'\n', ..] => return Some(at),
            _ => return None,
        }
    }
}

/// The fields of any section, or the first thing that is wrong with it.
fn read(section: &Bytes, bounds: Bounds, names: Names) -> Result<Headers, BadLine> {
    let mut headers = Headers::of(section.clone());
    read_into(&mut headers, section, bounds, names)?;
    Ok(headers)
}

/// The fields before the first thing that is wrong with a section, which may also break off.
pub(super) fn fields_before_fault(section: &Bytes, bounds: Bounds, names: Names) -> Headers {
    let mut headers = Headers::of(section.clone());
    let _ = read_into(&mut headers, section, bounds, names);
    headers
}

fn read_into(
    headers: &mut Headers,
    section: &[u8],
    bounds: Bounds,
    names: Names,
) -> Result<(), BadLine> {
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
        push_field(headers, section, start..end, names)?;
        start = newline + 1;
    }
    Ok(())
}

fn push_field(
    headers: &mut Headers,
    section: &[u8],
    Range { start, end }: Range<usize>,
    names: Names,
) -> Result<(), BadLine> {
    let line = &section[start..end];
    let (colon, keep) = name(line, names)?;
    let value = match colon {
        Some(colon) => trim_optional_space(line, colon + 1),
        None => line.len()..line.len(),
    };
    if line[value.clone()].iter().any(|&byte| byte == b'\r' || byte == 0) {
        return Err(BadLine::Malformed);
    }
    if keep {
        let name_end = start + colon.unwrap_or(line.len());
        headers.found(start..name_end, start + value.start..start + value.end);
    }
    Ok(())
}

/// Where the colon of a line is, if it has one, and whether the field is passed on.
fn name(line: &[u8], names: Names) -> Result<(Option<usize>, bool), BadLine> {
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
    use super::{
        BadLine, Bounds, Names, has_bare_newline, has_empty_line, head_end, parse_fields, read,
        usual, usual_fields,
    };
    use crate::NameSet;
    use crate::http1::mended_head;
    use bytes::Bytes;

    fn judged(section: &[u8]) -> Result<usize, BadLine> {
        let names = Names { underscores: false, drop_odd: true };
        let bounds = Bounds { count: 3, line: 40 };
        parse_fields(&Bytes::copy_from_slice(section), bounds, names).map(|fields| fields.len())
    }

    #[test]
    fn a_head_in_pieces_is_looked_through_once() {
        let whole = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n";
        for cut in 0..whole.len() {
            assert_eq!(head_end(&whole[..cut], 0), None);
            assert_eq!(head_end(whole, cut), Some(whole.len()), "{cut}");
            assert!(!has_bare_newline(&whole[..cut], 0) && !has_bare_newline(whole, cut), "{cut}");
        }
        let bad = b"HTTP/1.1 200 OK\nA: b\r\n";
        assert!(
            has_bare_newline(bad, 0) && has_bare_newline(bad, 15) && !has_bare_newline(bad, 16)
        );
        assert!(has_bare_newline(b"\n", 0) && !has_bare_newline(b"", 1));
        for empty in [b"a\n\nb".as_slice(), b"a\n\r\nb", b"a\r\n\n", b"a\r\n\r\n"] {
            assert!((0..3).all(|scanned| has_empty_line(empty, scanned)), "{empty:?}");
        }
        for none in [b"a\nb\n".as_slice(), b"a\r\nb\r\n", b"a\n\r", b"\n", b""] {
            assert!(!has_empty_line(none, 0), "{none:?}");
        }
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
    fn what_is_read_at_once_is_what_is_read_line_by_line() {
        let names = Names { underscores: false, drop_odd: true };
        let bounds = Bounds { count: 3, line: 40 };
        let parts =
            ["A", "b-9_", ":", ": ", "\t", "\r\n", "\r", "\n", "\0", "1234567", "\u{e9}\u{7f}"];
        let mut at_once = 0;
        for number in 0..parts.len().pow(4) {
            let pick = |power: u32| parts[number / parts.len().pow(power) % parts.len()];
            let middle = [0, 1, 2, 3].map(pick).concat();
            let section = Bytes::from(format!("X: 12345\r\nAb:{middle}\r\n\r\nZ: 1\r\n\r\n"));
            if let Some(fields) = usual_fields(&section, bounds) {
                at_once += 1;
                assert_eq!(read(&section, bounds, names), Ok(fields), "{section:?}");
            }
            let head = [b"HTTP/1.1 200 OK\r\n", &section[..]].concat();
            if let Some(usual) = usual::<0>(&head, &NameSet::new(&[]), 3) {
                assert_eq!(head_end(&head, 0), Some(usual.end), "{section:?}");
                let line = memchr::memchr(b'\n', &head).map(|newline| newline - 1);
                assert_eq!(line, Some(usual.line), "{section:?}");
                assert_eq!(mended_head(&head), None, "{section:?}");
            }
        }
        assert!(at_once > parts.len().pow(3), "{at_once}");
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
