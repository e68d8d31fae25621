//! RSA keys above 4,096 bits: a namespace has a bounded number of handshakes a second with them.
//!
//! A signature of 8,192 bits takes 26 ms of the thread that has the connection, 50 times one of 2,048 bits. The
//! owner of a host chooses its key, and strangers choose how often they shake hands: both would spend the time of other
//! hosts. OpenSSL takes such keys, so that who has one and few new clients goes on; sessions that are resumed need no
//! signature.

use imbl::OrdMap;
use model::CertificateId;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Handshakes of a namespace with long keys: this many a second in the long run, over all threads.
const EACH_SECOND: u32 = 10;

/// And this many at once after a while without any.
const AT_ONCE: u32 = 20;

/// Bytes of the public key (DER, with its algorithm) of RSA with 4,096 bits, and a few for a larger exponent. What is
/// longer takes long to sign with; keys of elliptic curves have 158 at most.
const LONGEST: usize = 560;

/// The budgets of namespaces that have long keys, by the certificates whose they are.
#[derive(Clone, Debug, Default)]
pub(super) struct LongKeys {
    budgets: OrdMap<CertificateId, Arc<Budget>>,
    /// Handshakes that there was nothing left for, since the start.
    refused: Arc<AtomicU64>,
}

impl LongKeys {
    /// The same certificate, but that each signature is paid for if its key is long.
    pub(super) fn bounded(
        &mut self,
        id: &CertificateId,
        mut certified: CertifiedKey,
    ) -> CertifiedKey {
        let length = certified.key.public_key().map_or(0, |key| key.len());
        if length <= LONGEST {
            self.budgets.remove(id);
            return certified;
        }
        let budget = self.of_namespace(id).unwrap_or_default();
        self.budgets.insert(id.clone(), budget.clone());
        let refused = self.refused.clone();
        certified.key = Arc::new(LongKey { key: certified.key, budget, refused });
        certified
    }

    /// There is no such certificate any more, or it is not bounded.
    pub(super) fn forget(&mut self, id: &CertificateId) {
        self.budgets.remove(id);
    }

    /// Handshakes that there was nothing left for, since the start.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// What the namespace of a certificate has already, so that neither more keys nor a renewed one are worth anything.
    fn of_namespace(&self, id: &CertificateId) -> Option<Arc<Budget>> {
        let namespace = namespace_of(id.as_str());
        let first = CertificateId::new(format!("{namespace}/"));
        let (other, budget) = self.budgets.range(first..).next()?;
        (namespace_of(other.as_str()) == namespace).then(|| budget.clone())
    }
}

/// The namespace of a Secret, `namespace/name`.
pub(super) fn namespace_of(secret: &str) -> &str {
    secret.split_once('/').map_or(secret, |(namespace, _)| namespace)
}

/// When the next signature would be due if they came at an even pace, in nanoseconds since `start`.
#[derive(Debug)]
struct Budget {
    start: Instant,
    due: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { start: Instant::now(), due: AtomicU64::new(0) }
    }
}

impl Budget {
    /// Takes a signature at a time since `start`; false if there is none left.
    fn takes(&self, now: Duration) -> bool {
        let pace = 1_000_000_000 / u64::from(EACH_SECOND);
        let ahead = pace * u64::from(AT_ONCE);
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX - ahead - pace);
        let next = |due: u64| {
            let due = due.max(now) + pace;
            (due <= now + ahead).then_some(due)
        };
        self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// A key whose signatures come out of a budget. Without one left, the handshake fails with an alert.
#[derive(Debug)]
struct LongKey {
    key: Arc<dyn SigningKey>,
    budget: Arc<Budget>,
    refused: Arc<AtomicU64>,
}

impl SigningKey for LongKey {
    /// Is asked once for each signature that will be made.
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        if self.budget.takes(self.budget.start.elapsed()) {
            return Some(signer);
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_number_at_once_and_comes_back_at_its_pace_and_no_further() {
        let budget = Budget::default();
        let taken = |second: u64| {
            let now = Duration::from_secs(second);
            (0..100).filter(|_| budget.takes(now)).count()
        };
        assert_eq!([taken(0), taken(0), taken(1), taken(1)], [20, 0, 10, 0]);
        assert_eq!([taken(1000), taken(1000)], [20, 0]);
        assert!(Budget::default().takes(Duration::MAX));
    }
}
