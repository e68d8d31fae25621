//! Ways from a certificate to a root, and what the signatures may cost that are looked at to find one. Who has a Secret
//! or an upstream chooses how many keys have the right name, and of which kind they are.

use super::signatures::is_issued;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm,
    TrustAnchor, UnixTime,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use webpki::{EndEntityCert, Error, ExtendedKeyUsageValidator, VerifiedPath};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What the signatures may cost by which a way to a root is looked for. webpki counts a hundred of any key.
pub(super) const TO_ROOTS: usize = 64;
/// The same of those between a certificate and a root: it is less, since others choose all of them.
const BETWEEN: usize = 32;
/// Certificates of the right name that are looked at for either at most: a Secret may have a thousand.
pub(super) const LOOKED_AT: usize = 64;
/// A signature of P-521, or of an RSA key beyond 4,096 bits, takes about so many of P-256.
const DEAR: usize = 8;
/// Bytes of a point of P-521, compressed or not.
const P521: [usize; 2] = [67, 133];
/// Bytes of an RSA key of 4,096 bits with a usual exponent.
const RSA_4096: usize = 526;

#[cfg(test)]
thread_local! {
    /// How many signatures this thread has had webpki look at.
    pub(super) static BY_WEBPKI: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What signatures may still cost that are looked at: one of a usual key is 1, one of a key that is dear [`DEAR`].
#[derive(Debug)]
pub(super) struct Effort(AtomicUsize);

impl Effort {
    pub(super) fn to_roots() -> Self {
        Self(AtomicUsize::new(TO_ROOTS))
    }

    pub(super) fn between() -> Self {
        Self(AtomicUsize::new(BETWEEN))
    }

    pub(super) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Takes what a signature of the key of a certificate costs; false if nothing is left.
    pub(super) fn takes(&self, signer: &X509Certificate<'_>) -> bool {
        self.takes_key(&signer.public_key().subject_public_key.data)
    }

    fn takes_key(&self, key: &[u8]) -> bool {
        let is_dear = P521.contains(&key.len()) || key.len() > RSA_4096;
        let cost = if is_dear { DEAR } else { 1 };
        let next = |left: usize| (left > 0).then(|| left.saturating_sub(cost));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// Has webpki look for a way from a certificate to one of the roots, within what that may cost.
pub(super) fn lead_to_root<'p>(
    end: &'p EndEntityCert<'p>,
    roots: &'p [TrustAnchor<'_>],
    between: &'p [CertificateDer<'p>],
    now: UnixTime,
    usage: impl ExtendedKeyUsageValidator,
    is_fit: &dyn Fn(&VerifiedPath<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let effort = Effort::to_roots();
    let known = default_provider().signature_verification_algorithms.all;
    let bounded: Vec<_> = known.iter().map(|of| Bounded { of: *of, effort: &effort }).collect();
    let bounded: Vec<_> =
        bounded.iter().map(|one| one as &dyn SignatureVerificationAlgorithm).collect();
    end.verify_for_usage(&bounded, roots, between, now, usage, None, Some(is_fit)).map(drop)
}

/// The first of these that has signed a certificate which webpki does not read, within what that may cost.
pub(super) fn issuer_of<'a>(
    leaf: &X509Certificate<'_>,
    among: impl Iterator<Item = &'a [u8]>,
) -> Option<X509Certificate<'a>> {
    let (effort, mut tried) = (Effort::to_roots(), Vec::new());
    let read = among.filter_map(|der| X509Certificate::from_der(der).ok());
    for (_, one) in read.take(LOOKED_AT) {
        let key = one.tbs_certificate.subject_pki.raw;
        if one.subject().as_raw() != leaf.issuer().as_raw() || tried.contains(&key) {
            continue;
        }
        if !effort.takes(&one) {
            return None;
        }
        if is_issued(leaf, &one) {
            return Some(one);
        }
        tried.push(key);
    }
    None
}

/// An algorithm that says no once nothing is left.
#[derive(Debug)]
struct Bounded<'a> {
    of: &'static dyn SignatureVerificationAlgorithm,
    effort: &'a Effort,
}

impl SignatureVerificationAlgorithm for Bounded<'_> {
    fn verify_signature(
        &self,
        key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        if !self.effort.takes_key(key) {
            return Err(InvalidSignature);
        }
        #[cfg(test)]
        BY_WEBPKI.set(BY_WEBPKI.get() + 1);
        self.of.verify_signature(key, message, signature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.of.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.of.signature_alg_id()
    }

    fn fips(&self) -> bool {
        self.of.fips()
    }
}
