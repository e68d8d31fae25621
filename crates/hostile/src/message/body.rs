//! Bodies by length and in chunks.

use super::{Field, Framing, head, show};

/// A body that has been read to its end.
#[derive(Default)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) trailers: Vec<Field>,
    pub(super) blemishes: Vec<String>,
}

/// The body at the start of these bytes and how many it takes; none while it is incomplete.
pub(super) fn read(
    bytes: &[u8],
    framing: Framing,
    closed: bool,
) -> Result<Option<(Body, usize)>, String> {
    match framing {
        Framing::Chunked => chunks(bytes),
        Framing::UntilClose if closed => {
            let body = Body { bytes: bytes.to_vec(), ..Body::default() };
            Ok(Some((body, bytes.len())))
        }
        Framing::UntilClose => Ok(None),
        Framing::Length(length) => {
            let length = usize::try_from(length).map_err(|error| error.to_string())?;
            Ok(bytes
                .get(..length)
                .map(|part| (Body { bytes: part.to_vec(), ..Body::default() }, length)))
        }
    }
}

fn chunks(bytes: &[u8]) -> Result<Option<(Body, usize)>, String> {
    let mut body = Body::default();
    let mut at = 0;
    loop {
        let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') else {
            return match bytes[at..].first() {
                Some(byte) if !byte.is_ascii_hexdigit() => {
                    Err(format!("a chunk starts with {byte:#04x}"))
                }
                _ => Ok(None),
            };
        };
        let Some(line) = bytes[at..at + end].strip_suffix(b"\r") else {
            return Err(format!(
                "a chunk size ends with a bare LF: {}",
                show(&bytes[at..at + end])
            ));
        };
        at += end + 1;
        let size = size(line, &mut body.blemishes)?;
        if size == 0 {
            return trailers(bytes, at, body);
        }
        let Some(chunk) = bytes.get(at..at.saturating_add(size)) else { return Ok(None) };
        body.bytes.extend(chunk);
        at += size;
        match bytes.get(at..at + 2) {
            Some(b"\r\n") => at += 2,
            Some(other) => return Err(format!("{} instead of CRLF after a chunk", show(other))),
            None => return Ok(None),
        }
    }
}

fn size(line: &[u8], blemishes: &mut Vec<String>) -> Result<usize, String> {
    let bad = || format!("the chunk size line {:?}", show(line));
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (number, extension) = line.split_at(digits);
    if number.is_empty() || number.len() > 4096 {
        return Err(bad());
    }
    if !extension.is_empty() {
        let legal = extension.len() > 1
            && extension.len() < 4096
            && extension[0] == b';'
            && extension[1..].iter().all(|byte| head::is_token(*byte) || b"=\";".contains(byte))
            && extension.iter().filter(|byte| **byte == b'"').count() % 2 == 0
            && !extension.ends_with(b";");
        if !legal {
            return Err(bad());
        }
        blemishes.push(format!("a chunk extension {}", show(extension)));
    }
    if number.len() > 1 && number[0] == b'0' {
        blemishes.push(format!("leading zeros in the chunk size {}", show(number)));
    }
    let text = str::from_utf8(number).map_err(|_| bad())?;
    usize::from_str_radix(text, 16).ok().filter(|size| *size < usize::MAX / 2).ok_or_else(bad)
}

fn trailers(bytes: &[u8], at: usize, mut body: Body) -> Result<Option<(Body, usize)>, String> {
    let Some((lines, used)) = head::lines(&bytes[at..])? else { return Ok(None) };
    body.trailers = head::fields(&lines)?;
    for (name, value) in &body.trailers {
        if matches!(name.as_str(), "content-length" | "transfer-encoding" | "host" | "connection") {
            body.blemishes.push(format!("{name}: {} among the trailers", show(value)));
        }
    }
    Ok(Some((body, at + used)))
}
