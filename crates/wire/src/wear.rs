//! What wears a connection out: requests, and age.

use crate::is_older;
use std::time::Duration;
use tokio::time::Instant;

/// How much of it a connection takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wear {
    /// Requests.
    pub requests: u64,
    /// How long it may live.
    pub age: Duration,
}

impl Wear {
    /// Whether so many requests, or the time since it began, are enough for a connection.
    pub fn is_reached(&self, requests: u64, since: Instant) -> bool {
        requests >= self.requests || is_older(since, self.age)
    }

    /// Less of it: so many 256ths of a tenth are given away.
    pub fn less(self, early: u8) -> Self {
        let fewer = (self.requests / 10).saturating_mul(early.into()) / 256;
        let younger = (self.age / 10).saturating_mul(early.into()) / 256;
        Self { requests: self.requests - fewer, age: self.age - younger }
    }
}

#[cfg(test)]
mod tests {
    use super::Wear;
    use crate::now;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn requests_or_age_are_enough() {
        let (most, began) = (Wear { requests: 10, age: HOUR }, now());
        assert!(!most.is_reached(9, began) && most.is_reached(10, began));
        tokio::time::advance(HOUR).await;
        assert!(most.is_reached(0, began));
    }

    #[test]
    fn a_tenth_is_given_away_at_most_whatever_there_is() {
        let most = Wear { requests: 1000, age: HOUR };
        assert_eq!(most.less(0), most);
        assert_eq!(most.less(128), Wear { requests: 950, age: HOUR * 95 / 100 });
        let endless = Wear { requests: u64::MAX, age: Duration::MAX }.less(255);
        assert!(endless.requests > u64::MAX / 10 * 9 && endless.age > Duration::MAX / 10 * 9);
    }
}
