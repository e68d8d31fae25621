//! Whether a client's certificate descends from the authorities of a host, in the words of OpenSSL
//! (`$ssl_client_verify` of ngx_http_ssl_module).

use super::between::Authorities;
use super::may_sign;
use super::revocations::{self, Budget, RevocationList};
use super::roots::Roots;
use super::ways;
use model::policy::{ClientDemand, ClientErrorPage, ClientVerification};
use parking_lot::Mutex;
use rustls::DistinguishedName;
use rustls::pki_types::{CertificateDer, UnixTime};
use shares::WeakMap;
use std::cell::Cell;
use std::sync::{Arc, Weak};
use webpki::{EndEntityCert, Error, KeyUsage, VerifiedPath};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// Bytes of the names of authorities that a handshake tells a client at most: TLS has no room for more than twice that.
const LONGEST_NAMES: usize = 32 << 10;

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

/// Certificates of clients, as a host asks for them, ready for use.
#[derive(Debug)]
pub struct Verifier {
    /// What it was made of.
    pub settings: Arc<ClientVerification>,
    trusted: Arc<Trusted>,
}

/// Whom one Secret trusts: what is large, and does not hang on what else is asked.
#[derive(Debug)]
struct Trusted {
    authorities: Arc<[Arc<[u8]>]>,
    lists: Arc<[Arc<[u8]>]>,
    roots: Roots,
    others: Authorities,
    revocations: Vec<RevocationList>,
    /// The names of the authorities, which handshakes tell; none where they are so long that each would be a burden.
    subjects: Vec<DistinguishedName>,
}

/// What verdicts hang on, for who remembers one; keeps nothing of it alive.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    trusted: Weak<Trusted>,
    depth: u32,
}

impl Judge {
    /// Whether it is this one.
    pub(super) fn is(&self, verifier: &Verifier) -> bool {
        // An address is nobody else's as long as it is known here.
        std::ptr::eq(self.trusted.as_ptr(), &*verifier.trusted)
            && self.depth == verifier.settings.depth
    }
}

impl Trusted {
    /// Takes the authorities apart; what cannot be read is trusted by nobody.
    fn new(settings: &ClientVerification) -> Self {
        let mut trusted = Self {
            authorities: settings.authorities.clone(),
            lists: settings.revocations.clone(),
            roots: Roots::default(),
            others: Authorities::default(),
            revocations: Vec::new(),
            subjects: subjects(&settings.authorities),
        };
        for authority in settings.authorities.iter() {
            if let Err(other) = trusted.roots.add(CertificateDer::from(authority.to_vec())) {
                trusted.others.add(other);
            }
        }
        for list in settings.revocations.iter() {
            match RevocationList::new(list) {
                Ok(list) => trusted.revocations.push(list),
                Err(error) => tracing::error!(secret = settings.secret, %error,
                    "a revocation list cannot be used; clients of its authority are refused"),
            }
        }
        trusted
    }

    fn is_of(&self, settings: &ClientVerification) -> bool {
        self.authorities == settings.authorities && self.lists == settings.revocations
    }
}

impl Verifier {
    /// A verifier that shares nothing with others.
    pub fn new(settings: Arc<ClientVerification>) -> Self {
        Self { trusted: Arc::new(Trusted::new(&settings)), settings }
    }

    /// The subjects of the authorities; none where they are so long that every handshake would be a burden.
    pub fn subjects(&self) -> &[DistinguishedName] {
        &self.trusted.subjects
    }

    /// Who judges: verifiers that differ only in what else they ask think the same of a chain.
    pub(super) fn judge(&self) -> Judge {
        Judge { trusted: Arc::downgrade(&self.trusted), depth: self.settings.depth }
    }

