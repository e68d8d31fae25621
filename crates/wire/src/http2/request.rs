//! Makes a request of what begins a stream, or says why it is none.

use super::body::StreamBody;
use super::fields::from_map_where;
use super::stream::ClientStream;
use crate::once;
use crate::{Body, Headers, Request, Version, tokens};
use bytes::Bytes;
use http::{Method, StatusCode};
use std::rc::Rc;
use std::time::Duration;

/// Choices for the requests of streams.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Names with `_` count as ordinary.
    pub underscores: bool,
    /// Odd names are dropped.
    pub drop_odd: bool,
    /// Time between two pieces of a body.
    pub body_timeout: Duration,
}

/// What cannot be a request.
#[derive(Debug)]
pub struct Refused {
    /// The status that says so.
    pub status: StatusCode,
    /// What of it could be read, for the access log. Nobody is to be asked for it.
    pub request: Request,
}

/// The request of a stream, or what is none. The authority that is `known` is not looked at again.
pub fn judge(
    head: http::request::Parts,
    stream: &Rc<ClientStream>,
    rules: Rules,
    known: &[u8],
) -> Result<Request, Box<Refused>> {
    judged(&head, stream, rules, known)
        .map_err(|status| Box::new(Refused { status, request: read(&head, rules) }))
}

/// A refused head, as far as it can be read.
#[cold]
fn read(head: &http::request::Parts, rules: Rules) -> Request {
    let (mut headers, head_size) = from_map_where(&head.headers, |name| keeps(name, rules));
    let named = head.uri.authority().map(|named| named.as_str().as_bytes());
    let authority = named.or(headers.get("host")).map(Bytes::copy_from_slice);
    let target = head.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
    headers.remove("host");
    headers.remove("content-length");
    join_cookies(&mut headers);
    Request {
        method: head.method.clone(),
        line: None,
        target: Bytes::copy_from_slice(target.as_bytes()),
        version: Version::Http2,
        authority: authority.unwrap_or_default(),
        headers,
        body: Body::empty(),
        head_size,
    }
}

fn judged(
    head: &http::request::Parts,
    stream: &Rc<ClientStream>,
    rules: Rules,
    known: &[u8],
) -> Result<Request, StatusCode> {
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    let (mut headers, head_size) = from_map_where(&head.headers, |name| keeps(name, rules));
    let authority = match head.uri.authority() {
        Some(authority) => Bytes::copy_from_slice(authority.as_str().as_bytes()),
        None => headers.bytes("host").ok_or(BAD)?,
    };
    if authority != known {
        crate::host::parse(&authority).map_err(|_| BAD)?;
    }
    if headers.all("host").any(|host| !host.eq_ignore_ascii_case(&authority)) {
        return Err(BAD);
    }
    if once::are_several(&headers) {
        return Err(BAD);
    }
    let target = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let target = Bytes::copy_from_slice(target.as_bytes());
    // Also `*`, and a query without a path (RFC 9113 section 8.3.1).
    if !target.starts_with(b"/") || head.method == Method::CONNECT {
        return Err(BAD);
    }
    if head.method == Method::TRACE {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let length = headers.text("content-length").and_then(|text| text.parse().ok());
    let empty = stream.is_end();
    if expects_continue(&headers)? && !empty {
        stream.expects_continue();
    }
    headers.remove("host");
    headers.remove("content-length");
    join_cookies(&mut headers);
    Ok(Request {
        method: head.method.clone(),
        line: None,
        target,
        version: Version::Http2,
        authority,
        headers,
        body: if empty {
            Body::empty()
        } else {
            Body::from_source(StreamBody::new(stream.clone(), length, rules.body_timeout))
        },
        head_size,
    })
}

/// Whether `100-continue` is expected; nothing else is known (RFC 9110 section 10.1.1).
fn expects_continue(headers: &Headers) -> Result<bool, StatusCode> {
    let mut members = headers.all("expect").flat_map(tokens).peekable();
    let expects = members.peek().is_some();
    if members.all(|member| member.eq_ignore_ascii_case(b"100-continue")) {
        Ok(expects)
    } else {
        Err(StatusCode::EXPECTATION_FAILED)
    }
}

/// Odd names are treated as in HTTP/1.
fn keeps(name: &[u8], rules: Rules) -> bool {
    const UNDERSCORE: u8 = 1;
    const ODD: u8 = 2;
    const KINDS: [u8; 256] = {
        let mut kinds = [ODD; 256];
        let mut byte = 0u8;
        while byte < 128 {
            if byte.is_ascii_alphanumeric() || byte == b'-' {
                kinds[byte as usize] = 0;
            }
            byte += 1;
        }
        kinds[b'_' as usize] = UNDERSCORE;
        kinds
    };
    // All bytes are looked at without a branch: hardly a name has an odd one.
    match name.iter().fold(0, |found, byte| found | KINDS[usize::from(*byte)]) {
        0 => true,
        UNDERSCORE => !rules.drop_odd || rules.underscores,
        _ => !rules.drop_odd,
    }
}

/// Cookies may come in crumbs; HTTP/1 wants them joined (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut Headers) {
    if headers.all("cookie").nth(1).is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = headers.all("cookie").collect();
    let joined = crumbs.join(&b"; "[..]);
    headers.set("cookie", joined);
}
