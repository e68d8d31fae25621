//! What texts of a route may become a part of a message: a path, a host, a scheme. The API server checks only how long
//! they are.

use super::paths::path_of;
use crate::ingress::is_host;
use objects::gateway::{MethodMatch, PathMatch, RouteMatch};

/// Whether what a match asks for is a path, or a method of gRPC; of expressions others see to it.
pub(super) fn of_match(found: &RouteMatch) -> Result<(), String> {
    if let PathMatch::Method(called) = &found.path {
        let part = |text: &Option<String>| {
            let fits = |byte: u8| byte.is_ascii_graphic() && !b"/?#%".contains(&byte);
            match text.as_deref() {
                Some(text) if text.starts_with('.') || !text.bytes().all(fits) => {
                    Err(format!("{text:?} is no name of a service or a method of gRPC"))
                }
                _ => Ok(()),
            }
        };
        let MethodMatch { service, method, is_expression } = called;
        return if *is_expression { Ok(()) } else { part(service).and_then(|()| part(method)) };
    }
    match &found.path {
        PathMatch::Expression(_) => Ok(()),
        _ => path(&path_of(found).1),
    }
}

/// Whether a path means something: it begins with a slash, and no byte of it ends a request line or begins a query.
pub(super) fn path(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let means = |(at, byte): (usize, &u8)| match byte {
        b'?' | b'#' => false,
        b'%' => digit(at + 1) && digit(at + 2) && bytes[at + 1..at + 3] != *b"00",
        byte => byte.is_ascii_graphic(),
    };
    let within = text.split('/').try_fold(0_u32, |depth, segment| match segment {
        "" | "." => Some(depth),
        ".." => depth.checked_sub(1),
        _ => Some(depth + 1),
    });
    if bytes.first() == Some(&b'/') && bytes.iter().enumerate().all(means) && within.is_some() {
        Ok(())
    } else {
        Err(format!(
            "path {text:?} means nothing: write one that begins with / and has neither ?, # nor blanks, others as %XX"
        ))
    }
}

/// Whether a text is what names of fields and methods are made of (RFC 9110 section 5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// Whether a host can be named in a Location or to an upstream.
pub(super) fn host(text: &str) -> Result<(), String> {
    if is_host(text) && !text.starts_with('*') {
        Ok(())
    } else {
        Err(format!("hostname {text:?} is no name of a host; write one such as shop.example"))
    }
}

/// Whether a scheme is one that redirects know.
pub(super) fn scheme(text: &str) -> Result<(), String> {
    if matches!(text, "http" | "https") {
        Ok(())
    } else {
        Err(format!("scheme {text:?} is not known; write http or https"))
    }
}

#[cfg(test)]
mod tests {
    use super::{host, path};

    #[test]
    fn nothing_that_ends_a_line_or_a_path_is_one() {
        for good in ["/", "/a/b", "/a%20b", "/a/../b", "/a;b=c,d:@e", "/."] {
            assert_eq!(path(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "a",
            "/a b",
            "/a\r\nHost: z",
            "/a?b",
            "/a#b",
            "/%",
            "/%2",
            "/%zz",
            "/%00",
            "/\u{e4}",
            "/\0",
            "/..",
            "/a/../../b",
            "\t/",
        ] {
            assert!(path(bad).is_err_and(|why| why.contains("begins with /")), "{bad:?}");
        }
        assert!(host("shop.example").is_ok());
        for bad in ["", "a b", "a\r\nb", "*.a.test", "a/b", "a:80", "a@b"] {
            assert!(host(bad).is_err(), "{bad:?}");
        }
    }
}
