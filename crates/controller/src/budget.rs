//! So many at once, and so many each second from then on.

use crate::clock::Moment;
use std::time::Duration;

/// A bucket of tokens.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// Tokens at most.
    burst: f64,
    /// Tokens that come each second.
    rate: f64,
    left: f64,
    since: Moment,
}

impl Budget {
    /// A full bucket.
    pub(crate) fn new(burst: u32, rate: f64, now: Moment) -> Self {
        let burst = f64::from(burst);
        Self { burst, rate, left: burst, since: now }
    }

    /// Takes a token, or says how long it takes until there is one.
    pub(crate) fn take(&mut self, now: Moment) -> Result<(), Duration> {
        self.take_above(0.0, now)
    }

    /// The same where half of the burst is to be left for what weighs more.
    pub(crate) fn take_leaving_half(&mut self, now: Moment) -> Result<(), Duration> {
        self.take_above(self.burst / 2.0, now)
    }

    /// Gives back a token that was not needed.
    pub(crate) fn give_back(&mut self, now: Moment) {
        self.fill(now);
        self.left = (self.left + 1.0).min(self.burst);
    }

    /// Whether nothing was taken that has not come again.
    pub(crate) fn is_full(&mut self, now: Moment) -> bool {
        self.fill(now);
        self.left >= self.burst
    }

    fn fill(&mut self, now: Moment) {
        let passed = self.since.until(now).as_secs_f64();
        self.left = (self.left + passed * self.rate).min(self.burst);
        self.since = now;
    }

    fn take_above(&mut self, least: f64, now: Moment) -> Result<(), Duration> {
        self.fill(now);
        if self.left < least + 1.0 {
            return Err(Duration::from_secs_f64((least + 1.0 - self.left) / self.rate));
        }
        self.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Moment};
    use std::time::Duration;

    #[test]
    fn what_weighs_less_leaves_half_to_what_weighs_more() {
        let start = Moment::now();
        let mut budget = Budget::new(6, 2.0, start);
        (0..3).for_each(|_| budget.take_leaving_half(start).expect("half of it"));
        assert_eq!(budget.take_leaving_half(start), Err(Duration::from_millis(500)));
        (0..3).for_each(|_| budget.take(start).expect("the other half"));
        budget.take(start).expect_err("there were six");
        let later = start + Duration::from_secs(2);
        assert!(budget.take_leaving_half(start + Duration::from_secs(1)).is_err());
        budget.take_leaving_half(later).expect("four have come");
    }

    #[test]
    fn a_burst_and_then_a_steady_rate() {
        let start = Moment::now();
        let mut budget = Budget::new(3, 2.0, start);
        for _ in 0..3 {
            budget.take(start).expect("the bucket was full");
        }
        assert_eq!(budget.take(start), Err(Duration::from_millis(500)));
        budget.take(start + Duration::from_millis(500)).expect("one has come");
        budget.take(start + Duration::from_millis(600)).expect_err("the next has not");
        let later = start + Duration::from_secs(3600);
        (0..3).for_each(|_| budget.take(later).expect("it is full again"));
        budget.take(later).expect_err("it holds no more than that");
    }
}
