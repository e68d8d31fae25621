//! A clock that never jumps and goes on while the machine sleeps: what a lease is measured with.

use rustix::time::{ClockId, clock_gettime};
use std::ops::Add;
use std::time::Duration;

/// A moment, comparable within this machine only. (`Instant` stands still while the machine is suspended, and the wall
/// clock may be set.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// Now.
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanos))
    }

    /// From this moment to a later one; nothing, if that has passed.
    pub(crate) fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}
