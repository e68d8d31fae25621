//! The head of the request towards the upstream: what ingress-nginx sets, then what the client sent
//! (compat/behaviour.md section 15). Framing fields are always our own.

use crate::exchange::Exchange;
use crate::http::{Field, Length, tokens};
use crate::http1::write;
use crate::upstream::Head;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use model::policy::{HttpVersion, Protocol};

/// Fields of the client that do not travel on: they belong to its connection, or Fairway sets them itself.
const OWN: [&str; 23] = [
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "content-length",
    "te",
    "expect",
    "upgrade",
    "http2-settings",
    "proxy",
    "x-request-id",
    "x-real-ip",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-scheme",
    "x-original-forwarded-for",
    "x-original-forwarded-host",
    "ssl-client-cert",
    "ssl-client-verify",
];

/// More of them: whoever is asked for proof of a client certificate must be able to believe the answer.
const CERTIFICATE: [&str; 2] = ["ssl-client-subject-dn", "ssl-client-issuer-dn"];

/// Whether a field of the client travels on.
fn travels(field: &Field, exchange: &Exchange, original_uri: bool) -> bool {
    let own = |names: &[&str]| names.iter().any(|name| field.is(name));
    !own(&OWN)
        && !own(&CERTIFICATE)
        && !(original_uri && field.is("x-original-uri"))
        && !exchange.request.headers.has_token("connection", &String::from_utf8_lossy(&field.name))
}

/// The protocol that the client asks to change to, if that may be passed on: never HTTP/2 in clear (RFC 9113 3.1).
pub(super) fn upgrade(exchange: &Exchange) -> Option<&Bytes> {
    let wanted = exchange.request.headers.get("upgrade").filter(|wanted| !wanted.is_empty())?;
    let is_http2 = |member: &[u8]| member.to_ascii_lowercase().starts_with(b"h2");
    let asked = exchange.request.headers.has_token("connection", "upgrade");
    (asked && !tokens(wanted).any(is_http2)).then_some(wanted)
}

/// The fields that Fairway sets, in the order of ingress-nginx.
fn set(exchange: &Exchange, mut put: impl FnMut(&'static str, &[u8])) {
    let global = exchange.generation.global();
    let real = &global.real_ip;
    let request = &exchange.request;
    let client = exchange.client.to_string();
    let forwarded = &exchange.forwarded;
    if !exchange.request_id.is_empty() {
        put("X-Request-ID", &exchange.request_id);
    }
    put("X-Real-IP", client.as_bytes());
    let received = joined(exchange, &real.forwarded_for_header);
    match (&received, real.forwarded_headers && real.full_forwarded_for) {
        (Some(received), true) => {
            let direct = exchange.connection.announced.map_or(exchange.connection.peer, |announced| announced.source);
            put("X-Forwarded-For", &[received.as_ref(), b", ", direct.ip().to_string().as_bytes()].concat());
        }
        (None, true) => {
            let direct = exchange.connection.announced.map_or(exchange.connection.peer, |announced| announced.source);
            put("X-Forwarded-For", direct.ip().to_string().as_bytes());
        }
        (_, false) => put("X-Forwarded-For", client.as_bytes()),
    }
    put("X-Forwarded-Host", &forwarded.host);
    put("X-Forwarded-Port", &forwarded.port);
    put("X-Forwarded-Proto", &forwarded.scheme);
    put("X-Forwarded-Scheme", &forwarded.scheme);
    put("X-Scheme", &forwarded.scheme);
    if global.original_uri_header {
        put("X-Original-URI", &request.target);
    }
    if let Some(received) = &received {
        put("X-Original-Forwarded-For", received);
    }
    if let Some(received) = joined(exchange, &real.forwarded_host_header) {
        put("X-Original-Forwarded-Host", &received);
    }
}

/// The values of a field in one line; none if it is absent or empty.
fn joined(exchange: &Exchange, name: &str) -> Option<Bytes> {
    let mut values = exchange.request.headers.all(name);
    let first = values.next()?.clone();
    let rest: Vec<&[u8]> = values.map(AsRef::as_ref).collect();
    let value = if rest.is_empty() { first } else { [vec![first.as_ref()], rest].concat().join(&b", "[..]).into() };
    Some(value).filter(|value| !value.is_empty())
}

/// Path and query towards the upstream: as received, unless a rewrite or dot segments changed them.
fn target(exchange: &Exchange) -> &Bytes {
    exchange.rewritten.as_ref().unwrap_or(&exchange.request.target)
}

/// The head for an upstream that speaks this protocol; none if HTTP/2 has no way to say it.
pub(super) fn head(exchange: &Exchange) -> Option<Head> {
    match exchange.spot().location.policy.protocol {
        Protocol::Grpc => http2(exchange, "http").map(|head| Head::Http2(Box::new(head))),
        Protocol::Grpcs => http2(exchange, "https").map(|head| Head::Http2(Box::new(head))),
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => Some(Head::Http1(http1(exchange))),
    }
}

fn http1(exchange: &Exchange) -> Bytes {
    let request = &exchange.request;
    let policy = &exchange.spot().location.policy;
    let old = policy.http_version == HttpVersion::Http10;
    let mut out = BytesMut::with_capacity(request.head_size + 512);
    out.put_slice(request.method.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(target(exchange));
    out.put_slice(if old { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    write::field(&mut out, b"Host", &exchange.forwarded.host);
    set(exchange, |name, value| write::field(&mut out, name.as_bytes(), value));
    match (upgrade(exchange), old || !exchange.worker.pool.keeps()) {
        (Some(wanted), _) => {
            write::field(&mut out, b"Upgrade", wanted);
            write::field(&mut out, b"Connection", b"upgrade");
        }
        (None, true) => write::field(&mut out, b"Connection", b"close"),
        (None, false) => {}
    }
    match request.body.length() {
        Length::Unknown => write::field(&mut out, b"Transfer-Encoding", b"chunked"),
        Length::Known(0) if !wants_length(&request.method) => {}
        Length::Known(length) => write::content_length(&mut out, length),
    }
    let original_uri = exchange.generation.global().original_uri_header;
    for field in request.headers.iter().filter(|field| travels(field, exchange, original_uri)) {
        write::field(&mut out, &field.name, &field.value);
    }
    out.put_slice(b"\r\n");
    out.freeze()
}

/// Methods that define a meaning for a body say so when it is empty (RFC 9110 section 8.6).
fn wants_length(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

fn http2(exchange: &Exchange, scheme: &str) -> Option<Request<()>> {
    let request = &exchange.request;
    let path = String::from_utf8_lossy(target(exchange)).into_owned();
    let authority = std::str::from_utf8(&exchange.forwarded.host).ok()?;
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().ok()?;
    let mut head = Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = uri;
    *head.version_mut() = http::Version::HTTP_2;
    let headers = head.headers_mut();
    let mut put = |name: &[u8], value: &[u8]| {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    };
    set(exchange, |name, value| put(name.as_bytes(), value));
    put(b"te", b"trailers");
    if let Length::Known(length) = request.body.length()
        && length > 0
    {
        put(b"content-length", length.to_string().as_bytes());
    }
    let original_uri = exchange.generation.global().original_uri_header;
    for field in request.headers.iter().filter(|field| travels(field, exchange, original_uri)) {
        put(&field.name, &field.value);
    }
    Some(head)
}