    /// What a chain is worth at this time; its first certificate is the client's.
    pub fn verdict(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Verdict {
        let [leaf, rest @ ..] = chain else { return Verdict::Bad("certificate verify error") };
        if self.settings.authorities.iter().any(|authority| **authority == **leaf)
            && is_self_issued(leaf)
        {
            return self.pinned(leaf, now);
        }
        let second = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let above = match X509Certificate::from_der(leaf) {
            Ok((_, old)) if old.version() != X509Version::V3 => {
                return self.of_an_old_version(&old, chain, second);
            }
            Ok((_, read)) => self.trusted.others.above(&read, rest),
            Err(_) => return Verdict::Bad("certificate verify error"),
        };
        let Ok(end) = EndEntityCert::try_from(leaf) else {
            return Verdict::Bad("certificate verify error");
        };
        let (refused, budget) = (Cell::new(None), Budget::default());
        let is_fit = |path: &VerifiedPath<'_>| {
            self.path(leaf, path, second, &budget).map_err(|reason| {
                refused.set(Some(reason));
                Error::UnknownIssuer
            })
        };
        let (roots, usage) = (self.trusted.roots.anchors(), KeyUsage::client_auth());
        let verified = ways::lead_to_root(&end, roots, &above.certificates, now, usage, &is_fit);
        match (verified, refused.get()) {
            (Ok(()), _) => Verdict::Good,
            (Err(_), Some(reason)) => Verdict::Bad(reason),
            (Err(Error::UnknownIssuer), None) if above.is_forged => {
                Verdict::Bad("certificate signature failure")
            }
            (Err(error), None) => refusal(&error, chain),
        }
    }

    /// What OpenSSL asks of a path besides what webpki has looked at. webpki goes on to another one after a refusal,
    /// and counts only its own signatures.
    fn path(
        &self,
        leaf: &CertificateDer<'_>,
        path: &VerifiedPath<'_>,
        now: i64,
        budget: &Budget,
    ) -> Result<(), &'static str> {
        budget.is_left()?;
        let between: Vec<CertificateDer<'_>> =
            path.intermediate_certificates().map(|one| one.der()).collect();
        if between.len() > usize::try_from(self.settings.depth).unwrap_or(usize::MAX) {
            return Err("certificate chain too long");
        }
        let root =
            self.trusted.roots.certificate(path.anchor(), now).ok_or("certificate verify error")?;
        let read = |der| X509Certificate::from_der(der).map(|(_, one)| one);
        let all = std::iter::once(leaf).chain(&between).chain([root]).map(|der| read(der));
        let all = all.collect::<Result<Vec<_>, _>>().map_err(|_| "certificate verify error")?;
        self.certificates(&all, now, budget)
    }

    /// The same of the certificates themselves, from the client's up to the root.
    fn certificates(
        &self,
        all: &[X509Certificate<'_>],
        now: i64,
        budget: &Budget,
    ) -> Result<(), &'static str> {
        let [client, authorities @ ..] = all else { return Err("certificate verify error") };
        may_sign::as_client(client)?;
        let mut below = client;
        in_time(client, now)?;
        for authority in authorities {
            in_time(authority, now)?;
            may_sign::clients(authority)?;
            if !self.settings.revocations.is_empty() {
                revocations::check(&self.trusted.revocations, below, authority, now, budget)?;
            }
            below = authority;
        }
        Ok(())
    }

    /// A certificate without extensions, as `openssl x509 -req` writes it, which webpki does not read: taken where a
    /// root has signed it.
    fn of_an_old_version(
        &self,
        leaf: &X509Certificate<'_>,
        chain: &[CertificateDer<'_>],
        now: i64,
    ) -> Verdict {
        // The names of anchors have no tag before them.
        let issuer = leaf.issuer().as_raw();
        let anchors = self.trusted.roots.anchors().iter();
        let named = anchors.filter(|anchor| issuer.ends_with(anchor.subject.as_ref()));
        let roots = named.filter_map(|one| self.trusted.roots.certificate(one, now));
        match ways::issuer_of(leaf, roots.map(AsRef::as_ref)) {
            None => refusal(&Error::UnknownIssuer, chain),
            Some(root) => match self.certificates(&[leaf.clone(), root], now, &Budget::default()) {
                Ok(()) => Verdict::Good,
                Err(reason) => Verdict::Bad(reason),
            },
        }
    }

    /// A self-signed certificate that is an authority itself, which OpenSSL takes, too.
    fn pinned(&self, leaf: &CertificateDer<'_>, now: UnixTime) -> Verdict {
        let Ok((_, certificate)) = X509Certificate::from_der(leaf) else {
            return Verdict::Bad("certificate verify error");
        };
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match in_time(&certificate, now).and_then(|()| may_sign::as_client(&certificate)) {
            Err(reason) => Verdict::Bad(reason),
            // A list of revocations that the certificate signs itself would prove nothing.
            Ok(()) if !self.settings.revocations.is_empty() => {
                Verdict::Bad("unable to get certificate CRL")
            }
            Ok(()) => Verdict::Good,
        }
    }
}

