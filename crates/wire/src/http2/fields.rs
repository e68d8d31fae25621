//! Between our header fields and those of the h2 crate.

use crate::{Headers, NameSet};
use http::{HeaderMap, HeaderName, HeaderValue};

/// As HTTP/2 sends them: lower-case names; fields of the connection are left out (RFC 9113 section 8.2.2).
pub fn to_map(headers: &Headers) -> HeaderMap {
    const CONNECTION: NameSet = NameSet::new(&[
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    ]);
    let mut map = HeaderMap::with_capacity(headers.len());
    for field in headers.iter() {
        if field.is_one_of(&CONNECTION) {
            continue;
        }
        let name = HeaderName::from_bytes(field.name);
        let value = HeaderValue::from_maybe_shared(headers.kept(&field));
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    map
}

/// As phases see them, in the order they came.
pub fn from_map(map: &HeaderMap) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in map {
        headers.push(name.as_str(), value.as_bytes());
    }
    headers
}
