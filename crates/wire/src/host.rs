//! The host that a request names: `host[:port]` of Host, `:authority` and absolute-form targets.

use std::borrow::Cow;
use std::net::Ipv6Addr;
use thiserror::Error;

/// A host that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    /// The name in lower case without a final dot, or an IPv6 address in brackets.
    pub name: Cow<'a, str>,
    /// The port, where a number was given.
    pub port: Option<u16>,
}

/// Why a text names no host: the request is answered with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadHost {
    /// There is no name.
    #[error("the host is empty")]
    Empty,
    /// A byte that no host name has, or two dots in a row.
    #[error("the host has characters that no host name has")]
    Character,
    /// Something before an `@`.
    #[error("the host has userinfo")]
    UserInfo,
    /// Two ports, or a number above 65535.
    #[error("the port of the host is not valid")]
    Port,
    /// Brackets around something that is no IPv6 address.
    #[error("the host is no valid IPv6 literal")]
    Literal,
}

/// Reads `host[:port]` (RFC 9110 7.2, RFC 3986 3.2.2; where those are silent, as nginx).
///
/// A port that is a word is ignored, as it is by ingress-nginx; escapes (`%41`) are refused, since no host name of
/// HTTP has them and peers disagree about their meaning.
pub fn parse(authority: &[u8]) -> Result<Host<'_>, BadHost> {
    if authority.first() == Some(&b'[') {
        return parse_literal(authority);
    }
    let end = authority.iter().position(|byte| *byte == b':').unwrap_or(authority.len());
    let (kinds, _) = authority[..end].iter().fold((0, 0), |(kinds, before), &byte| {
        let kind = KINDS[usize::from(byte)];
        // Of two dots in a row the second one finds the first.
        (kinds | kind | (kind & before & DOT) << 1, kind)
    });
    if kinds & (BAD | DOTS) != 0 {
        return Err(bad(&authority[..end]));
    }
    let upper = kinds & UPPER != 0;
    let port = parse_port(&authority[end..])?;
    let name = authority[..end].strip_suffix(b".").unwrap_or(&authority[..end]);
    if name.is_empty() {
        return Err(BadHost::Empty);
    }
    Ok(Host { name: lower_case(name, upper)?, port })
}

/// What a byte of a name is.
const DOT: u8 = 1;
const DOTS: u8 = 2;
const UPPER: u8 = 4;
const BAD: u8 = 8;

static KINDS: [u8; 256] = {
    let mut kinds = [BAD; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => 0,
            b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => 0,
            b'.' => DOT,
            b'A'..=b'Z' => UPPER,
            _ => BAD,
        };
        byte += 1;
    }
    kinds
};

/// What is wrong with a name: whatever comes first.
fn bad(name: &[u8]) -> BadHost {
    let wrong = name.iter().enumerate().find(|(at, byte)| {
        let two = **byte == b'.' && *at > 0 && name[at - 1] == b'.';
        two || KINDS[usize::from(**byte)] == BAD
    });
    match wrong {
        Some((_, b'@')) => BadHost::UserInfo,
        _ => BadHost::Character,
    }
}

fn parse_literal(authority: &[u8]) -> Result<Host<'_>, BadHost> {
    let close = authority.iter().position(|byte| *byte == b']').ok_or(BadHost::Literal)?;
    let (literal, port) = authority.split_at(close + 1);
    let address = std::str::from_utf8(&literal[1..close]).map_err(|_| BadHost::Literal)?;
    address.parse::<Ipv6Addr>().map_err(|_| BadHost::Literal)?;
    let upper = address.bytes().any(|byte| byte.is_ascii_uppercase());
    Ok(Host { name: lower_case(literal, upper)?, port: parse_port(port)? })
}

/// Reads what follows the name: nothing, or a colon and the port.
fn parse_port(text: &[u8]) -> Result<Option<u16>, BadHost> {
    let digits = match text {
        [] | [b':'] => return Ok(None),
        [b':', digits @ ..] => digits,
        _ => return Err(BadHost::Literal),
    };
    if digits.iter().all(u8::is_ascii_digit) {
        let number = digits.iter().try_fold(0_u16, |number, digit| {
            number.checked_mul(10)?.checked_add(u16::from(digit - b'0'))
        });
        return number.map(Some).ok_or(BadHost::Port);
    }
    let is_word = digits.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte));
    if is_word {
        Ok(None)
    } else if digits.contains(&b'@') {
        Err(BadHost::UserInfo)
    } else {
        Err(BadHost::Port)
    }
}