/// The names of authorities, unless they are too long.
fn subjects(authorities: &[Arc<[u8]>]) -> Vec<DistinguishedName> {
    let subject = |der: &Arc<[u8]>| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        Some(DistinguishedName::from(certificate.subject().as_raw().to_vec()))
    };
    let all: Vec<_> = authorities.iter().filter_map(subject).collect();
    let bytes: usize = all.iter().map(|name| 2 + name.as_ref().len()).sum();
    if bytes > LONGEST_NAMES { Vec::new() } else { all }
}

/// Whether a certificate is valid at this second; OpenSSL's reason if not.
pub(super) fn in_time(certificate: &X509Certificate<'_>, now: i64) -> Result<(), &'static str> {
    let validity = certificate.validity();
    match () {
        () if now < validity.not_before.timestamp() => Err("certificate is not yet valid"),
        () if now > validity.not_after.timestamp() => Err("certificate has expired"),
        () => Ok(()),
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

/// Verifiers, as long as somebody has them: hosts that ask for the same share one, and those that trust the same share
/// what was made of that, which can be large.
#[derive(Debug, Default)]
pub struct Verifiers(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By Secret, the newest version of it.
    trusted: WeakMap<String, Trusted>,
    verifiers: WeakMap<Key, Verifier>,
}

/// What tells verifiers apart.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The address of what is trusted, which the verifier holds, so that nothing else has it.
    trusted: usize,
    secret: String,
    demand: ClientDemand,
    depth: u32,
    subject: Option<String>,
    error_page: ClientErrorPage,
    pass_certificate: bool,
}

impl Verifiers {
    /// The verifier for these settings.
    pub fn verifier(&self, settings: &Arc<ClientVerification>) -> Arc<Verifier> {
        let mut known = self.0.lock();
        let trusted = known.trusted(settings);
        let key = Key::of(settings, &trusted);
        let found = known.verifiers.get(&key);
        // Expressions may differ in more than their text.
        if let Some(found) = found.filter(|found| found.settings.subject == settings.subject) {
            return found;
        }
        let verifier = Arc::new(Verifier { settings: settings.clone(), trusted });
        known.verifiers.insert(key, &verifier);
        verifier
    }
}

impl Known {
    fn trusted(&mut self, settings: &ClientVerification) -> Arc<Trusted> {
        let newest = self.trusted.get(&settings.secret);
        newest.filter(|newest| newest.is_of(settings)).unwrap_or_else(|| {
            let trusted = Arc::new(Trusted::new(settings));
            self.trusted.insert(settings.secret.clone(), &trusted);
            trusted
        })
    }
}

impl Key {
    fn of(settings: &ClientVerification, trusted: &Arc<Trusted>) -> Self {
        Self {
            trusted: Arc::as_ptr(trusted).addr(),
            secret: settings.secret.clone(),
            demand: settings.demand,
            depth: settings.depth,
            subject: settings.subject.as_ref().map(|pattern| pattern.source().to_owned()),
            error_page: settings.error_page.clone(),
            pass_certificate: settings.pass_certificate,
        }
    }
}

#[cfg(test)]
#[path = "verifier_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "openssl_tests.rs"]
mod openssl_tests;

#[cfg(test)]
#[path = "revocation_tests.rs"]
mod revocation_tests;

#[cfg(test)]
#[path = "between_tests.rs"]
mod between_tests;

#[cfg(test)]
#[path = "ways_tests.rs"]
mod ways_tests;
