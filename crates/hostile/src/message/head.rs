//! Lines and fields of a head, and the framing that they announce.

use super::{Field, Framing, show, values};

/// Lines, and how many bytes they take with the empty one after them.
type Lines<'a> = (Vec<&'a [u8]>, usize);

/// The lines up to the empty one; none while the head is incomplete.
pub(super) fn lines(bytes: &[u8]) -> Result<Option<Lines<'_>>, String> {
    let mut lines = Vec::new();
    let mut start = 0;
    while let Some(length) = bytes[start..].iter().position(|byte| *byte == b'\n') {
        let line = &bytes[start..start + length];
        let Some(line) = line.strip_suffix(b"\r") else {
            return Err(format!("a line ends with a bare LF: {}", show(line)));
        };
        if let Some(bad) = line.iter().find(|byte| matches!(byte, b'\r' | 0)) {
            return Err(format!("byte {bad:#04x} inside the line {}", show(line)));
        }
        start += length + 1;
        if line.is_empty() {
            return Ok(Some((lines, start)));
        }
        lines.push(line);
    }
    Ok(None)
}

/// Name and value of each line.
pub(super) fn fields(lines: &[&[u8]]) -> Result<Vec<Field>, String> {
    lines.iter().map(|line| field(line)).collect()
}

fn field(line: &[u8]) -> Result<Field, String> {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return Err(format!("a field without a colon: {}", show(line)));
    };
    let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return Err(format!("a field name that is no token: {}", show(line)));
    }
    if value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return Err(format!("a control character in the value of {}", show(line)));
    }
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec()))
}

/// Which lines have more white space around their value than the one blank before it.
pub(super) fn padded(lines: &[&[u8]]) -> Vec<String> {
    let is_padded = |line: &&&[u8]| {
        let from = line.iter().position(|byte| *byte == b':').map_or(line.len(), |colon| colon + 1);
        let value = &line[from..];
        trim(value).len() != value.strip_prefix(b" ").unwrap_or(value).len()
    };
    lines.iter().filter(is_padded).map(|line| show(line)).collect()
}

/// Without the optional whitespace around it: spaces and tabs, nothing else.
fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = value.iter().position(|byte| !blank(byte)) else { return b"" };
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

/// RFC 9110 5.6.2.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What Transfer-Encoding and Content-Length say, if they say the same to every reader.
pub(super) fn framing(
    fields: &[Field],
    minor: u8,
    blemishes: &mut Vec<String>,
) -> Result<Option<Framing>, String> {
    let codings = values(fields, "transfer-encoding");
    let lengths = values(fields, "content-length");
    match (codings.as_slice(), lengths.as_slice()) {
        ([], []) => Ok(None),
        ([], [length]) => self::length(length, blemishes).map(Some),
        ([coding], []) if minor == 0 => {
            Err(format!("Transfer-Encoding {} in HTTP/1.0", show(coding)))
        }
        ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => {
            if *coding != b"chunked" {
                blemishes.push(format!("Transfer-Encoding written {}", show(coding)));
            }
            Ok(Some(Framing::Chunked))
        }
        ([coding], []) => Err(format!("Transfer-Encoding {}", show(coding))),
        (_, []) => Err(format!("{} lines of Transfer-Encoding", codings.len())),
        ([], _) => Err(format!("{} lines of Content-Length", lengths.len())),
        _ => Err("both Transfer-Encoding and Content-Length".to_owned()),
    }
}

fn length(value: &[u8], blemishes: &mut Vec<String>) -> Result<Framing, String> {
    let bad = || format!("Content-Length {:?}", show(value));
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(bad());
    }
    if value.len() > 1 && value[0] == b'0' {
        blemishes.push(bad());
    }
    let text = str::from_utf8(value).map_err(|_| bad())?;
    text.parse().map(Framing::Length).map_err(|_| bad())
}
