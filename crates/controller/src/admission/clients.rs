//! Whose reviews are taken, where somebody says so: certificates of clients, judged by webpki within bounds. Whoever
//! reaches the port may send what he likes, and one thread carries all connections.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Bytes of a client's certificates at most, as on the ports of traffic.
const LONGEST_CHAIN: usize = 16 << 10;
/// Names of authorities between a client and a root at most: webpki goes no further, either.
const NAMES: usize = 6;
/// Certificates of one name among them: an authority that has renewed its key has two.
const OF_A_NAME: usize = 2;

/// Judges by `inner`, which goes every way that names allow, up to 200,000 steps, in each of which it reads all that a
/// client has sent, and looks at no signature before it has come to a root. It gets only what can lead to one, which
/// has 64 ways at most.
#[derive(Debug)]
pub(super) struct Bounded {
    pub(super) inner: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for Bounded {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let bytes: usize = std::iter::once(leaf).chain(sent).map(|one| one.len()).sum();
        if bytes > LONGEST_CHAIN {
            return Err(Error::InvalidCertificate(CertificateError::BadEncoding));
        }
        self.inner.verify_client_cert(leaf, &above(leaf, sent), now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// What of a client's certificates is named as the issuer of its own, or of another one of these, by name after name.
fn above<'a>(leaf: &CertificateDer<'_>, sent: &'a [CertificateDer<'a>]) -> Vec<CertificateDer<'a>> {
    let read = |der: &'a CertificateDer<'a>| {
        X509Certificate::from_der(der).ok().map(|(_, one)| (der, one))
    };
    let sent: Vec<_> = sent.iter().filter_map(read).collect();
    let Ok((_, leaf)) = X509Certificate::from_der(leaf) else { return Vec::new() };
    let (mut names, mut found) = (vec![leaf.issuer().as_raw()], Vec::new());
    let mut next = 0;
    while let Some(name) = names.get(next).copied() {
        next += 1;
        let named = sent.iter().filter(|(_, one)| one.subject().as_raw() == name);
        for &(der, ref one) in named.take(OF_A_NAME) {
            found.push(CertificateDer::from(&**der));
            let issuer = one.issuer().as_raw();
            if names.len() < NAMES && !names.contains(&issuer) {
                names.push(issuer);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Bounded, LONGEST_CHAIN, above};
    use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
    use rustls::RootCertStore;
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::pki_types::{CertificateDer, UnixTime};
    use rustls::server::WebPkiClientVerifier;
    use rustls::server::danger::ClientCertVerifier;
    use std::sync::Arc;

    fn params(name: &str, is_ca: bool) -> CertificateParams {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params
    }

    fn key() -> KeyPair {
        KeyPair::generate().expect("a key")
    }

    /// A certificate of this name with a key of its own, and what it may issue.
    fn issued(name: &str, by: &Issuer<'_, KeyPair>) -> (Certificate, Issuer<'static, KeyPair>) {
        let key = key();
        let certificate = params(name, true).signed_by(&key, by).expect("signed");
        (certificate, Issuer::new(params(name, true), key))
    }

    fn root() -> (Certificate, Issuer<'static, KeyPair>) {
        let key = key();
        let certificate = params("root", true).self_signed(&key).expect("signed");
        (certificate, Issuer::new(params("root", true), key))
    }

    fn client(by: &Issuer<'_, KeyPair>) -> CertificateDer<'static> {
        params("client", false).signed_by(&key(), by).expect("signed").der().clone()
    }

    fn bounded(root: &Certificate) -> Bounded {
        let mut roots = RootCertStore::empty();
        roots.add(root.der().clone()).expect("an authority");
        let provider = Arc::new(default_provider());
        let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Bounded { inner: inner.build().expect("a verifier") }
    }

    #[test]
    fn a_client_comes_in_through_what_it_sends_in_any_order_and_through_a_root_that_is_none() {
        let (root, by_root) = root();
        let ((upper, by_upper), (stray, _)) =
            (issued("upper", &by_root), issued("stray", &by_root));
        let (lower, by_lower) = issued("lower", &by_upper);
        let leaf = client(&by_lower);
        let sent = [&upper, &stray, &lower].map(|one| one.der().clone());
        let now = UnixTime::now();
        assert!(bounded(&root).verify_client_cert(&leaf, &sent, now).is_ok());
        assert!(bounded(&lower).verify_client_cert(&leaf, &[], now).is_ok());
        assert!(bounded(&root).verify_client_cert(&leaf, &sent[..1], now).is_err());
    }

    #[test]
    fn of_names_that_issue_each_other_few_certificates_are_looked_at() {
        let (_, by_root) = root();
        let ((x, by_x), (y, by_y)) = (issued("x", &by_root), issued("y", &by_root));
        let mut sent: Vec<CertificateDer<'_>> = vec![x.der().clone(), y.der().clone()];
        for _ in 0..10 {
            sent.push(issued("x", &by_y).0.der().clone());
            sent.push(issued("y", &by_x).0.der().clone());
        }
        sent.rotate_left(2);
        assert_eq!(above(&client(&by_x), &sent).len(), 4);
        let (mut chain, mut by) = (Vec::new(), by_root);
        for number in 0..20 {
            let (one, next) = issued(&format!("n{number}"), &by);
            chain.push(one.der().clone());
            by = next;
        }
        assert_eq!(above(&client(&by), &chain).len(), 6);
    }

    #[test]
    fn who_sends_more_than_a_chain_has_is_refused_whoever_he_is() {
        let (root, by_root) = root();
        let (leaf, now) = (client(&by_root), UnixTime::now());
        let more = |bytes: usize| [CertificateDer::from(vec![0; bytes - leaf.len()])];
        assert!(bounded(&root).verify_client_cert(&leaf, &more(LONGEST_CHAIN), now).is_ok());
        assert!(bounded(&root).verify_client_cert(&leaf, &more(LONGEST_CHAIN + 1), now).is_err());
    }
}
