//! Percentiles of exact samples.

use std::time::Duration;

/// Latencies of one measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    nanoseconds: Vec<u64>,
    sorted: bool,
}

impl Latencies {
    /// Adds a sample.
    pub(crate) fn add(&mut self, latency: Duration) {
        self.sorted = false;
        self.nanoseconds.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The smallest sample that is not smaller than the `part` of all of them, in microseconds.
    pub(crate) fn microseconds(&mut self, part: f64) -> Option<f64> {
        if !self.sorted {
            self.nanoseconds.sort_unstable();
            self.sorted = true;
        }
        let rank = (part * self.nanoseconds.len() as f64).ceil() as usize;
        let sample = self.nanoseconds.get(rank.max(1) - 1)?;
        Some(*sample as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_rank() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.microseconds(0.5), None);
        for millisecond in (1..=1000).rev() {
            latencies.add(Duration::from_millis(millisecond));
        }
        assert_eq!(latencies.microseconds(0.5), Some(500_000.0));
        assert_eq!(latencies.microseconds(0.99), Some(990_000.0));
        assert_eq!(latencies.microseconds(0.999), Some(999_000.0));
        assert_eq!(latencies.microseconds(1.0), Some(1_000_000.0));
    }
}
