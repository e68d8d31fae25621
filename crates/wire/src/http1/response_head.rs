//! Reads the head of an upstream's answer; whatever could be understood differently by somebody else makes it a 502.

use super::framing::{Framing, number};
use super::lines::{Bounds, Names, Usual, parse_fields, usual};
use crate::{Headers, NameSet, Version};
use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};

/// Fields that say how the body is delimited: they are read here, and written anew.
const FRAMING: NameSet = NameSet::new(&["content-length", "transfer-encoding"]);

/// Field lines of an answer.
const LINES: usize = 256;

/// The head of an answer that is unambiguous.
#[derive(Debug)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The reason phrase, if it is not the usual one.
    pub reason: Option<Box<[u8]>>,
    /// All fields but those of the framing.
    pub headers: Headers,
    /// How the body is delimited.
    pub framing: Framing,
    /// Content-Length where there is no body (HEAD, 304).
    pub announced_length: Option<u64>,
    /// Whether the connection may be used again.
    pub keep_alive: bool,
}

/// An answer that is not to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadResponse;

/// Reads a whole head: the answer to a request with `method`.
pub fn parse_response(head: &Bytes, method: &Method) -> Result<ResponseHead, BadResponse> {
    match usual(head, &FRAMING, LINES) {
        Some(usual) => read_usual(head.clone(), usual, method),
        None => read_any(head, method),
    }
}

/// The same of a head that starts `buffer`, of at most so many bytes. It is cut off where there is nothing unusual in
/// it; none, with all bytes where they are, if there is, or if it is not whole.
#[inline]
pub fn cut_response(
    buffer: &mut BytesMut,
    most: usize,
    method: &Method,
) -> Option<Result<ResponseHead, BadResponse>> {
    let usual = usual(&buffer[..buffer.len().min(most)], &FRAMING, LINES)?;
    Some(read_usual(buffer.split_to(usual.end).freeze(), usual, method))
}

#[inline]
fn read_usual(head: Bytes, usual: Usual<2>, method: &Method) -> Result<ResponseHead, BadResponse> {
    let first = status_line(&head[..usual.line])?;
    let value = |number| usual.taken(number).map(|place| &head[place]).into_iter();
    let length = one_length(value(0))?;
    let coding = coding(value(1), first.version)?;
    finished(first, (length, coding), method, usual.fields(head))
}

#[inline(never)]
fn read_any(head: &Bytes, method: &Method) -> Result<ResponseHead, BadResponse> {
    let line_end = memchr::memchr(b'\n', head).ok_or(BadResponse)?;
    let line = head[..line_end].strip_suffix(b"\r").ok_or(BadResponse)?;
    let first = status_line(line)?;
    let names = Names { underscores: true, drop_odd: false };
    let bounds = Bounds { count: LINES, line: usize::MAX };
    let section = unfolded(head.slice(line_end + 1..));
    let mut headers = parse_fields(&section, bounds, names).map_err(|_| BadResponse)?;
    let length = content_length_of(&headers)?;
    let coding = coding(headers.all("transfer-encoding"), first.version)?;
    headers.remove_all(&FRAMING);
    finished(first, (length, coding), method, headers)
}

/// What both have in common: whatever is not in the fields of the framing.
#[inline]
fn finished(
    StatusLine { version, status, reason }: StatusLine,
    (length, coding): (Option<u64>, Option<Framing>),
    method: &Method,
    headers: Headers,
) -> Result<ResponseHead, BadResponse> {
    let bodyless = *method == Method::HEAD
        || status.is_informational()
        || matches!(status.as_u16(), 204 | 304);
    let is_coded = coding.is_some();
    let framing = match coding {
        _ if bodyless => Framing::None,
        Some(framing) if length.is_none() => framing,
        Some(_) => return Err(BadResponse),
        None => length.map_or(Framing::Close, Framing::Length),
    };
    let keep_alive = match version {
        Version::Http10 => headers.has_token("connection", "keep-alive"),
        _ => !headers.has_token("connection", "close"),
    };
    let announced_length = length.filter(|_| bodyless && status.as_u16() != 204);
    // A 204 with a body (smuggling row G04) leaves bytes nobody accounts for, and so may what says that it has chunks.
    let clean = match status.as_u16() {
        204 => !is_coded && length.is_none_or(|length| length == 0),
        304 => !is_coded,
        _ => true,
    };
    let keep_alive = keep_alive && framing != Framing::Close && clean;
    Ok(ResponseHead { status, reason, headers, framing, announced_length, keep_alive })
}

