//! Writes heads. Framing fields are always our own.

use super::framing::Framing;
use crate::controls::as_one_line;
use crate::{Clock, Headers, Interim, Outbox, Response, Version, reason};
use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;

/// How an answer is framed and what becomes of the connection.
pub struct Closing {
    /// How the body is delimited.
    pub framing: Framing,
    /// Whether the connection stays.
    pub keep_alive: bool,
}

/// Appends the head of an answer.
pub fn response_head(out: &mut BytesMut, response: &Response, closing: &Closing, clock: &Clock) {
    match &response.reason {
        None if response.status == StatusCode::OK => out.put_slice(b"HTTP/1.1 200 OK\r\n"),
        phrase => {
            out.put_slice(b"HTTP/1.1 ");
            out.put_slice(response.status.as_str().as_bytes());
            out.put_u8(b' ');
            let usual = || reason(response.status).as_bytes();
            out.put_slice(phrase.as_deref().unwrap_or_else(usual));
            out.put_slice(b"\r\n");
        }
    }
    if !response.headers.has("date") {
        clock.put_date(out);
    }
    fields(out, &response.headers);
    match (closing.framing, response.announced_length) {
        (Framing::Length(length), _) => content_length(out, length),
        // Whoever changes a status leaves the rest as it came.
        (Framing::None, Some(length)) if !says_no_length(response.status) => {
            content_length(out, length);
        }
        (Framing::Chunked, _) => field(out, b"Transfer-Encoding", b"chunked"),
        (Framing::None | Framing::Close, _) => {}
    }
    let upgraded = response.status == StatusCode::SWITCHING_PROTOCOLS;
    // The last line, and the end of the head.
    out.put_slice(match (upgraded, closing.keep_alive) {
        (true, _) => b"Connection: upgrade\r\n\r\n",
        (false, true) => b"Connection: keep-alive\r\n\r\n",
        (false, false) => b"Connection: close\r\n\r\n",
    });
}

/// Whether an answer of this status may say no length, not even that of another one (RFC 9110 section 8.6): whoever
/// counts it would take so many bytes from the next answer.
pub fn says_no_length(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT
}

/// Appends an interim answer.
pub fn interim(out: &mut BytesMut, interim: &Interim) {
    out.put_slice(b"HTTP/1.1 ");
    out.put_slice(interim.status.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(reason(interim.status).as_bytes());
    out.put_slice(b"\r\n");
    fields(out, &interim.headers);
    out.put_slice(b"\r\n");
}

/// Appends one field line; a value of several lines becomes one.
pub fn field(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.put_slice(name);
    out.put_slice(b": ");
    let from = out.len();
    out.put_slice(value);
    as_one_line(&mut out[from..]);
    out.put_slice(b"\r\n");
}

/// Appends one field line, of which `name` is all that stands before the value.
pub fn line(out: &mut BytesMut, name: &'static [u8], value: &[u8]) {
    out.put_slice(name);
    let from = out.len();
    out.put_slice(value);
    as_one_line(&mut out[from..]);
    out.put_slice(b"\r\n");
}

/// Appends field lines.
pub fn fields(out: &mut BytesMut, headers: &Headers) {
    headers.write(out);
}

/// Appends Content-Length.
pub fn content_length(out: &mut BytesMut, length: u64) {
    out.put_slice(b"Content-Length: ");
    out.put_slice(itoa::Buffer::new().format(length).as_bytes());
    out.put_slice(b"\r\n");
}

/// Queues a piece of a body as a chunk.
pub fn chunk(outbox: &mut Outbox, data: Bytes) {
    // One of no bytes would end the message (RFC 9112 section 7.1).
    if !data.is_empty() {
        outbox.push(format!("{:x}\r\n", data.len()));
        outbox.push(data);
        outbox.push(&b"\r\n"[..]);
    }
}

/// The last chunk with its trailers.
pub fn last_chunk(trailers: Option<&Headers>) -> Bytes {
    let mut out = BytesMut::from(&b"0\r\n"[..]);
    if let Some(trailers) = trailers {
        fields(&mut out, trailers);
    }
    out.put_slice(b"\r\n");
    out.freeze()
}

/// The framing of an answer towards a client of this version.
pub fn response_framing(response: &Response, version: Version, to_head: bool) -> Framing {
    use crate::Length;
    let status = response.status.as_u16();
    if to_head || status < 200 || status == 204 || status == 304 {
        return Framing::None;
    }
    match (response.body.length(), version) {
        (Length::Known(length), _) => Framing::Length(length),
        (Length::Unknown, Version::Http10) => Framing::Close,
        (Length::Unknown, _) => Framing::Chunked,
    }
}
