//! Responses.

use super::{Field, Framing, Read, body, head, show, values};

/// A response as a strict reader understands it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The three digits.
    pub status: u16,
    /// The fields in order.
    pub fields: Vec<Field>,
    /// The content.
    pub body: Vec<u8>,
    /// Only the end of the connection ended the content.
    pub until_close: bool,
    /// What is legal but not written in the canonical way.
    pub blemishes: Vec<String>,
}

impl Response {
    /// Whether it announces the end of the connection.
    pub fn closes(&self) -> bool {
        values(&self.fields, "connection").iter().any(|v| v.eq_ignore_ascii_case(b"close"))
    }
}

/// The response to a request with this method at the start of these bytes; `closed` when no more will come.
pub fn read_response(bytes: &[u8], method: &str, closed: bool) -> Read<Response> {
    match attempt(bytes, method, closed) {
        Ok(read) => read,
        Err(why) => Read::Illegal(why),
    }
}

fn attempt(bytes: &[u8], method: &str, closed: bool) -> Result<Read<Response>, String> {
    let Some((lines, used)) = head::lines(bytes)? else { return Ok(Read::More { head: false }) };
    let Some((first, rest)) = lines.split_first() else {
        return Err("an empty line instead of a response".to_owned());
    };
    let (status, minor) = status_line(first)?;
    let fields = head::fields(rest)?;
    let mut blemishes = Vec::new();
    let bodiless = method == "HEAD" || matches!(status, 100..=199 | 204 | 304);
    let framing = match values(&fields, "transfer-encoding").last() {
        // RFC 9112 6.3: a response whose last coding is not chunked ends with the connection.
        Some(last) if !last.eq_ignore_ascii_case(b"chunked") && !bodiless => Framing::UntilClose,
        _ => head::framing(&fields, minor, &mut blemishes)?.unwrap_or(Framing::UntilClose),
    };
    if matches!(status, 100..=199 | 204) && !matches!(framing, Framing::UntilClose) {
        return Err(format!("a {status} that announces a body"));
    }
    let framing = if bodiless { Framing::Length(0) } else { framing };
    let Some((body, length)) = body::read(&bytes[used..], framing, closed)? else {
        return Ok(Read::More { head: true });
    };
    blemishes.extend(body.blemishes);
    let until_close = framing == Framing::UntilClose;
    let response = Response { status, fields, body: body.bytes, until_close, blemishes };
    Ok(Read::Whole(response, used + length))
}

fn status_line(line: &[u8]) -> Result<(u16, u8), String> {
    let bad = || format!("the status line {:?}", show(line));
    let minor = match line.get(..9) {
        Some(b"HTTP/1.1 ") => 1,
        Some(b"HTTP/1.0 ") => 0,
        _ => return Err(bad()),
    };
    let digits = line[9..].split(|byte| *byte == b' ').next().unwrap_or_default();
    let status = str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    match status {
        Some(status @ 100..=599) if digits.len() == 3 => Ok((status, minor)),
        _ => Err(bad()),
    }
}
