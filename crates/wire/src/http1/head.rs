//! Reads the head of a request and refuses whatever two readers could understand differently.

use super::framing::{BadRequest, Framing, request_framing};
use super::lines::{BadLine, Bounds, Names, Usual, fields_before_fault, parse_fields, usual};
use crate::once;
use crate::{Body, Headers, NameSet, Request, Version, header_too_large, is_token_byte};
use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use std::ops::Range;

/// Bounds and choices for request heads.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the request line.
    pub line: usize,
    /// Field lines.
    pub count: usize,
    /// Names with `_` count as ordinary.
    pub underscores: bool,
    /// Odd names are dropped.
    pub drop_odd: bool,
}

/// A request head that is unambiguous.
#[derive(Debug)]
pub struct RequestHead {
    /// The method, as written.
    pub method: Method,
    /// Path and query in origin-form.
    pub target: Bytes,
    /// The request line as written.
    pub line: Bytes,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// Host and port: of the target in absolute-form, else of the Host field; empty if HTTP/1.0 has neither.
    pub authority: Bytes,
    /// All fields but Host and those of the framing.
    pub headers: Headers,
    /// How the body is delimited.
    pub framing: Framing,
    /// Whether the client wants the connection to stay.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
}

/// Fields that are read here and written anew.
const READ: NameSet = NameSet::new(&["host", "content-length", "transfer-encoding", "expect"]);

const BAD: BadRequest = BadRequest(StatusCode::BAD_REQUEST);

/// Those of them that a usual head has once at most: they are not looked for again.
const TAKEN: NameSet = NameSet::new(&["host", "content-length", "transfer-encoding"]);

/// Field lines of a usual head.
const USUAL: usize = 64;

/// A whole head as it came, from its first byte to the end of its empty line.
#[derive(Debug)]
pub struct Received {
    /// All of it.
    pub bytes: Bytes,
    /// What is known of it already, if there is nothing to judge in its lines.
    usual: Option<Usual<3>>,
}

impl Received {
    /// A head of which nothing is known.
    pub(super) fn unknown(bytes: Bytes) -> Self {
        Self { bytes, usual: None }
    }

    /// Cuts a usual head off `buffer`, if one of at most so many bytes starts it.
    #[inline]
    pub(super) fn cut(buffer: &mut BytesMut, most: usize) -> Option<Self> {
        let usual = usual(&buffer[..buffer.len().min(most)], &TAKEN, USUAL)?;
        Some(Self { bytes: buffer.split_to(usual.end).freeze(), usual: Some(usual) })
    }

    /// Reads it, once. `known` is an authority that was read before, such as that of the request before on a
    /// connection, and is not looked at again; empty where there is none.
    #[inline]
    pub fn parse(&mut self, limits: Limits, known: &[u8]) -> Result<RequestHead, BadRequest> {
        let bounds = Bounds { count: limits.count, line: limits.line };
        match self.usual.take() {
            Some(usual) if usual.keeps(bounds) => read_usual(&self.bytes, usual, limits, known),
            _ => read_any(&self.bytes, limits, known),
        }
    }
}

/// Reads a whole head, as [`Received::parse`].
pub fn parse_request(
    head: &Bytes,
    limits: Limits,
    known: &[u8],
) -> Result<RequestHead, BadRequest> {
    Received { bytes: head.clone(), usual: usual(head, &TAKEN, USUAL) }.parse(limits, known)
}

#[inline]
fn read_usual(
    head: &Bytes,
    usual: Usual<3>,
    limits: Limits,
    known: &[u8],
) -> Result<RequestHead, BadRequest> {
    let line = &head[..usual.line];
    // With its CR, as it is counted.
    if usual.line + 1 > limits.line {
        return Err(BadRequest(StatusCode::URI_TOO_LONG));
    }
    let (method, target, version) = request_line(line)?;
    let [host, length, coding] = [0, 1, 2].map(|number| usual.taken(number));
    let value = |place: Option<Range<usize>>| place.map(|place| &head[place]).into_iter();
    let framing = request_framing(value(coding), value(length), version)?;
    let host = needed_host(host.map(|place| head.slice(place)), version)?;
    let headers = usual.fields(head.clone());
    finished(head, (line, method, target, version), (framing, host, headers), known)
}

