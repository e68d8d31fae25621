//! What the authenticator is sent: the request's header, what describes the request, and no body.

use super::super::client_fields::{self, is_proof};
use super::super::{hops, request_headers};
use crate::authenticator::Authenticator;
use crate::exchange::Exchange;
use crate::snippet::Told;
use crate::variables;
use bytes::BufMut;
use http::Method;
use upstream::host_of;
use wire::http1::write;
use wire::{NameSet, Written, percent};

/// Fields that the question describes the request with, and one that announces a body's end; the client has no say in
/// them.
const DESCRIBING: NameSet = NameSet::new(&[
    "x-request-id",
    "x-real-ip",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-original-url",
    "x-original-method",
    "x-sent-from",
    "x-auth-request-redirect",
    "trailer",
]);
/// The same where `auth-method` is set.
const DESCRIBED: NameSet = NameSet::new(&["x-original-uri", "x-scheme"]);

/// What hangs on an answer that somebody has, or asks for a part of one: an answer that is remembered is for all
/// (ngx_http_proxy_module: what `proxy_cache` takes out).
const CONDITIONS: NameSet = NameSet::new(&[
    "range",
    "if-range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
]);

/// Whether the question has a field of this name by itself, or never has one, whatever the client says.
pub(super) fn is_own(
    exchange: &Exchange,
    authenticator: &Authenticator,
    told: &Told,
    name: &[u8],
) -> bool {
    DESCRIBING.has(name)
        || DESCRIBED.has(name)
        || CONDITIONS.has(name)
        || name.eq_ignore_ascii_case(b"host")
        || is_proof(name)
        || hops::NAME.as_bytes().eq_ignore_ascii_case(name)
        || told.has(name)
        || authenticator.given.has(name)
        || !authenticator.passes_headers
        || exchange.span.as_deref().is_some_and(|span| span.replaces(name))
}

/// Request line and header section.
pub(super) fn head(
    exchange: &Exchange,
    authenticator: &Authenticator,
    told: &Told,
    method: &Method,
) -> Written {
    let mut out = Written::with_room(exchange.request.head_size + 512);
    out.put_slice(method.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(&target(exchange, authenticator));
    out.put_slice(b" HTTP/1.1\r\n");
    let given = &authenticator.policy.request_headers;
    let is_given = |name: &[u8]| {
        let is_told =
            if name.eq_ignore_ascii_case(b"host") { told.host().is_some() } else { told.has(name) };
        is_told || authenticator.given.has(name)
    };
    let mut put = |name: &[u8], value: &[u8]| {
        if !is_given(name) {
            write::field(&mut out, name, value);
        }
    };
    own(exchange, authenticator, &mut put);
    let span = exchange.span.as_deref();
    if let Some(span) = span {
        span.inject(span.context.span, |name, value| put(name.as_bytes(), value));
    }
    if [Method::POST, Method::PUT, Method::PATCH].contains(method) {
        put(b"Content-Length", b"0");
    }
    let hops = hops::value(exchange);
    let described = authenticator.policy.method.is_some();
    let is_remembered = authenticator.policy.cache.is_some();
    let passed = client_fields::end_to_end(&exchange.request.headers);
    for field in passed.filter(|_| authenticator.passes_headers) {
        let ours = field.is_one_of(&DESCRIBING)
            || (described && field.is_one_of(&DESCRIBED))
            || (is_remembered && field.is_one_of(&CONDITIONS))
            || hops::is_replaced(hops.as_ref(), &field);
        if !(ours || span.is_some_and(|span| span.replaces(field.name))) {
            put(field.name, field.value);
        }
    }
    if let Some(host) = told.host() {
        write::field(&mut out, b"Host", host);
    }
    for (name, value) in told.fields() {
        write::field(&mut out, name, value);
    }
    let is_left = |name: &str| !frames(name) && !told.has(name.as_bytes());
    for (name, value) in given.iter().filter(|(name, _)| is_left(name)) {
        let value = variables::as_asked(value, exchange);
        if !value.is_empty() {
            write::field(&mut out, name.as_bytes(), &for_value(value.as_bytes()));
        }
    }
    if let Some(hops) = &hops {
        write::field(&mut out, hops::NAME.as_bytes(), hops);
    }
    out.put_slice(b"\r\n");
    out
}

/// What the framing is made of cannot be given.
fn frames(name: &str) -> bool {
    const FRAMING: NameSet =
        NameSet::new(&["content-length", "transfer-encoding", "connection", "upgrade", "te"]);
    FRAMING.has(name.as_bytes())
}

/// The fields that describe the request, in the order of ingress-nginx.
fn own(exchange: &Exchange, authenticator: &Authenticator, put: &mut impl FnMut(&[u8], &[u8])) {
    let request = &exchange.request;
    request_headers::set(exchange, |name, value| {
        let wanted = matches!(name, "X-Request-ID" | "X-Real-IP" | "X-Forwarded-For");
        if wanted || is_proof(name.as_bytes()) {
            put(name.as_bytes(), value);
        }
    });
    if authenticator.policy.method.is_some() {
        put(b"X-Original-URI", exchange.received());
        put(b"X-Scheme", &exchange.forwarded.scheme);
    }
    let authority = variables::as_asked(&authenticator.destination.url.authority, exchange);
    put(b"Host", &for_url(host_of(&authority).as_bytes()));
    let scheme = if exchange.connection.tls.is_some() { &b"https://"[..] } else { b"http://" };
    put(b"X-Original-URL", &[scheme, &request.authority, exchange.received()].concat());
    put(b"X-Original-Method", request.method.as_str().as_bytes());
    put(b"X-Sent-From", b"nginx-ingress-controller");
    match &authenticator.policy.request_redirect {
        None => put(b"X-Auth-Request-Redirect", exchange.received()),
        Some(template) => {
            let text = variables::as_asked(template, exchange);
            put(b"X-Auth-Request-Redirect", &for_value(text.as_bytes()));
        }
    }
}

/// Path and query of the authenticator's URL.
fn target(exchange: &Exchange, authenticator: &Authenticator) -> Vec<u8> {
    let text = variables::as_asked(&authenticator.policy.url.target, exchange);
    let text = text.split('#').next().unwrap_or_default();
    let mut target = for_url(text.as_bytes());
    if target.first() != Some(&b'/') {
        target.insert(0, b'/');
    }
    target
}

/// A text for a request line or a URL, with everything percent-encoded that would end it or a part of it. Variables can
/// hold anything that a client sends.
pub(super) fn for_url(text: &[u8]) -> Vec<u8> {
    percent::encoded(text, |byte| byte.is_ascii_graphic())
}

/// The same for the value of a field, where control characters alone can do harm.
fn for_value(text: &[u8]) -> Vec<u8> {
    percent::encoded(text, |byte| !byte.is_ascii_control())
}

#[cfg(test)]
mod tests {
    use super::{for_url, for_value};

    #[test]
    fn nothing_that_a_client_sends_ends_a_line_or_a_part_of_it() {
        assert_eq!(
            for_url(b"/a?b=\"c\" HTTP/1.1\r\nX: y\xfc"),
            b"/a?b=\"c\"%20HTTP/1.1%0D%0AX:%20y%FC"
        );
        assert_eq!(for_value(b"GET own\n\xfc"), b"GET own%0A\xfc");
    }
}
