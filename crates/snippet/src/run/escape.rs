//! Escapes as nginx writes them where captures of a path become part of a query or a redirect.

use model::single_byte;

/// Whether a byte has no meaning in a query, and stays as it is in one (`NGX_ESCAPE_ARGS`).
pub fn stays_in_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"#%&+;<>?\\^`{|}".contains(&byte)
}

/// Escapes what has a meaning in a query.
pub(super) fn query(text: &str) -> String {
    escaped(text, stays_in_query)
}

/// Escapes control characters but for tabs: nothing may end a header early.
pub(super) fn header(text: &str) -> String {
    let escapes = |byte: u8| byte.is_ascii_control() && byte != b'\t';
    match text.bytes().any(escapes) {
        true => escaped(text, |byte| !escapes(byte)),
        false => text.to_owned(),
    }
}

fn escaped(text: &str, keeps: impl Fn(u8) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut character = [0; 4];
    for c in text.chars() {
        let single = single_byte(c).map(|byte| [byte]);
        let bytes = match &single {
            Some(single) => single.as_slice(),
            None => c.encode_utf8(&mut character).as_bytes(),
        };
        // What is kept above ASCII is kept whole, or escaped whole: a byte that is no text by itself as well.
        if bytes.iter().all(|byte| keeps(*byte)) {
            escaped.push(c);
        } else {
            escaped.extend(bytes.iter().map(|byte| format!("%{byte:02X}")));
        }
    }
    escaped
}

/// Takes escapes back that a redirect does not need, up to its query (`NGX_UNESCAPE_REDIRECT`).
pub fn redirect(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '?' => {
                plain.push_str(rest);
                return plain;
            }
            '%' => {
                match after.get(..2).and_then(|hex| Some((hex, u8::from_str_radix(hex, 16).ok()?)))
                {
                    Some((_, b'?')) => {
                        plain.push('?');
                        plain.push_str(&after[2..]);
                        return plain;
                    }
                    Some((_, byte @ 0x26..0x7f)) => {
                        plain.push(char::from(byte));
                        rest = &after[2..];
                    }
                    Some((hex, _)) => {
                        plain.push('%');
                        plain.push_str(hex);
                        rest = &after[2..];
                    }
                    None => rest = after,
                }
            }
            c => {
                plain.push(c);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{header, query, redirect};

    #[test]
    fn a_capture_in_a_query_is_escaped_and_a_redirect_needs_fewer_escapes() {
        assert_eq!(query("a b&c=d/ü"), "a%20b%26c=d/%C3%BC");
        // U+10FFE4 stands for the single byte 0xE4.
        assert_eq!(query("a\u{10FFE4}\u{10FFFF}.php"), "a%E4%FF.php");
        assert_eq!(header("a\n\u{10FFE4}"), "a%0A\u{10FFE4}");
        assert_eq!(redirect("/a%20b%2Fc%41?x=%41"), "/a%20b/cA?x=%41");
        assert_eq!(redirect("/a%3Fb%41%zz"), "/a?b%41%zz");
        assert_eq!(header("/a\r\nSet-Cookie: x"), "/a%0D%0ASet-Cookie: x");
    }
}
