//! Between our header fields and those of the h2 crate.

use crate::{Headers, NameSet};
use bytes::Bytes;
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
        append(&mut map, field.name, headers.kept(&field));
    }
    map
}

/// Names that need no memory of their own.
macro_rules! without_memory {
    ($($name:literal)*) => {
        const OFTEN: NameSet = NameSet::new(&[$($name),*]);
        static OFTEN_NAMES: [HeaderName; [$($name),*].len()] = [$(HeaderName::from_static($name)),*];
    };
}

// What proxies and applications often send, and the http crate does not know.
without_memory! {
    "x-request-id" "x-real-ip" "x-forwarded-for" "x-forwarded-host" "x-forwarded-port" "x-forwarded-proto"
    "x-forwarded-scheme" "x-scheme" "grpc-status" "grpc-message" "grpc-timeout" "grpc-accept-encoding"
}

/// Appends a field, unless it cannot be said in HTTP/2.
pub fn append(map: &mut HeaderMap, name: &[u8], value: Bytes) {
    let name = match OFTEN.position(name) {
        Some(often) => Ok(OFTEN_NAMES[often].clone()),
        None => HeaderName::from_bytes(name),
    };
    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_maybe_shared(value)) {
        map.append(name, value);
    }
}

/// As phases see them, in the order they came.
pub fn from_map(map: &HeaderMap) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in map {
        headers.push(name.as_str(), value.as_bytes());
    }
    headers
}
