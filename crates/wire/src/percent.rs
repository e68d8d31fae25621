//! Percent-encoding (RFC 3986 section 2.1), for bytes that may not stand where they go.

/// Bytes with everything percent-encoded that is not plain. (The `percent-encoding` crate encodes all that is not
/// ASCII, also where it does no harm.)
pub fn encoded(bytes: &[u8], is_plain: impl Fn(u8) -> bool) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if is_plain(byte) {
            out.push(byte)
        } else {
            out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]])
        }
    }
    out
}

/// What any part of a URL may hold as it is (RFC 3986 section 2.3; ngx_escape_uri with NGX_ESCAPE_URI_COMPONENT).
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{encoded, is_unreserved};

    #[test]
    fn what_is_not_plain_becomes_two_digits() {
        assert_eq!(encoded(b"a-._~Z9 /\n\xfc", is_unreserved), b"a-._~Z9%20%2F%0A%FC");
        assert_eq!(encoded(b"\xfc\n", |byte| !byte.is_ascii_control()), b"\xfc%0A");
    }
}
