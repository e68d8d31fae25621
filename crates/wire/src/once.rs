//! Fields that a request has once at most: whoever reads two of them may go by either.

use crate::{Headers, NameSet};

/// nginx refuses two of these everywhere (ngx_http_process_unique_header_line), besides those that say whom a request
/// is for and where it ends.
static ONCE: NameSet = NameSet::new(&[
    "authorization",
    "content-range",
    "expect",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
]);

/// Whether one of them is there several times.
#[inline]
pub(crate) fn are_several(headers: &Headers) -> bool {
    headers.has_twice(&ONCE)
}

#[cfg(test)]
mod tests {
    use super::{ONCE, are_several};
    use crate::Headers;

    #[test]
    fn two_of_one_name_are_several_and_one_of_each_is_not() {
        let mut headers = Headers::default();
        for name in ["Authorization", "If-Match", "if-range", "Accept", "accept", "Expect"] {
            headers.push(name, "a");
        }
        assert!(!are_several(&headers));
        for name in ["authorization", "IF-MATCH", "If-Range", "expect"] {
            let mut headers = headers.clone();
            headers.push(name, "a");
            assert!(are_several(&headers), "{name}");
        }
    }

    #[test]
    fn what_clients_send_mostly_is_not_looked_through_for_them() {
        let usual = ["host", "user-agent", "accept", "accept-encoding", "cookie", "content-type"];
        assert!(usual.iter().all(|name| crate::names::bit(name.as_bytes()) & ONCE.bits() == 0));
    }
}
