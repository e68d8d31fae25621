//! What the loop says of itself, for `/metrics`: plain numbers that anybody may read at any time.

use crate::Timings;
use crate::fingerprint::Fingerprint;
use parking_lot::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the loop says of itself.
#[derive(Debug, Default)]
pub struct Metrics {
    now: Mutex<Progress>,
    /// From the moment that a change of an object was seen to the moment that it was served.
    pub propagation: Timings,
    /// How long the engine took to follow.
    pub applying: Timings,
}

/// How following the objects went so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Configurations that the engine took and that differ in more than endpoints: ingress-nginx would have reloaded.
    pub reloads: u64,
    /// When it took one of these last.
    pub reloaded_at: Option<SystemTime>,
    /// Those that it refused.
    pub refused: u64,
    /// Whether it took the last one; none before the first.
    pub last_applied: Option<bool>,
    /// When it took one last.
    pub applied_at: Option<SystemTime>,
    /// The generation in force.
    pub generation: u64,
    /// What tells Configurations apart: the same in every replica that serves the same; 0 after a refusal.
    pub hash: u64,
}

impl Progress {
    /// When the engine took a Configuration last, in seconds since the epoch; 0 before the first.
    pub fn applied_at_seconds(&self) -> f64 {
        seconds(self.applied_at)
    }

    /// When it took one last that differs in more than endpoints, likewise.
    pub fn reloaded_at_seconds(&self) -> f64 {
        seconds(self.reloaded_at)
    }
}

fn seconds(at: Option<SystemTime>) -> f64 {
    let since = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.map_or(0.0, |since| since.as_secs() as f64)
}

impl Metrics {
    /// How it went so far.
    pub fn progress(&self) -> Progress {
        *self.now.lock()
    }

    pub(crate) fn applied(&self, generation: u64, fingerprint: Fingerprint, took: Duration) {
        self.applying.add(took);
        let mut now = self.now.lock();
        let (at, hash) = (Some(SystemTime::now()), fingerprint.number());
        // The fingerprint leaves endpoints out. The first one may be that of nothing at all.
        let reloads = hash != now.hash || now.last_applied != Some(true);
        *now = Progress {
            reloads: now.reloads + u64::from(reloads),
            reloaded_at: if reloads { at } else { now.reloaded_at },
            last_applied: Some(true),
            applied_at: at,
            generation,
            hash,
            ..*now
        };
    }

    pub(crate) fn refused(&self) {
        let mut now = self.now.lock();
        *now = Progress { refused: now.refused + 1, last_applied: Some(false), hash: 0, ..*now };
    }
}
