//! The Authorization field of a request: `Basic` as nginx reads it, `Digest` as RFC 7616 writes it.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Whatever its padding (ngx_decode_base64).
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// A name and a password.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The name, not empty.
    pub(crate) user: Vec<u8>,
    /// The password, in clear.
    pub(crate) password: Vec<u8>,
}

/// Reads `Basic <base64 of name:password>` (ngx_http_auth_basic_user).
pub(crate) fn basic(value: &[u8]) -> Option<Credentials> {
    const SCHEME: &[u8] = b"Basic ";
    let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let encoded = rest
        .strip_prefix(b" ")
        .map_or(rest, |rest| &rest[rest.iter().take_while(|&&byte| byte == b' ').count()..]);
    let end = encoded.iter().position(|&byte| byte == b'=').unwrap_or(encoded.len());
    let mut user = LENIENT.decode(&encoded[..end]).ok()?;
    let colon = user.iter().position(|&byte| byte == b':').filter(|&colon| colon > 0)?;
    let password = user.split_off(colon + 1);
    user.truncate(colon);
    // What comes after a zero byte would be no part of the password for crypt(3).
    (!password.contains(&0)).then_some(Credentials { user, password })
}

/// What a client says to prove that it knows a password.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DigestAnswer {
    pub(crate) user: Vec<u8>,
    pub(crate) realm: Vec<u8>,
    pub(crate) nonce: Vec<u8>,
    pub(crate) uri: Vec<u8>,
    pub(crate) qop: Vec<u8>,
    pub(crate) count: Vec<u8>,
    pub(crate) client_nonce: Vec<u8>,
    pub(crate) response: Vec<u8>,
}

/// Reads `Digest name=value, …`; none unless everything that counts is there once.
pub(crate) fn digest(value: &[u8]) -> Option<DigestAnswer> {
    const SCHEME: &[u8] = b"Digest ";
    let (scheme, mut rest) = value.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let mut answer = DigestAnswer::default();
    loop {
        rest = rest.trim_ascii_start();
        while let Some(after) = rest.strip_prefix(b",") {
            rest = after.trim_ascii_start();
        }
        if rest.is_empty() {
            break;
        }
        let (name, value, after) = parameter(rest)?;
        rest = after;
        let Some(place) = answer.field(name) else { continue };
        if !place.is_empty() {
            return None;
        }
        *place = value;
    }
    answer.is_complete().then_some(answer)
}

impl DigestAnswer {
    fn field(&mut self, name: &[u8]) -> Option<&mut Vec<u8>> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"username" => &mut self.user,
            b"realm" => &mut self.realm,
            b"nonce" => &mut self.nonce,
            b"uri" => &mut self.uri,
            b"qop" => &mut self.qop,
            b"nc" => &mut self.count,
            b"cnonce" => &mut self.client_nonce,
            b"response" => &mut self.response,
            _ => return None,
        })
    }

    fn is_complete(&self) -> bool {
        let Self { user, realm, nonce, uri, qop, count, client_nonce, response } = self;
        [user, realm, nonce, uri, qop, count, client_nonce, response]
            .iter()
            .all(|field| !field.is_empty())
    }
}

/// The first `name=value` or `name="value"`, and what follows it: a comma or nothing.
fn parameter(text: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let equals = text.iter().position(|&byte| !wire::is_token_byte(byte))?;
    let name = &text[..equals];
    let rest = text[equals..].strip_prefix(b"=")?;
    if name.is_empty() {
        return None;
    }
    let (value, rest) = match rest.strip_prefix(b"\"") {
        Some(quoted) => quoted_value(quoted)?,
        None => {
            let end = rest.iter().position(|&byte| !wire::is_token_byte(byte));
            let (value, rest) = rest.split_at(end.unwrap_or(rest.len()));
            (value.to_vec(), rest)
        }
    };
    let rest = rest.trim_ascii_start();
    (rest.is_empty() || rest[0] == b',').then_some((name, value, rest))
}

/// The text up to the closing quote, and what follows that.
fn quoted_value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((at, &byte)) = bytes.next() {
        match byte {
            b'"' => return Some((value, &text[at + 1..])),
            b'\\' => value.push(*bytes.next()?.1),
            _ => value.push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Credentials, basic, digest};

    fn read(value: &str) -> Option<(String, String)> {
        let Credentials { user, password } = basic(value.as_bytes())?;
        let text = |bytes| String::from_utf8(bytes).expect("the test writes text");
        Some((text(user), text(password)))
    }

    #[test]
    fn basic_credentials_are_read_as_nginx_reads_them() {
        let alice = Some(("alice".to_owned(), "wonder".to_owned()));
        assert_eq!(read("Basic YWxpY2U6d29uZGVy"), alice);
        assert_eq!(read("bAsIc    YWxpY2U6d29uZGVy"), alice);
        assert_eq!(read("Basic Ym9iOmJ1aWxkZXI"), Some(("bob".into(), "builder".into())));
        assert_eq!(read("Basic YTpiOmM="), Some(("a".into(), "b:c".into())));
        assert_eq!(read("Basic YWxpY2U6"), Some(("alice".into(), String::new())));
        for wrong in [
            "Basic",
            "Basic ",
            "Basic\tYWxpY2U6d29uZGVy",
            "Basic !!!",
            "Bearer x",
            "",
            "Basic YWxpY2U=",
            "Basic OndvbmRlcg==",
            "Basic YTpiAGM=",
            "Basic YWxpY2U6d29uZGVy x",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    const WHOLE: &str = "Digest username=\"a \\\"b\\\"\", realm=\"R\", nonce=\"n\", uri=\"/x?y\", \
        qop=auth, nc=00000001, cnonce=\"c\", response=\"r\", opaque=\"\", algorithm=MD5";

    #[test]
    fn a_digest_answer_has_quoted_and_bare_values() {
        let read = digest(WHOLE.as_bytes()).expect("it is whole");
        assert_eq!(read.user, b"a \"b\"");
        assert_eq!((read.uri.as_slice(), read.count.as_slice()), (&b"/x?y"[..], &b"00000001"[..]));
    }

    #[test]
    fn a_digest_answer_that_lacks_or_repeats_something_is_none() {
        assert_eq!(digest(WHOLE.replace("cnonce", "x").as_bytes()), None);
        assert_eq!(digest(format!("{WHOLE}, uri=\"/z\"").as_bytes()), None);
        assert_eq!(digest(WHOLE.replace("response=\"r\"", "response=\"r").as_bytes()), None);
        assert_eq!(digest(WHOLE.replace(", qop", " qop").as_bytes()), None);
    }
}