#[inline(never)]
fn read_any(head: &Bytes, limits: Limits, known: &[u8]) -> Result<RequestHead, BadRequest> {
    let line_end = memchr::memchr(b'\n', head).ok_or(BAD)?;
    if line_end > limits.line {
        return Err(BadRequest(StatusCode::URI_TOO_LONG));
    }
    let line = head[..line_end].strip_suffix(b"\r").ok_or(BAD)?;
    let (method, target, version) = request_line(line)?;
    let bounds = Bounds { count: limits.count, line: limits.line };
    let names = Names { underscores: limits.underscores, drop_odd: limits.drop_odd };
    let mut headers =
        parse_fields(&head.slice(line_end + 1..), bounds, names).map_err(|bad| match bad {
            BadLine::Malformed => BAD,
            BadLine::TooLong => BadRequest(header_too_large()),
            BadLine::TooMany => BadRequest(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        })?;
    let (codings, lengths) = (headers.all("transfer-encoding"), headers.all("content-length"));
    let framing = request_framing(codings, lengths, version)?;
    let host = needed_host(headers.one("host").map_err(|_| BAD)?, version)?;
    headers.remove_all(&TAKEN);
    finished(head, (line, method, target, version), (framing, host, headers), known)
}

/// What both have in common: whatever is not in the fields that were taken.
#[inline]
fn finished(
    head: &Bytes,
    (line, method, target, version): (&[u8], Method, &[u8], Version),
    (framing, host, mut headers): (Framing, Option<Bytes>, Headers),
    known: &[u8],
) -> Result<RequestHead, BadRequest> {
    if once::are_several(&headers) {
        return Err(BAD);
    }
    // It stands at the beginning.
    let line = head.slice(..line.len());
    let (target, authority) = split_target(head.slice_ref(target), host, known)?;
    let keep_alive = match version {
        Version::Http10 => headers.has_token("connection", "keep-alive"),
        _ => !headers.has_token("connection", "close"),
    };
    let expects_continue = expectation(&headers, version)?;
    headers.remove("expect");
    Ok(RequestHead {
        method,
        target,
        line,
        version,
        authority,
        headers,
        framing,
        keep_alive,
        expects_continue,
    })
}

/// What a head says that is refused, as far as it can be read: the access log tells it. Nobody is to be asked for it.
/// Where there is no line of a request its method is `-`, as nginx's variables say of it.
pub fn read_refused(head: &Bytes, limits: Limits) -> Request {
    let end = head.iter().position(|byte| b"\r\n".contains(byte)).unwrap_or(head.len());
    let line = head.slice(..end);
    let mut request = Request {
        method: Method::from_bytes(b"-").unwrap_or_default(),
        target: Bytes::new(),
        line: Some(line.clone()),
        version: Version::Http11,
        authority: Bytes::new(),
        headers: Headers::default(),
        body: Body::empty(),
        head_size: head.len(),
    };
    let Ok((method, target, version)) = parts_of_line(&line) else { return request };
    (request.method, request.version) = (method, version);
    if let Some(newline) = memchr::memchr(b'\n', head) {
        let bounds = Bounds { count: limits.count, line: limits.line };
        let names = Names { underscores: limits.underscores, drop_odd: limits.drop_odd };
        request.headers = fields_before_fault(&head.slice(newline + 1..), bounds, names);
    }
    let host = request.headers.one("host").ok().flatten();
    let host = host.filter(|host| crate::host::parse(host).is_ok());
    if let Ok(split) = split_target(line.slice_ref(target), host, b"") {
        (request.target, request.authority) = split;
    }
    request.headers.remove_all(&READ);
    request
}

/// The line of a request that may be answered.
fn request_line(line: &[u8]) -> Result<(Method, &[u8], Version), BadRequest> {
    let parts = parts_of_line(line)?;
    if parts.0 == Method::CONNECT || parts.0 == Method::TRACE {
        return Err(BadRequest(StatusCode::METHOD_NOT_ALLOWED));
    }
    Ok(parts)
}

/// `method SP target SP version`, with exactly these two spaces (RFC 9112 section 3).
fn parts_of_line(line: &[u8]) -> Result<(Method, &[u8], Version), BadRequest> {
    let mut parts = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(BAD);
    };
    if method.is_empty() || !method.iter().all(|&byte| is_token_byte(byte)) {
        return Err(BAD);
    }
    let is_odd = |&byte: &u8| byte < b' ' || byte == 0x7f || byte == b'#';
    let target = if target.iter().any(is_odd) { without_fragment(target)? } else { target };
    if target.is_empty() {
        return Err(BAD);
    }
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            // A higher minor version is understood as 1.1 (RFC 9110 section 2.5); other major versions are not ours.
            if *major != b'1' {
                return Err(BadRequest(StatusCode::HTTP_VERSION_NOT_SUPPORTED));
            }
            Version::Http11
        }
        _ => return Err(BAD),
    };
    Ok((Method::from_bytes(method).map_err(|_| BAD)?, target, version))
}

