//! OCSP stapling (`enable-ocsp`): what the authority says about a certificate travels with the handshake. No handshake
//! waits for it; the first one with a certificate asks for it, and a later one has it (compat/configmap.csv).

mod fetch;
mod message;
mod quota;
mod refresh;
#[cfg(test)]
mod share_tests;

use super::Certificates;
use arc_swap::ArcSwap;
use imbl::OrdMap;
use model::Outside;
use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use wire::since_epoch;

/// Certificates that wait for their turn at most; others ask again with their next handshake.
const WAITING: usize = 256;

/// The answers of authorities that are there.
pub(super) struct Staples {
    /// By address of the certificate, which the entry holds, so that no other one has it.
    entries: ArcSwap<OrdMap<usize, Entry>>,
    writing: Mutex<()>,
    wanted: mpsc::Sender<Arc<CertifiedKey>>,
    /// How often there was no room for another one.
    full: AtomicU64,
    /// Where responders may be.
    outside: Outside,
}

impl fmt::Debug for Staples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staples").field("entries", &self.entries.load().len()).finish()
    }
}

/// A certificate that was asked about.
#[derive(Clone)]
struct Entry {
    /// The certificate without an answer.
    plain: Arc<CertifiedKey>,
    /// The same with the answer, and the second when that ends.
    stapled: Option<(Arc<CertifiedKey>, u64)>,
}

impl Staples {
    /// None yet. What is wanted is fetched by a task of the runtime that calls; it ends with the last handshake that
    /// may want something.
    pub(super) fn start(
        certificates: Arc<ArcSwap<Certificates>>,
        outside: Outside,
    ) -> Option<Arc<Self>> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (wanted, wants) = mpsc::channel(WAITING);
        let staples = Arc::new(Self {
            entries: ArcSwap::default(),
            writing: Mutex::new(()),
            wanted,
            full: AtomicU64::default(),
            outside,
        });
        runtime.spawn(refresh::run(Arc::downgrade(&staples), wants, certificates));
        Some(staples)
    }

    /// The certificate with an answer, if there is one that still counts.
    pub(super) fn staple(&self, plain: Arc<CertifiedKey>) -> Arc<CertifiedKey> {
        match self.entries.load().get(&address(&plain)) {
            Some(Entry { stapled: Some((stapled, until)), .. })
                if since_epoch().as_secs() < *until =>
            {
                stapled.clone()
            }
            Some(_) => plain,
            None => {
                // No room: the next handshake asks again.
                if let Err(TrySendError::Full(_)) = self.wanted.try_send(plain.clone()) {
                    self.full.fetch_add(1, Ordering::Relaxed);
                }
                plain
            }
        }
    }

    /// Certificates that wait for their turn, how many may, and how often there was no room.
    pub(super) fn waiting(&self) -> (u64, u64, u64) {
        let most = self.wanted.max_capacity();
        let now = most.saturating_sub(self.wanted.capacity());
        (now as u64, most as u64, self.full.load(Ordering::Relaxed))
    }

    /// Notes what is known about a certificate.
    fn put(&self, plain: &Arc<CertifiedKey>, stapled: Option<(Arc<CertifiedKey>, u64)>) {
        self.change(|entries| {
            entries.insert(address(plain), Entry { plain: plain.clone(), stapled });
        });
    }

    /// Forgets a certificate that is not served any longer.
    fn forget(&self, plain: &Arc<CertifiedKey>) {
        self.change(|entries| drop(entries.remove(&address(plain))));
    }

    fn change(&self, change: impl FnOnce(&mut OrdMap<usize, Entry>)) {
        let _writing = self.writing.lock();
        let mut entries = OrdMap::clone(&self.entries.load());
        change(&mut entries);
        self.entries.store(Arc::new(entries));
    }
}

impl Entry {
    /// Whether it is about this certificate.
    fn is_about(&self, key: &Arc<CertifiedKey>) -> bool {
        Arc::ptr_eq(&self.plain, key)
    }
}

fn address(key: &Arc<CertifiedKey>) -> usize {
    Arc::as_ptr(key) as usize
}

#[cfg(test)]
mod tests {
    use super::Staples;
    use std::sync::Arc;
    use tokio::sync::mpsc;

    #[test]
    fn what_waits_is_counted_and_what_finds_no_room() {
        let (wanted, _wants) = mpsc::channel(1);
        let staples = Staples {
            entries: Default::default(),
            writing: Default::default(),
            wanted,
            full: Default::default(),
            outside: Default::default(),
        };
        assert_eq!(staples.waiting(), (0, 1, 0));
        for _ in 0..3 {
            staples.staple(Arc::new(crate::self_signed().expect("a certificate")));
        }
        assert_eq!(staples.waiting(), (1, 1, 2));
    }
}
