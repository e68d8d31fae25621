//! How long something took, counted in buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in seconds: what is to be quick, and what people notice.
pub const BOUNDS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// How long something took, counted in buckets. Anybody may add and read at any time.
#[derive(Debug, Default)]
pub struct Timings {
    /// The last one is for what exceeds all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Timings {
    /// It took so long.
    pub fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let at = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How often it took at most each bound, and at all; and the sum in seconds.
    pub fn read(&self) -> (Vec<u64>, f64) {
        let mut so_far = 0;
        let up_to = self.buckets.iter().map(|bucket| {
            so_far += bucket.load(Ordering::Relaxed);
            so_far
        });
        (up_to.collect(), self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUNDS, Timings};
    use std::time::Duration;

    #[test]
    fn times_add_up_from_bound_to_bound() {
        let timings = Timings::default();
        for milliseconds in [1, 2, 60_000] {
            timings.add(Duration::from_millis(milliseconds));
        }
        let (up_to, sum) = timings.read();
        assert_eq!(
            (up_to[0], up_to[1], up_to[BOUNDS.len() - 1], up_to[BOUNDS.len()]),
            (1, 2, 2, 3)
        );
        assert!((sum - 60.003).abs() < 1e-9, "{sum}");
    }
}