/// A target up to its fragment, which no target has (RFC 9112 section 3.2): nobody sees one here, where nginx matches
/// without it and forwards it. As there it must stand behind a path or a query.
#[cold]
fn without_fragment(target: &[u8]) -> Result<&[u8], BadRequest> {
    let end = target.iter().position(|&byte| byte == b'#').ok_or(BAD)?;
    let kept = &target[..end];
    let is_bad = |&byte: &u8| byte < b' ' || byte == 0x7f;
    let behind_scheme = kept.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    if target.iter().any(is_bad) || !kept[behind_scheme..].iter().any(|byte| b"/?".contains(byte)) {
        return Err(BAD);
    }
    Ok(kept)
}

/// The one Host field; HTTP/1.1 needs it (RFC 9112 section 3.2).
fn needed_host(host: Option<Bytes>, version: Version) -> Result<Option<Bytes>, BadRequest> {
    if host.is_none() && version != Version::Http10 { Err(BAD) } else { Ok(host) }
}

/// Path with query, and authority, of the target's form (RFC 9112 section 3.2). `*` is none, as in nginx: there is no
/// server as a whole behind which to ask.
fn split_target(
    target: Bytes,
    host: Option<Bytes>,
    known: &[u8],
) -> Result<(Bytes, Bytes), BadRequest> {
    if target.starts_with(b"/") {
        return match host {
            Some(host) if host == known && !known.is_empty() => Ok((target, host)),
            host => Ok((target, checked_authority(host)?)),
        };
    }
    let lower = target[..target.len().min(8)].to_ascii_lowercase();
    let scheme = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| lower.starts_with(scheme))
        .ok_or(BAD)?;
    checked_authority(host)?;
    let rest = target.slice(scheme.len()..);
    let end = rest.iter().position(|&byte| byte == b'/' || byte == b'?').unwrap_or(rest.len());
    let path = match rest.get(end) {
        None => Bytes::from_static(b"/"),
        Some(b'/') => rest.slice(end..),
        Some(_) => [b"/", &rest[end..]].concat().into(),
    };
    Ok((path, checked_authority(Some(rest.slice(..end)))?))
}

/// The authority if it is one; an absent one (HTTP/1.0) is empty.
fn checked_authority(authority: Option<Bytes>) -> Result<Bytes, BadRequest> {
    let Some(authority) = authority else { return Ok(Bytes::new()) };
    crate::host::parse(&authority).map_err(|_| BAD)?;
    Ok(authority)
}

/// Whether `100-continue` is expected; nothing else is known (RFC 9110 section 10.1.1).
fn expectation(headers: &Headers, version: Version) -> Result<bool, BadRequest> {
    let mut expected = false;
    if !headers.has("expect") {
        return Ok(expected);
    }
    for member in headers.all("expect").flat_map(crate::tokens) {
        if !member.eq_ignore_ascii_case(b"100-continue") {
            return Err(BadRequest(StatusCode::EXPECTATION_FAILED));
        }
        expected = true;
    }
    Ok(expected && version == Version::Http11)
}

#[cfg(test)]
mod tests {
    use super::{BadRequest, Limits, Received, RequestHead, parse_request, request_line};
    use bytes::{Bytes, BytesMut};

