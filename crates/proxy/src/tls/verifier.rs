//! Whether a client's certificate descends from the authorities of a host, in the words of OpenSSL
//! (`$ssl_client_verify` of ngx_http_ssl_module).

use model::policy::ClientVerification;
use rustls::DistinguishedName;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use webpki::{
    CertRevocationList, EndEntityCert, Error, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationOptionsBuilder, anchor_from_trusted_cert,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What a client's certificate is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It descends from an authority.
    Good,
    /// Its authority is none of those of the host; OpenSSL's reason.
    Unknown(&'static str),
    /// It is wrong in itself; OpenSSL's reason.
    Bad(&'static str),
}

/// The authorities of a host, ready for use.
#[derive(Debug)]
pub struct Verifier {
    /// What it was made of.
    pub settings: Arc<ClientVerification>,
    anchors: Vec<TrustAnchor<'static>>,
    /// Authorities that are no roots: they help to find the way to one.
    others: Vec<CertificateDer<'static>>,
    revocations: Vec<CertRevocationList<'static>>,
}

impl Verifier {
    /// Takes the authorities apart; what cannot be read is trusted by nobody.
    pub fn new(settings: Arc<ClientVerification>) -> Self {
        let mut verifier = Self {
            settings: settings.clone(),
            anchors: Vec::new(),
            others: Vec::new(),
            revocations: Vec::new(),
        };
        for authority in &settings.authorities {
            let der = CertificateDer::from(authority.to_vec());
            match (is_self_issued(&der), anchor_from_trusted_cert(&der)) {
                (true, Ok(anchor)) => verifier.anchors.push(anchor.to_owned()),
                _ => verifier.others.push(der),
            }
        }
        for list in &settings.revocations {
            match OwnedCertRevocationList::from_der(list) {
                Ok(list) => verifier.revocations.push(list.into()),
                Err(error) => tracing::error!(secret = settings.secret, %error,
                    "a revocation list cannot be used; clients of its authority are refused"),
            }
        }
        verifier
    }

    /// The subjects of the authorities.
    pub fn subjects(&self) -> Vec<DistinguishedName> {
        let subject = |der: &Arc<[u8]>| {
            let (_, certificate) = X509Certificate::from_der(der).ok()?;
            Some(DistinguishedName::from(certificate.subject().as_raw().to_vec()))
        };
        self.settings.authorities.iter().filter_map(subject).collect()
    }

    /// What a chain is worth at this time; its first certificate is the client's.
    pub fn verdict(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Verdict {
        let [leaf, rest @ ..] = chain else { return Verdict::Bad("certificate verify error") };
        if self.settings.authorities.iter().any(|authority| **authority == **leaf)
            && is_self_issued(leaf)
        {
            return self.pinned(leaf, now);
        }
        let Ok(end) = EndEntityCert::try_from(leaf) else {
            return Verdict::Bad("certificate verify error");
        };
        let lists: Vec<&CertRevocationList<'_>> = self.revocations.iter().collect();
        let revocation = match self.settings.revocations.is_empty() {
            true => None,
            false => match RevocationOptionsBuilder::new(&lists) {
                Ok(options) => {
                    Some(options.with_expiration_policy(ExpirationPolicy::Enforce).build())
                }
                Err(_) => return Verdict::Bad("unable to get certificate CRL"),
            },
        };
        let between: Vec<CertificateDer<'_>> =
            rest.iter().chain(&self.others).map(|der| CertificateDer::from(der.as_ref())).collect();
        let too_deep = Cell::new(false);
        let depth = usize::try_from(self.settings.depth).unwrap_or(usize::MAX);
        let verified = end.verify_for_usage(
            default_provider().signature_verification_algorithms.all,
            &self.anchors,
            &between,
            now,
            KeyUsage::client_auth(),
            revocation,
            Some(&|path| {
                if path.intermediate_certificates().count() > depth {
                    too_deep.set(true);
                    return Err(Error::MaximumPathDepthExceeded);
                }
                Ok(())
            }),
        );
        match verified {
            Ok(_) => Verdict::Good,
            Err(_) if too_deep.get() => Verdict::Bad("certificate chain too long"),
            Err(error) => refusal(&error, chain),
        }
    }

    /// A self-signed certificate that is an authority itself, which OpenSSL takes, too.
    fn pinned(&self, leaf: &CertificateDer<'_>, now: UnixTime) -> Verdict {
        let Ok((_, certificate)) = X509Certificate::from_der(leaf) else {
            return Verdict::Bad("certificate verify error");
        };
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = certificate.validity();
        let usage = certificate
            .extended_key_usage()
            .map(|usage| usage.is_none_or(|usage| usage.value.client_auth || usage.value.any));
        match () {
            () if now < validity.not_before.timestamp() => {
                Verdict::Bad("certificate is not yet valid")
            }
            () if now > validity.not_after.timestamp() => Verdict::Bad("certificate has expired"),
            () if usage != Ok(true) => Verdict::Bad("unsuitable certificate purpose"),
            // A list of revocations that the certificate signs itself would prove nothing.
            () if !self.settings.revocations.is_empty() => {
                Verdict::Bad("unable to get certificate CRL")
            }
            () => Verdict::Good,
        }
    }
}

/// OpenSSL's words for what webpki found (X509_verify_cert_error_string).
fn refusal(error: &Error, chain: &[CertificateDer<'_>]) -> Verdict {
    let last = chain.last().is_some_and(is_self_issued);
    match error {
        Error::UnknownIssuer => Verdict::Unknown(match (chain.len(), last) {
            (1, true) => "self-signed certificate",
            (1, false) => "unable to verify the first certificate",
            (_, true) => "self-signed certificate in certificate chain",
            (_, false) => "unable to get local issuer certificate",
        }),
        // What signs itself and is no authority of the host is unknown, whatever else it is.
        Error::CaUsedAsEndEntity if chain.len() == 1 && last => {
            Verdict::Unknown("self-signed certificate")
        }
        Error::CertExpired { .. } => Verdict::Bad("certificate has expired"),
        Error::CertNotValidYet { .. } => Verdict::Bad("certificate is not yet valid"),
        Error::CertRevoked => Verdict::Bad("certificate revoked"),
        Error::UnknownRevocationStatus => Verdict::Bad("unable to get certificate CRL"),
        Error::CrlExpired { .. } => Verdict::Bad("CRL has expired"),
        Error::RequiredEkuNotFoundContext(_) => Verdict::Bad("unsuitable certificate purpose"),
        Error::EndEntityUsedAsCa => Verdict::Bad("invalid CA certificate"),
        Error::PathLenConstraintViolated => Verdict::Bad("path length constraint exceeded"),
        Error::InvalidSignatureForPublicKey => Verdict::Bad("certificate signature failure"),
        _ => Verdict::Bad("certificate verify error"),
    }
}

fn is_self_issued(der: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(_, certificate)| {
        certificate.subject().as_raw() == certificate.issuer().as_raw()
    })
}

/// Verifiers by Secret: hosts with the same settings share one, revocation lists can be large.
#[derive(Debug, Default)]
pub struct Verifiers {
    known: Mutex<HashMap<String, Vec<Weak<Verifier>>>>,
}

impl Verifiers {
    /// The verifier for these settings.
    pub fn verifier(&self, settings: &Arc<ClientVerification>) -> Arc<Verifier> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known.entry(settings.secret.clone()).or_default();
        same.retain(|verifier| verifier.strong_count() > 0);
        let found = same.iter().filter_map(Weak::upgrade).find(|old| old.settings == *settings);
        found.unwrap_or_else(|| {
            let verifier = Arc::new(Verifier::new(settings.clone()));
            same.push(Arc::downgrade(&verifier));
            verifier
        })
    }
}

#[cfg(test)]
#[path = "verifier_tests.rs"]
mod tests;
