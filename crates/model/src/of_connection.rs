//! Header fields that never go from one connection to another.

/// Fields that belong to one connection (RFC 9110 section 7.6.1, ngx_http_proxy_module), or that would name a proxy to
/// CGI programs (httpoxy).
const OF_CONNECTION: [&str; 11] = [
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
];

/// Whether a field of this name belongs to the connection that it came over, however the name is spelled.
pub fn is_of_connection(name: &[u8]) -> bool {
    OF_CONNECTION.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}
