//! Between our header fields and those of the h2 crate.

use crate::headers::line;
use crate::{Headers, NameSet};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::cell::RefCell;

/// Fields that a head may get besides, when they are a map: its date and its length.
const BESIDES: usize = 2;

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
    let mut map = HeaderMap::with_capacity(headers.len() + BESIDES);
    for field in headers.iter() {
        if field.is_one_of(&CONNECTION) {
            continue;
        }
        append(&mut map, field.name, field.value, || headers.kept(&field));
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

// What proxies and applications often send: most of it the http crate does not know, and the rest it would look for
// among all that it knows. The passing ones come first.
without_memory! {
    "x-request-id" "x-real-ip" "x-forwarded-for" "grpc-timeout" "traceparent"
    "x-forwarded-host" "x-forwarded-port" "x-forwarded-proto" "x-forwarded-scheme" "x-scheme"
    "grpc-status" "grpc-message" "grpc-accept-encoding"
    "content-type" "strict-transport-security" "user-agent" "accept" "te" "grpc-encoding"
    "date" "server" "vary" "cache-control"
}

/// How many of them have another value for each request or client. The table of fields that a connection keeps (RFC
/// 7541 section 2.3.2) gets none of these: each would push out one that comes again, and be looked at for those after
/// it.
const PASSING: usize = 5;

/// Longer values pass, too: the table has 4096 bytes.
const LONGEST_KEPT: usize = 1 << 10;

thread_local! {
    /// The last value of each name that is often sent: most of the next ones are the same.
    static LAST: RefCell<[Bytes; OFTEN_NAMES.len()]> =
        const { RefCell::new([const { Bytes::new() }; OFTEN_NAMES.len()]) };
}

/// Appends a field, unless it cannot be said in HTTP/2. `shared` is the same value, to be kept as long as its head is
/// under way.
pub fn append(map: &mut HeaderMap, name: &[u8], value: &[u8], shared: impl FnOnce() -> Bytes) {
    let often = OFTEN.position(name);
    let name = match often {
        Some(often) => Ok(OFTEN_NAMES[often].clone()),
        None => HeaderName::from_bytes(name),
    };
    let passes = often.is_some_and(|often| often < PASSING) || value.len() > LONGEST_KEPT;
    let value = if passes { shared() } else { own(often, value) };
    if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_maybe_shared(value)) {
        // What the h2 crate calls sensitive is written as a literal that is never indexed (RFC 7541 section 6.2.3).
        value.set_sensitive(passes);
        map.append(name, value);
    }
}

/// A value in memory of its own. The table of a connection keeps it for as long as that lives, and would keep all that
/// was read with it, 16 KiB or more for each of some sixty short fields.
fn own(often: Option<usize>, value: &[u8]) -> Bytes {
    let Some(often) = often else { return Bytes::copy_from_slice(value) };
    LAST.with_borrow_mut(|last| {
        let last = &mut last[often];
        if *last != value {
            *last = Bytes::copy_from_slice(value);
        }
        last.clone()
    })
}

/// As phases see them, those of a name together.
pub fn from_map(map: &HeaderMap) -> Headers {
    from_map_where(map, |_| true).0
}

/// The same of the names that `keeps` says yes to, and the bytes of all lines as HTTP/1 has them.
pub(super) fn from_map_where(map: &HeaderMap, keeps: impl Fn(&[u8]) -> bool) -> (Headers, usize) {
    if map.is_empty() {
        return (Headers::default(), 0);
    }
    let bytes = map.iter().map(|(name, value)| line(name.as_str().len(), value.len())).sum();
    let mut headers = Headers::with_room(bytes);
    for (name, value) in map {
        if keeps(name.as_str().as_bytes()) {
            // Blanks and tabs at both ends make a field malformed (RFC 9113 section 8.2.1), which nobody has looked
            // for. Over HTTP/1 they are no part of the value, for whoever matches it as for whoever gets it.
            headers.push(name.as_str(), value.as_bytes().trim_ascii());
        }
    }
    (headers, bytes)
}

#[cfg(test)]
mod tests {
    use super::{append, from_map, from_map_where, to_map};
    use bytes::Bytes;
    use http::HeaderMap;

    #[test]
    fn values_of_one_request_or_client_stay_out_of_the_peers_table() {
        let mut map = HeaderMap::new();
        let mut passes = |name: &str| {
            append(&mut map, name.as_bytes(), b"value", || Bytes::from_static(b"value"));
            map[&name.to_ascii_lowercase()].is_sensitive()
        };
        for name in ["X-Request-ID", "x-real-ip", "X-Forwarded-For", "grpc-timeout", "traceparent"]
        {
            assert!(passes(name), "{name}");
        }
        for name in ["x-forwarded-host", "X-Scheme", "grpc-status", "content-type", "x-other"] {
            assert!(!passes(name), "{name}");
        }
    }

    #[test]
    fn what_a_table_may_keep_keeps_nothing_else_in_memory() {
        let read = Bytes::from(vec![b'a'; 16 << 10]);
        let mut map = HeaderMap::new();
        for (name, length) in
            [("content-range", 20), ("content-type", 20), ("content-type", 21), ("x-long", 1024)]
        {
            append(&mut map, name.as_bytes(), &read[..length], || read.slice(..length));
        }
        assert!(read.is_unique(), "nobody else has it");
        // What no table keeps is gone with its head.
        append(&mut map, b"x-longer", &read[..1025], || read.slice(..1025));
        append(&mut map, b"x-request-id", &read[..32], || read.slice(..32));
        assert!(map["x-longer"].is_sensitive() && !map["x-long"].is_sensitive());
        drop(map);
        assert!(read.is_unique());
    }

    #[test]
    fn fields_come_back_in_their_order_with_room_for_all_of_them() {
        let mut map = HeaderMap::new();
        assert_eq!(from_map(&map).added(), 0);
        for (name, value) in [("b", "1"), ("a", ""), ("b", "2")] {
            append(&mut map, name.as_bytes(), value.as_bytes(), || {
                Bytes::from_static(value.as_bytes())
            });
        }
        let headers = from_map(&map);
        let lines: Vec<String> = headers.iter().map(|field| format!("{field:?}")).collect();
        assert_eq!(lines, ["b: 1", "b: 2", "a: "]);
        assert_eq!(headers.added(), "b: 1\r\nb: 2\r\na: \r\n".len());
        assert_eq!(to_map(&headers), map);
        let (some, bytes) = from_map_where(&map, |name| name != b"b");
        assert_eq!((some.size(), bytes), ("a: \r\n".len(), headers.added()));
    }

    #[test]
    fn white_space_at_the_ends_of_a_value_is_no_part_of_it() {
        let mut map = HeaderMap::new();
        for value in ["1", " 1", "1\t", "\t 1 2 \t", " ", ""] {
            append(&mut map, b"a", value.as_bytes(), || Bytes::from_static(value.as_bytes()));
        }
        let headers = from_map(&map);
        let values: Vec<&[u8]> = headers.all("a").collect();
        assert_eq!(values, [&b"1"[..], b"1", b"1", b"1 2", b"", b""]);
    }
}
