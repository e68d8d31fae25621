//! PEM, as nginx reads certificates, revocation lists and keys (RFC 7468).

use pem::{EncodeConfig, LineEnding, Pem};

/// Certificates, one after the other.
pub fn certificates<'a>(der: impl IntoIterator<Item = &'a [u8]>) -> String {
    blocks("CERTIFICATE", der)
}

/// Revocation lists, one after the other.
pub fn revocations<'a>(der: impl IntoIterator<Item = &'a [u8]>) -> String {
    blocks("X509 CRL", der)
}

/// A private key in PKCS#8, PKCS#1 or SEC1.
pub fn private_key(der: &[u8]) -> String {
    blocks(key_label(der), [der])
}

/// PKCS#8 begins with version and algorithm, PKCS#1 with version and modulus, SEC1 with version 1 and the key.
fn key_label(der: &[u8]) -> &'static str {
    const INTEGER: u8 = 0x02;
    const OCTETS: u8 = 0x04;
    let header = match der.get(1) {
        Some(length) if *length < 0x80 => 2,
        Some(length) => 2 + usize::from(length & 0x7f),
        None => 0,
    };
    // After the version, which takes three bytes.
    match der.get(header + 3) {
        Some(&INTEGER) => "RSA PRIVATE KEY",
        Some(&OCTETS) => "EC PRIVATE KEY",
        _ => "PRIVATE KEY",
    }
}

fn blocks<'a>(label: &str, all: impl IntoIterator<Item = &'a [u8]>) -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    all.into_iter().map(|der| pem::encode_config(&Pem::new(label, der), lines)).collect()
}

#[cfg(test)]
mod tests {
    use super::{certificates, key_label};

    #[test]
    fn lines_have_64_characters() {
        let text = certificates([&[7_u8; 60][..]]);
        let lines: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lines, [27, 64, 16, 25]);
    }

    #[test]
    fn kinds_of_keys_are_told_apart() {
        assert_eq!(key_label(&[0x30, 0x82, 1, 1, 2, 1, 0, 0x30, 0x0d]), "PRIVATE KEY");
        assert_eq!(key_label(&[0x30, 0x82, 1, 1, 2, 1, 0, 0x02, 0x82]), "RSA PRIVATE KEY");
        assert_eq!(key_label(&[0x30, 0x77, 2, 1, 1, 0x04, 0x20]), "EC PRIVATE KEY");
    }
}
