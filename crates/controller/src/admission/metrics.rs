//! What was reviewed, for `/metrics`.

use crate::Timings;
use lru::LruCache;
use objects::ObjectKey;
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Ingresses whose reviews are counted each; the one that was reviewed longest ago is forgotten. Anybody may ask for a
/// review of any name that an object may have.
const INGRESSES: NonZeroUsize = NonZeroUsize::new(10_000).expect("it is not zero");

/// What was reviewed so far.
#[derive(Debug)]
pub struct Reviews {
    checks: Mutex<LruCache<ObjectKey, Checks>>,
    last: Mutex<LastReview>,
    /// How long reviews took.
    pub time: Timings,
}

/// Reviews of one Ingress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Those that let it in.
    pub passed: u64,
    /// Those that did not.
    pub refused: u64,
}

/// The latest review; all zero before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastReview {
    /// The time until the object was read.
    pub parsed: Duration,
    /// The time for all of it.
    pub whole: Duration,
    /// Bytes of the request.
    pub size: usize,
}

impl Default for Reviews {
    fn default() -> Self {
        let checks = Mutex::new(LruCache::new(INGRESSES));
        Self { checks, last: Mutex::default(), time: Timings::default() }
    }
}

impl Reviews {
    pub(super) fn add(&self, ingress: &ObjectKey, passed: bool, review: LastReview) {
        let mut checks = self.checks.lock();
        let of_this = checks.get_or_insert_mut(ingress.clone(), Checks::default);
        *(if passed { &mut of_this.passed } else { &mut of_this.refused }) += 1;
        drop(checks);
        self.time.add(review.whole);
        *self.last.lock() = review;
    }

    /// The reviews of each Ingress.
    pub fn by_ingress(&self) -> Vec<(ObjectKey, Checks)> {
        let mut all: Vec<_> =
            self.checks.lock().iter().map(|(ingress, checks)| (ingress.clone(), *checks)).collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// The latest one.
    pub fn last(&self) -> LastReview {
        *self.last.lock()
    }
}
