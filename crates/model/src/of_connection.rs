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

/// What would be believed as proof of a client certificate (compat/decisions.md).
const PROOF: &[u8] = b"ssl-client-";

/// Whether a field of this name would be believed as proof of a client certificate.
pub fn is_proof(name: &[u8]) -> bool {
    name.get(..PROOF.len()).is_some_and(|start| is_alike(start, PROOF))
}

/// Whether an application may take two names for the same: CGI and its heirs tell `-` and `_` not apart (RFC 3875
/// section 4.1.18).
pub fn is_alike(name: &[u8], other: &[u8]) -> bool {
    let plain = |byte: &u8| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    name.len() == other.len() && name.iter().map(plain).eq(other.iter().map(plain))
}

/// Whether a field of this name belongs to the connection that it came over, however the name is spelled.
pub fn is_of_connection(name: &[u8]) -> bool {
    OF_CONNECTION.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}
