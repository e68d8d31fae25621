//! How long a peer may keep us waiting: so long at once, and on the whole no longer than a slow but honest one needs.

use crate::timer::{Elapsed, Timer};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes per second that a peer must manage on average, once its idle time is used up (docs/limits.md).
const FLOOR: u64 = 500;

/// The waiting that a peer caused. Time in which nobody waits for it does not count, and drips do not refresh it.
#[derive(Debug)]
pub struct Patience {
    idle: Duration,
    waited: Duration,
    since: Option<Instant>,
    bytes: u64,
}

impl Patience {
    /// At most `idle` between two signs of progress.
    pub fn new(idle: Duration) -> Self {
        Self { idle, waited: Duration::ZERO, since: None, bytes: 0 }
    }

    /// The peer took or gave `bytes`.
    pub fn progressed(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Nothing moves: ready when that has lasted too long.
    pub fn poll_exhausted(&mut self, timer: &Timer, cx: &mut Context<'_>) -> Poll<Elapsed> {
        if self.since.is_none() {
            self.since = Some(Instant::now());
            let earned = self.idle + Duration::from_secs(self.bytes / FLOOR);
            timer.reset(self.idle.min(earned.saturating_sub(self.waited)));
        }
        timer.poll(cx)
    }
}
