//! Certificates without extensions, as `openssl x509 -req` writes them.

use rcgen::{KeyPair, SigningKey};
use rustls::pki_types::CertificateDer;
use x509_cert::der::asn1::BitString;
use x509_cert::der::{Decode, Encode};
use x509_cert::{Certificate, Version};

/// The same certificate in version 1, signed with this key.
pub(super) fn of_version_1(der: &CertificateDer<'_>, key: &KeyPair) -> CertificateDer<'static> {
    let mut made = Certificate::from_der(der).expect("a certificate");
    made.tbs_certificate.version = Version::V1;
    made.tbs_certificate.extensions = None;
    let signed = made.tbs_certificate.to_der().expect("it can be written");
    let signature = key.sign(&signed).expect("a signature");
    made.signature = BitString::from_bytes(&signature).expect("whole bytes");
    made.to_der().expect("it can be written").into()
}
