//! What a location is called where nginx.conf and what is pushed meet.

use crate::conf::fingerprint;
use model::{Location, PathKind, ServerName};
use std::fmt::Write;

/// Bytes of a key at most: there may be as many keys as paths, in nginx's memory.
const LONGEST: usize = 200;

/// The value of `$fairway_route`: kind, host and path, which no two locations share. It says nothing of how requests
/// are spread, so that this may change without a reload. Whatever the path, no character of it means anything to nginx.
pub fn route_key(server: &ServerName, location: &Location) -> String {
    let kind = match location.kind {
        PathKind::Exact => "exact",
        PathKind::Prefix => "prefix",
    };
    let mut key = format!("{kind}:");
    for byte in server.as_str().bytes().chain(location.path.bytes()) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'*' => {
                key.push(char::from(byte));
            }
            _ => {
                let _ = write!(key, "%{byte:02X}");
            }
        }
    }
    if key.len() > LONGEST { format!("{kind}:{}", fingerprint(key.as_bytes())) } else { key }
}

#[cfg(test)]
mod tests {
    use super::route_key;
    use model::policy::Policy;
    use model::{Backend, Location, PathKind, ServerName};
    use std::sync::Arc;

    #[test]
    fn a_key_is_readable_and_holds_nothing_that_nginx_would_read() {
        let location = Location {
            path: "/a b/${x}\"; deny all; ü".to_owned(),
            kind: PathKind::Exact,
            whole: false,
            backend: Backend::NotFound,
            canary: None,
            service: None,
            origin: None,
            policy: Arc::new(Policy::default()),
        };
        let key = route_key(&ServerName::new("*.shop.example"), &location);
        assert_eq!(key, "exact:*.shop.example/a%20b/%24%7Bx%7D%22%3B%20deny%20all%3B%20%C3%BC");
    }
}