    /// All that is told of a head, with its fields as they are written and those that it came with.
    fn told(read: Result<RequestHead, BadRequest>) -> String {
        let mut out = BytesMut::new();
        let mut came = Vec::new();
        if let Ok(head) = &read {
            head.headers.write(&mut out);
            for name in ["host", "content-length", "transfer-encoding", "expect", "x-a"] {
                came.extend(head.headers.came(name).map(Bytes::copy_from_slice));
                assert!(name == "x-a" || !head.headers.has(name), "{head:?}");
            }
        }
        format!("{read:?} {out:?} {came:?}")
    }

    #[test]
    fn a_head_that_is_read_in_one_look_is_read_as_any_other() {
        const FIELDS: [&str; 19] = [
            "",
            "Host: a\r\n",
            "hOst:\tb \r\n",
            "Host:\r\n",
            "Content-Length: 5\r\n",
            "CONTENT-LENGTH:0\r\n",
            "Content-Length: 5x\r\n",
            "Transfer-Encoding: chunked\r\n",
            "transfer-encoding: gzip\r\n",
            "Transfer-Encoding:\r\n",
            "Connection: close\r\n",
            "Connection: x, keep-alive\r\n",
            "Expect: 100-continue\r\n",
            "Expect: 1\r\n",
            "X-A: 1\r\n",
            "X_A: 2\r\n",
            "X-A: \r2\r\n",
            " folded\r\n",
            "X-A: 123456789012345678901234567890\r\n",
        ];
        const LINES: [&str; 5] = [
            "GET /a?b HTTP/1.1",
            "POST http://b/ HTTP/1.0",
            "GET /a:b#c HTTP/1.1",
            "GET / HTTP/2.0",
            "GET /a/rather/long/path HTTP/1.1",
        ];
        let (mut at_once, mut good) = (0, 0);
        for number in 0..FIELDS.len().pow(3) {
            let pick = |power: u32| FIELDS[number / FIELDS.len().pow(power) % FIELDS.len()];
            let fields = [0, 1, 2].map(pick).concat();
            for (which, line) in LINES.into_iter().enumerate() {
                let host = ["", "Host: a\r\n"][number % 2];
                let text = format!("{line}\r\n{fields}{host}\r\n");
                let (drop_odd, count) = (which % 2 == 0, 2 + number % 3);
                let limits = Limits { line: 30, count, underscores: false, drop_odd };
                let bytes = Bytes::from(text.clone());
                let any = told(Received::unknown(bytes.clone()).parse(limits, b"a"));
                assert_eq!(told(parse_request(&bytes, limits, b"a")), any, "{text:?}");
                let mut buffer = BytesMut::from(&[text.as_bytes(), b"body\r\n\r\n"].concat()[..]);
                for most in [0, text.len() / 2, text.len() - 1] {
                    assert!(Received::cut(&mut buffer, most).is_none(), "{text:?}");
                }
                let Some(mut received) = Received::cut(&mut buffer, text.len()) else {
                    assert_eq!(buffer.len(), text.len() + 8);
                    continue;
                };
                assert_eq!((&received.bytes, &buffer[..]), (&bytes, &b"body\r\n\r\n"[..]));
                at_once += 1;
                let read = received.parse(limits, b"a");
                good += usize::from(read.is_ok());
                assert_eq!(told(read), any, "{text:?}");
            }
        }
        assert!(at_once > 4000 && good > 500, "{at_once} {good}");
    }

    #[test]
    fn nobody_sees_a_fragment_and_there_is_something_before_it() {
        for (target, wanted) in [
            ("/a#b", Some("/a")),
            ("/a/#/../x", Some("/a/")),
            ("/a?x#y?z#", Some("/a?x")),
            ("http://h/a#b", Some("http://h/a")),
            ("http://h?x#b", Some("http://h?x")),
            ("/a", Some("/a")),
            ("#", None),
            ("#/a", None),
            ("*#", None),
            ("http://h#b", None),
            ("http://h#/b", None),
            ("/a#\u{1}", None),
            ("/a\u{7f}", None),
            ("", None),
        ] {
            let line = format!("GET {target} HTTP/1.1");
            let read = request_line(line.as_bytes()).ok().map(|(_, target, _)| target);
            assert_eq!(read, wanted.map(str::as_bytes), "{target}");
        }
    }
}
