//! How long a peer may keep us waiting: so long at once, and on the whole no longer than a slow but honest one needs.

use crate::{Elapsed, Timer};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes per second that a peer must manage on average, once its idle time is used up (docs/limits.md).
const FLOOR: u64 = 500;

/// The waiting that a peer caused. Time in which nobody waits for it does not count, and drips do not refresh it.
#[derive(Debug)]
pub struct Patience {
    idle: Duration,
    floor: Option<u64>,
    waited: Duration,
    since: Option<Instant>,
    bytes: u64,
}

impl Patience {
    /// At most `idle` between two signs of progress, and no longer on the whole than the floor allows.
    pub fn new(idle: Duration) -> Self {
        Self { idle, floor: Some(FLOOR), waited: Duration::ZERO, since: None, bytes: 0 }
    }

    /// At most `idle` between two signs of progress, however many there are: for what is meant to be slow.
    pub fn between(idle: Duration) -> Self {
        Self { floor: None, ..Self::new(idle) }
    }

    /// The peer took or gave `bytes`.
    pub fn progressed(&mut self, bytes: u64) {
        self.bytes += bytes;
        if let Some(since) = self.since.take() {
            self.waited += crate::since(since);
        }
    }

    /// Nothing moves: ready when that has lasted too long.
    pub fn poll_exhausted(&mut self, timer: &Timer, cx: &mut Context<'_>) -> Poll<Elapsed> {
        if self.since.is_none() {
            self.since = Some(crate::now());
            let earned = |floor| self.idle + Duration::from_secs(self.bytes / floor);
            let left = |floor| earned(floor).saturating_sub(self.waited);
            timer.reset(self.floor.map_or(self.idle, |floor| self.idle.min(left(floor))));
        }
        timer.poll(cx)
    }
}
