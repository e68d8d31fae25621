//! How full is what requests come to, and how often there was no room: for the page and `/metrics`.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How full something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// How much there is.
    pub now: u64,
    /// How much there may be.
    pub most: u64,
    /// How often there was no room.
    pub refused: u64,
}

/// What requests come to, and how full it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowds {
    /// Copies for mirrors that are in flight.
    pub copies: Crowd,
    /// Passwords that wait to be computed, where most wait.
    pub passwords: Crowd,
    /// Bytes of answers of authenticators that are remembered; answers that were forgotten for others.
    pub answers: Crowd,
    /// Hosts of URLs with variables whose addresses are kept; those that were forgotten for others.
    pub hosts: Crowd,
    /// Numbers of digest authentication in use; how often there was no room for one.
    pub digests: Crowd,
    /// Clients in the fullest zone that an `http-snippet` declares; those that zones had no room for.
    pub zones: Crowd,
    /// Certificates that wait for their turn to be asked about; those that found no room. Nothing without OCSP.
    pub ocsp: Crowd,
    /// Connections that are carried on by the name in their ClientHello; those that got no place, or lost it.
    pub carried: Crowd,
    /// Tries that a route asks for and that its namespace had none left for.
    pub tries: u64,
    /// Handshakes that failed since a namespace has long keys.
    pub handshakes: u64,
    /// Lines about failed requests of a namespace that were left out.
    pub lines: u64,
}

/// What one thread counts. Nobody else writes: a load and a store.
#[derive(Debug, Default)]
pub(crate) struct OfThread {
    /// Copies in flight.
    pub(crate) copies: AtomicU64,
    /// Copies that were left out.
    pub(crate) left_out: AtomicU64,
    /// Tries that there was no budget for.
    pub(crate) tries: AtomicU64,
}

/// One more, by the only thread that writes it.
pub(crate) fn add(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// What all threads count.
#[derive(Debug, Default)]
pub(crate) struct Threads(Mutex<Vec<Arc<OfThread>>>);

impl Threads {
    /// Where a thread counts.
    pub(crate) fn join(&self) -> Arc<OfThread> {
        let counts = Arc::<OfThread>::default();
        self.0.lock().push(counts.clone());
        counts
    }

    /// The copies of all, of which each thread may have so many, and tries that there was no budget for.
    pub(crate) fn sum(&self, copies_of_one: u64) -> (Crowd, u64) {
        let threads = self.0.lock();
        let sum = |what: fn(&OfThread) -> &AtomicU64| -> u64 {
            threads.iter().map(|thread| what(thread).load(Ordering::Relaxed)).sum()
        };
        let copies = Crowd {
            now: sum(|thread| &thread.copies),
            most: copies_of_one * threads.len() as u64,
            refused: sum(|thread| &thread.left_out),
        };
        (copies, sum(|thread| &thread.tries))
    }
}