/// A head that starts `bytes` and is none as it stands, mended as far as nginx reads past what is wrong with it: a line
/// may end with LF alone (RFC 9112 section 2.2), and a field line that begins with `HTTP/` says nothing, as some
/// servers write a second status line. Where it ends, and the same with CR LF; none if there is nothing to mend, or it
/// is not whole.
#[cold]
pub fn mended_head(bytes: &[u8]) -> Option<(usize, Bytes)> {
    let (mut head, mut start, mut is_mended) = (Vec::new(), 0, false);
    loop {
        let end = start + memchr::memchr(b'\n', &bytes[start..])?;
        let line = &bytes[start..end];
        let whole = line.strip_suffix(b"\r").unwrap_or(line);
        let says_nothing = start > 0 && whole.starts_with(b"HTTP/");
        is_mended |= says_nothing || whole.len() == line.len();
        start = end + 1;
        if !says_nothing {
            head.extend_from_slice(whole);
            head.extend_from_slice(b"\r\n");
        }
        if whole.is_empty() {
            return is_mended.then(|| (start, head.into()));
        }
    }
}

struct StatusLine {
    version: Version,
    status: StatusCode,
    /// If it is not the usual one.
    reason: Option<Box<[u8]>>,
}

/// `HTTP/1.x SP three digits [SP reason]` (RFC 9112 section 4).
fn status_line(line: &[u8]) -> Result<StatusLine, BadResponse> {
    let version = match line.get(..9) {
        Some(b"HTTP/1.1 ") => Version::Http11,
        Some(b"HTTP/1.0 ") => Version::Http10,
        _ => return Err(BadResponse),
    };
    let status = line.get(9..12).ok_or(BadResponse)?;
    let reason = match line.get(12) {
        None => &line[12..],
        Some(b' ') => &line[13..],
        Some(_) => return Err(BadResponse),
    };
    if reason.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        return Err(BadResponse);
    }
    let status = StatusCode::from_bytes(status).map_err(|_| BadResponse)?;
    let is_usual = reason.is_empty()
        || (status == StatusCode::OK && reason == b"OK")
        || reason == crate::reason(status).as_bytes();
    Ok(StatusLine { version, status, reason: (!is_usual).then(|| reason.into()) })
}

/// Folded lines joined by spaces (RFC 9112 section 5.2); nearly every head has none.
fn unfolded(section: Bytes) -> Bytes {
    // Behind an LF alone an empty line may stand, and a body behind that.
    let is_line = |at: usize| at > 0 && section[at - 1] == b'\r';
    let folded = |at: usize| matches!(section.get(at + 1), Some(b' ' | b'\t')) && is_line(at);
    if !memchr::memchr_iter(b'\n', &section).any(folded) {
        return section;
    }
    let mut joined = section.to_vec();
    for at in memchr::memchr_iter(b'\n', &section).filter(|&at| folded(at)) {
        joined[at - 1..=at].fill(b' ');
    }
    joined.into()
}

/// The length, said once or several times alike.
pub fn content_length_of(headers: &Headers) -> Result<Option<u64>, BadResponse> {
    one_length(headers.all("content-length"))
}

fn one_length<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Result<Option<u64>, BadResponse> {
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|other| other != first) {
        return Err(BadResponse);
    }
    number(first).map(Some).ok_or(BadResponse)
}

/// Chunked, or none; other codings and HTTP/1.0 with one are refused.
fn coding<'a>(
    mut codings: impl Iterator<Item = &'a [u8]>,
    version: Version,
) -> Result<Option<Framing>, BadResponse> {
    let Some(coding) = codings.next() else { return Ok(None) };
    let known = codings.next().is_none() && coding.eq_ignore_ascii_case(b"chunked");
    if known && version == Version::Http11 { Ok(Some(Framing::Chunked)) } else { Err(BadResponse) }
}

#[cfg(test)]
mod tests {
    use super::{BadResponse, ResponseHead, cut_response, parse_response, read_any};
    use crate::http1::Framing;
    use bytes::{Bytes, BytesMut};
    use http::Method;

    fn framing(head: &str) -> Result<(Framing, bool), BadResponse> {
        let head = parse_response(&Bytes::from(head.to_owned()), &Method::GET)?;
        Ok((head.framing, head.keep_alive))
    }

    /// All that is told of a head, with its fields as they are written and those that it came with.
    fn told(read: Result<ResponseHead, BadResponse>) -> String {
        let mut out = BytesMut::new();
        let mut came = Vec::new();
        if let Ok(head) = &read {
            head.headers.write(&mut out);
            for name in ["content-length", "transfer-encoding", "x-a"] {
                came.extend(head.headers.came(name).map(Bytes::copy_from_slice));
                assert!(name == "x-a" || !head.headers.has(name), "{head:?}");
            }
        }
        format!("{read:?} {out:?} {came:?}")
    }

