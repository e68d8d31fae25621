//! What a story tells of header fields and addresses: whoever reads it need not be who may know the tokens that
//! annotations and snippets set.

use crate::exchange::Exchange;
use model::hide_in_url;

/// Fields that are written for every request and answer, or say nothing that opens a door. The values of all others,
/// which somebody set or a client sent, are not told.
const OPEN: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "age",
    "allow",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "expect",
    "forwarded",
    "grpc-status",
    "host",
    "keep-alive",
    "last-modified",
    "origin",
    "range",
    "retry-after",
    "server",
    "strict-transport-security",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "www-authenticate",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-original-forwarded-for",
    "x-real-ip",
    "x-request-id",
    "x-scheme",
];
/// Fields that hold an address.
const ADDRESSES: &[&str] =
    &["location", "refresh", "x-auth-request-redirect", "x-original-uri", "x-original-url"];

/// A field with what may be told of its value.
pub(super) fn field(exchange: &Exchange, name: &str, value: &str) -> String {
    let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_one_of(OPEN) || value.is_empty() {
        format!("{name}: {value}")
    } else if is_one_of(ADDRESSES) {
        format!("{name}: {}", address(exchange, value))
    } else {
        format!("{name}: …")
    }
}

/// An address. The client's own query is told, for it has said it; any other one only by its names.
pub(super) fn address(exchange: &Exchange, text: &str) -> String {
    let received = String::from_utf8_lossy(exchange.received());
    let own = received.split_once('?').map(|(_, query)| query);
    match text.split_once('?') {
        Some((before, query)) if own == Some(query) => format!("{}?{query}", hide_in_url(before)),
        _ => hide_in_url(text),
    }
}

/// A line of a head: the request's, or a field.
pub(super) fn line(exchange: &Exchange, line: &str) -> String {
    if let Some((name, value)) = line.split_once(": ")
        && !name.contains(' ')
    {
        return field(exchange, name, value);
    }
    let words = line.split(' ').map(|word| address(exchange, word));
    words.collect::<Vec<_>>().join(" ")
}
