//! Names of certificates as nginx prints them: RFC 2253 by OpenSSL (`XN_FLAG_RFC2253`), the last part first.

use std::fmt::Write;
use x509_parser::der_parser::asn1_rs::{Any, Tag};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// OpenSSL's short names of attribute types; others are written by number.
const TYPES: [(&str, &str); 22] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.97", "organizationIdentifier"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
];

/// A name in one line: its parts from last to first, separated by commas.
pub(super) fn rfc2253(name: &X509Name<'_>) -> String {
    let parts: Vec<String> = name
        .iter_rdn()
        .map(|part| part.iter().map(attribute).collect::<Vec<_>>().join("+"))
        .collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let number = attribute.attr_type().to_id_string();
    let value = attribute.attr_value();
    match (TYPES.iter().find(|(known, _)| *known == number), text(value)) {
        (Some((_, short)), Some(text)) => format!("{short}={}", escape(&text)),
        (Some((_, short)), None) => format!("{short}={}", dump(value)),
        (None, _) => format!("{number}={}", dump(value)),
    }
}

/// The text of a value; none for what is no string.
fn text(value: &Any<'_>) -> Option<String> {
    match value.tag() {
        Tag::BmpString => {
            let units = value.data.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
            char::decode_utf16(units).collect::<Result<_, _>>().ok()
        }
        Tag::Utf8String => std::str::from_utf8(value.data).ok().map(str::to_owned),
        // One byte each: Latin-1 to OpenSSL.
        Tag::PrintableString
        | Tag::Ia5String
        | Tag::T61String
        | Tag::VisibleString
        | Tag::NumericString => Some(value.data.iter().map(|&byte| char::from(byte)).collect()),
        _ => None,
    }
}

/// `#` and the whole value in hexadecimal digits (RFC 2253 section 2.4).
fn dump(value: &Any<'_>) -> String {
    let mut der = vec![u8::try_from(value.tag().0).unwrap_or(u8::MAX)];
    match value.data.len() {
        short @ 0..=127 => der.push(short as u8),
        long => {
            let bytes = long.to_be_bytes();
            let bytes = &bytes[bytes.iter().position(|&byte| byte != 0).unwrap_or_default()..];
            der.push(0x80 | bytes.len() as u8);
            der.extend_from_slice(bytes);
        }
    }
    der.extend_from_slice(value.data);
    der.iter().fold("#".to_owned(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02X}");
        out
    })
}

/// Escapes what RFC 2253 says, control characters and all that is not ASCII.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        let edge = at == 0 || at + 1 == text.len();
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'#' if at == 0 => out.push_str("\\#"),
            b' ' if edge => out.push_str("\\ "),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{escape, rfc2253};
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    use x509_parser::prelude::{FromDer, X509Certificate};

    #[test]
    fn a_name_is_written_from_its_last_part_to_the_first() {
        let mut name = DistinguishedName::new();
        name.push(DnType::CountryName, "DE");
        name.push(DnType::OrganizationName, "Müller, Söhne");
        name.push(DnType::CustomDnType(vec![1, 2, 840, 113549, 1, 9, 1]), "a@b.test");
        name.push(DnType::CustomDnType(vec![1, 2, 3, 4]), "x");
        name.push(DnType::CommonName, "alice");
        let key = KeyPair::generate().expect("keys can be made");
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        let certificate = params.self_signed(&key).expect("certificates can be made");
        let (_, parsed) = X509Certificate::from_der(certificate.der()).expect("it is one");
        assert_eq!(
            rfc2253(parsed.subject()),
            r"CN=alice,1.2.3.4=#0C0178,emailAddress=a@b.test,O=M\C3\BCller\, S\C3\B6hne,C=DE"
        );
    }

    #[test]
    fn what_could_be_taken_for_structure_is_escaped() {
        assert_eq!(escape("#a,b+c\"d\\e<f>g;h\r\n "), r##"\#a\,b\+c\"d\\e\<f\>g\;h\0D\0A\ "##);
        assert_eq!(escape("a#b c"), "a#b c");
    }
}