fn lower_case(name: &[u8], upper: bool) -> Result<Cow<'_, str>, BadHost> {
    let name = std::str::from_utf8(name).map_err(|_| BadHost::Character)?;
    Ok(if upper { Cow::Owned(name.to_ascii_lowercase()) } else { Cow::Borrowed(name) })
}

#[cfg(test)]
mod tests {
    use super::{BadHost, parse};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::borrow::Cow;

    fn host(authority: &str) -> Result<(String, Option<u16>), BadHost> {
        parse(authority.as_bytes()).map(|host| (host.name.into_owned(), host.port))
    }

    #[test]
    fn names_lose_their_case_their_final_dot_and_their_port() {
        let plain = |port| Ok(("host.test".to_owned(), port));
        assert_eq!(host("host.test"), plain(None));
        assert_eq!(host("HOST.Test"), plain(None));
        assert_eq!(host("host.test."), plain(None));
        assert_eq!(host("host.test.:8080"), plain(Some(8080)));
        assert_eq!(host("host.test:65535"), plain(Some(65535)));
        assert_eq!(host("host.test:0"), plain(Some(0)));
        assert_eq!(host("host.test:"), plain(None));
        // Recorded: ingress-nginx takes this.
        assert_eq!(host("host.test:abc"), plain(None));
        assert!(matches!(
            parse(b"host.test:80").map(|host| host.name),
            Ok(Cow::Borrowed("host.test"))
        ));
    }

    #[test]
    fn odd_names_that_no_server_has_are_still_names() {
        for name in [".wildcard.test", "a_b.test", "1.2.3.4", "a", "_", "*.test"] {
            assert_eq!(host(name), Ok((name.to_owned(), None)));
        }
    }

    #[test]
    fn addresses_of_ipv6_stand_in_brackets() {
        assert_eq!(host("[::1]"), Ok(("[::1]".to_owned(), None)));
        assert_eq!(host("[2001:DB8::1]:443"), Ok(("[2001:db8::1]".to_owned(), Some(443))));
        for bad in
            ["[::1", "[]", "[::1]x", "[::1]]", "[1.2.3.4]", "[::1%25eth0]", "[v1.x]", "[a.test]"]
        {
            assert_eq!(host(bad), Err(BadHost::Literal), "{bad}");
        }
        assert_eq!(host("::1"), Err(BadHost::Port));
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for bad in ["", ".", ":80", ".:80"] {
            assert_eq!(host(bad), Err(BadHost::Empty), "{bad}");
        }
        for bad in [
            "a b", "a/x", "a..b", "a\0.evil", "a\tb", "a\u{7f}", "ü", "a%41", "a?b", "a#b", "a\\b",
            "a]", "a\"b",
        ] {
            assert_eq!(host(bad), Err(BadHost::Character), "{bad}");
        }
        for bad in ["user@a", "user:secret@a", "user:1@a"] {
            assert_eq!(host(bad), Err(BadHost::UserInfo), "{bad}");
        }
        for bad in ["a:99999", "a:65536", "a:80:90", "a:-1x/", "a: 80", "a:8 0", "[::1]:70000"] {
            assert_eq!(host(bad), Err(BadHost::Port), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_its_own_name(authority in "[A-Za-z0-9._~:@\\[\\]-]{0,12}") {
            let Ok(host) = parse(authority.as_bytes()) else { return Ok(()) };
            let again = parse(host.name.as_bytes());
            prop_assert_eq!(again.map(|again| (again.name, again.port)), Ok((host.name.clone(), None)));
            prop_assert!(!host.name.bytes().any(|byte| byte.is_ascii_uppercase()));
            prop_assert!(!host.name.ends_with('.'));
        }

        #[test]
        fn every_port_is_read_and_case_is_not(name in "[A-Za-z][A-Za-z0-9-]{0,9}(\\.[a-z]{1,5})?", port: u32) {
            let port = port % 100_000;
            let authority = format!("{name}:{port}");
            let parsed = parse(authority.as_bytes());
            match u16::try_from(port) {
                Ok(port) => {
                    let host = parsed.expect("a valid port");
                    prop_assert_eq!((&*host.name, host.port), (&*name.to_lowercase(), Some(port)));
                }
                Err(_) => prop_assert!(parsed.is_err()),
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_printable(authority: Vec<u8>) {
            if let Ok(host) = parse(&authority) {
                prop_assert!(host.name.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
