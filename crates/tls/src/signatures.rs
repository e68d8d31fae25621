//! Signatures by the keys of certificates and lists that webpki does not read, such as those of version 1.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, X509Certificate, X509Version};

/// Whether what was signed is signed with this key, by the algorithm with this name (an object identifier).
pub(super) fn is_signed(
    key: &SubjectPublicKeyInfo<'_>,
    algorithm: &[u8],
    signed: &[u8],
    signature: &[u8],
) -> bool {
    let der = SubjectPublicKeyInfoDer::from(key.raw);
    let Ok(key) = RawPublicKeyEntity::try_from(&der) else { return false };
    // An identifier is the name of the algorithm with its tag and length, then parameters.
    let all = default_provider().signature_verification_algorithms.all.iter();
    let mut named =
        all.filter(|known| known.signature_alg_id().get(2..2 + algorithm.len()) == Some(algorithm));
    #[cfg(test)]
    COUNTED.set(COUNTED.get() + 1);
    named.any(|known| key.verify_signature(*known, signed, signature).is_ok())
}

#[cfg(test)]
thread_local! {
    static COUNTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many signatures this thread has looked at here.
#[cfg(test)]
pub(super) fn counted() -> usize {
    COUNTED.get()
}

/// Whether this issuer has signed a certificate.
pub(super) fn is_issued(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    let algorithm = certificate.signature_algorithm.algorithm.as_bytes();
    let signature = &certificate.signature_value;
    let signed = certificate.tbs_certificate.as_ref();
    issuer.subject().as_raw() == certificate.issuer().as_raw()
        && is_signed(issuer.public_key(), algorithm, signed, &signature.data)
}

/// Checks the signature of a handshake of TLS 1.2.
pub(super) fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let Some(key) = key_of_an_old_version(certificate) else {
        return verify_tls12_signature(message, certificate, signed, algorithms);
    };
    let wrong = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
    let key = RawPublicKeyEntity::try_from(&key).map_err(wrong)?;
    let named = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let (_, known) = named.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    let good =
        known.iter().any(|one| key.verify_signature(*one, message, signed.signature()).is_ok());
    if good {
        Ok(HandshakeSignatureValid::assertion())
    } else {
        Err(Error::InvalidCertificate(CertificateError::BadSignature))
    }
}

/// Checks the signature of a handshake of TLS 1.3.
pub(super) fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    match key_of_an_old_version(certificate) {
        None => verify_tls13_signature(message, certificate, signed, algorithms),
        Some(key) => verify_tls13_signature_with_raw_key(message, &key, signed, algorithms),
    }
}

/// The key of a certificate without extensions, as `openssl x509 -req` writes it.
fn key_of_an_old_version(der: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let is_old = certificate.version() != X509Version::V3;
    is_old.then(|| SubjectPublicKeyInfoDer::from(certificate.public_key().raw.to_vec()))
}
