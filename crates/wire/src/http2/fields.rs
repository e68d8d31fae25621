//! Between our header fields and those of the h2 crate.

use crate::Headers;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// As HTTP/2 sends them: lower-case names; fields of the connection are left out (RFC 9113 section 8.2.2).
pub fn to_map(headers: &Headers) -> HeaderMap {
    const CONNECTION: [&str; 6] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    ];
    let mut map = HeaderMap::with_capacity(headers.len());
    for field in headers.iter() {
        if CONNECTION.iter().any(|name| field.is(name)) {
            continue;
        }
        let name = HeaderName::from_bytes(&field.name);
        let value = HeaderValue::from_maybe_shared(field.value.clone());
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    map
}

/// As phases see them, in the order they came.
pub fn from_map(map: &HeaderMap) -> Headers {
    let mut headers = Headers::with_capacity(map.len() + 4);
    for (name, value) in map {
        headers.push(
            Bytes::copy_from_slice(name.as_str().as_bytes()),
            Bytes::copy_from_slice(value.as_bytes()),
        );
    }
    headers
}
