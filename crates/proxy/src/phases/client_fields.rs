//! The client's header section as it came, for requests that get nothing of what backends get: error pages, copies.

use crate::exchange::Exchange;
use crate::http::{Field, tokens};

/// Fields that belong to the client's connection (ngx_http_proxy_module), that would name a proxy to CGI programs
/// (httpoxy), or that would be believed as proof of a client certificate; in lower case.
const DROPPED: [&str; 15] = [
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
    "ssl-client-cert",
    "ssl-client-verify",
    "ssl-client-subject-dn",
    "ssl-client-issuer-dn",
];

/// The fields of the client that are not bound to its connection.
pub(super) fn unchanged(exchange: &Exchange) -> impl Iterator<Item = &Field> {
    let headers = &exchange.request.headers;
    let named: Vec<&[u8]> = headers.all("connection").flat_map(|value| tokens(value)).collect();
    headers.iter().filter(move |field| {
        let is_named = named.iter().any(|name| field.name.eq_ignore_ascii_case(name));
        !is_named && !DROPPED.iter().any(|name| field.is(name))
    })
}