    #[test]
    fn an_answer_that_is_read_in_one_look_is_read_as_any_other() {
        const FIELDS: [&str; 16] = [
            "",
            "Content-Length: 5\r\n",
            "CONTENT-LENGTH:0\r\n",
            "Content-Length: 5x\r\n",
            "Transfer-Encoding: chunked\r\n",
            "transfer-encoding:\tChunked \r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding:\r\n",
            "Connection: close\r\n",
            "Connection: x, keep-alive\r\n",
            "X-A: 1\r\n",
            "X_A: 2\r\n",
            "X-A:\r\n",
            "X-A: \r2\r\n",
            " folded\r\n",
            "HTTP/1.1 200: OK\r\n",
        ];
        const LINES: [&str; 6] = [
            "HTTP/1.1 200 OK",
            "HTTP/1.0 200 x-a: 1",
            "HTTP/1.1 204 No Content",
            "HTTP/1.1 304",
            "HTTP/1.1 101 Switching",
            "HTTP/2.0 200 OK",
        ];
        let (mut at_once, mut good) = (0, 0);
        for number in 0..FIELDS.len().pow(3) {
            let pick = |power: u32| FIELDS[number / FIELDS.len().pow(power) % FIELDS.len()];
            let fields = [0, 1, 2].map(pick).concat();
            for line in LINES {
                let text = format!("{line}\r\n{fields}\r\n");
                let method = &[Method::GET, Method::HEAD][usize::from(number % 5 == 0)];
                let bytes = Bytes::from(text.clone());
                let any = told(read_any(&bytes, method));
                assert_eq!(told(parse_response(&bytes, method)), any, "{text:?}");
                let mut buffer = BytesMut::from(&[text.as_bytes(), b"body\r\n\r\n"].concat()[..]);
                for most in [0, text.len() / 2, text.len() - 1] {
                    assert!(cut_response(&mut buffer, most, method).is_none(), "{text:?}");
                }
                let Some(read) = cut_response(&mut buffer, text.len(), method) else {
                    assert_eq!(buffer.len(), text.len() + 8);
                    continue;
                };
                assert_eq!(&buffer[..], b"body\r\n\r\n");
                at_once += 1;
                good += usize::from(read.is_ok());
                assert_eq!(told(read), any, "{text:?}");
            }
        }
        assert!(at_once > 4000 && good > 1000, "{at_once} {good}");
    }

    #[test]
    fn lines_that_end_with_lf_alone_and_second_status_lines_are_mended() {
        let of = |text: &str| super::mended_head(text.as_bytes());
        let whole = Bytes::from("HTTP/1.1 200 OK\r\nX: a\r\n\r\n");
        for (text, end) in [
            ("HTTP/1.1 200 OK\nX: a\n\nbody\r\n\r\n", 22),
            ("HTTP/1.1 200 OK\r\nX: a\n\r\nbody", 24),
            ("HTTP/1.1 200 OK\r\nHTTP/1.1 201 Created\r\nX: a\r\n\r\n", 47),
        ] {
            assert_eq!(of(text), Some((end, whole.clone())), "{text:?}");
        }
        for text in ["HTTP/1.1 200 OK\r\nX: a\r\n\r\n", "HTTP/1.1 200 OK\nX: a\n", "", "x"] {
            assert_eq!(of(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_framing_of_an_answer_is_found() {
        assert_eq!(
            framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            Ok((Framing::Length(5), true))
        );
        assert_eq!(framing("HTTP/1.1 200\r\n\r\n"), Ok((Framing::Close, false)));
        assert_eq!(
            framing("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"),
            Ok((Framing::None, false))
        );
        for status in ["204 No", "304 Not"] {
            let head = format!("HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n");
            assert_eq!(framing(&head), Ok((Framing::None, false)), "chunks may follow");
        }
        assert_eq!(
            framing("HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n"),
            Ok((Framing::None, true)),
            "it is that of the body that does not come"
        );
        assert_eq!(
            framing("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n"),
            Ok((Framing::Length(2), true))
        );
    }

    #[test]
    fn answers_that_readers_disagree_about_are_refused() {
        for head in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: evil\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
            "HTTP/1.1 20000 Big\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            "garbage\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\n\n b\r\n\r\n",
        ] {
            assert_eq!(framing(head), Err(BadResponse), "{head:?}");
        }
    }
}
