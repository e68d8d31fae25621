//! Cookies of a request, as nginx finds them.

use wire::Headers;

/// The cookie of this name, as nginx looks for it (ngx_http_parse_multi_header_lines): a comma ends what is passed
/// over, and is part of a value that is looked for.
pub(super) fn find<'a>(headers: &'a Headers, name: &str) -> Option<&'a [u8]> {
    headers.all("cookie").find_map(|line| cookie_in(line, name.as_bytes()))
}

fn cookie_in<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    fn unspaced(text: &[u8]) -> &[u8] {
        let end = text.iter().position(|&byte| byte != b' ').unwrap_or(text.len());
        &text[end..]
    }
    let mut rest = line;
    while !rest.is_empty() {
        if let Some((start, after)) = rest.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            rest = unspaced(after);
            // What stands in place of the sign is passed over, also where it ends a cookie.
            let (sign, after) = rest.split_first()?;
            rest = after;
            if *sign == b'=' {
                return unspaced(rest).split(|&byte| byte == b';').next();
            }
        }
        let end = rest.iter().position(|byte| matches!(byte, b';' | b','))?;
        rest = unspaced(&rest[end + 1..]);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::find;
    use wire::Headers;

    #[test]
    fn cookies_are_told_apart_as_nginx_does() {
        // All of them as nginx 1.27.1 finds them.
        for (line, found) in [
            ("Own=always", Some("always")),
            ("own = always", Some("always")),
            ("x=1,Own=always", Some("always")),
            ("x=1, Own=always", Some("always")),
            ("Own=always ;b=2", Some("always ")),
            ("Own=always,b=2", Some("always,b=2")),
            ("xOwn=always", None),
            ("OwnX=1;Own=always", Some("always")),
            ("Own;Own=always", None),
            ("Own;x;Own=always", Some("always")),
            ("Own=;Own=always", Some("")),
            ("Own", None),
            ("Own ", None),
            ("Own=", Some("")),
            ("x=\"a;Own=always\"", Some("always\"")),
            ("x=1;;Own=always", Some("always")),
            ("x=1;\tOwn=always", None),
            ("Own=always;", Some("always")),
            ("", None),
        ] {
            let mut headers = Headers::default();
            headers.add("Cookie", line);
            assert_eq!(find(&headers, "own"), found.map(str::as_bytes), "{line:?}");
        }
    }
}
