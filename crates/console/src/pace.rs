//! How many requests a second the API answers, so that nobody who looks takes much of the processor.

use crate::query::Refusal;
use parking_lot::Mutex;
use std::time::Instant;

/// Requests at once, and in each second after that.
const AT_ONCE: f64 = 120.0;
const A_SECOND: f64 = 30.0;
/// Why others are refused.
pub(crate) const BEYOND: &str = "429: more than 30 a second";

/// A bucket of requests.
#[derive(Debug)]
pub(crate) struct Pace(Mutex<(Instant, f64)>);

impl Default for Pace {
    fn default() -> Self {
        Self(Mutex::new((Instant::now(), AT_ONCE)))
    }
}

impl Pace {
    /// Takes one out, if there is one.
    pub(crate) fn pass(&self) -> Result<(), Refusal> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Result<(), Refusal> {
        let mut bucket = self.0.lock();
        let (since, left) = *bucket;
        let left = (left + now.duration_since(since).as_secs_f64() * A_SECOND).min(AT_ONCE);
        let passes = left >= 1.0;
        *bucket = (now.max(since), if passes { left - 1.0 } else { left });
        if passes { Ok(()) } else { Err(Refusal::TooMany) }
    }
}

#[cfg(test)]
mod tests {
    use super::{A_SECOND, AT_ONCE, Pace};
    use std::time::{Duration, Instant};

    #[test]
    fn a_burst_passes_and_then_so_many_a_second() {
        let (pace, start) = (Pace::default(), Instant::now() + Duration::from_secs(1));
        let passed = |at| (0..1000).filter(|_| pace.pass_at(at).is_ok()).count();
        assert_eq!(passed(start), AT_ONCE as usize);
        assert_eq!(passed(start), 0);
        assert_eq!(passed(start + Duration::from_secs(2)), 2 * A_SECOND as usize);
    }
}
