//! What failed, and when it is tried again: an object that the API server has an error for waits alone, and all wait
//! only while the API server does not answer anybody.

use crate::clock::Moment;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long is waited after a failure, doubled with each further one in a row.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// How often one of those that fail is named in the log.
const NAMED_EACH: Duration = Duration::from_secs(60);

/// How long to wait after that many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(LONGEST)
}

/// Somebody's write came between a read of ours and our write, and so often in a row before: as after how many failures
/// there is a [`pause`], `most` at most; none the first time.
pub(super) fn crossed_again(failures: u32, most: u32) -> Option<u32> {
    (failures > 0).then(|| failures.min(most))
}

/// The API server did not answer, or answers nobody: nothing is sent for a while.
#[derive(Debug, Default)]
pub(super) struct Silence {
    failures: u32,
    until: Option<Moment>,
}

impl Silence {
    /// It answered.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// It did not; whether that is news.
    pub(super) fn begin(&mut self, now: Moment) -> bool {
        // What was sent at the same time fails at the same time: that is one failure.
        if !self.left(now).is_zero() {
            return false;
        }
        self.failures += 1;
        self.until = Some(now + pause(self.failures));
        self.failures == 1
    }

    /// How long nothing is sent.
    pub(super) fn left(&self, now: Moment) -> Duration {
        self.until.map_or(Duration::ZERO, |until| now.until(until))
    }
}

/// Those that fail alone may be many: one of them is named in the log each minute.
#[derive(Debug, Default)]
pub(super) struct Naming(Option<Moment>);

impl Naming {
    /// Whether it is time to name one.
    pub(super) fn is_due(&mut self, now: Moment) -> bool {
        let is_due = self.0.is_none_or(|next| next <= now);
        if is_due {
            self.0 = Some(now + NAMED_EACH);
        }
        is_due
    }
}

/// What is looked at again, each in its own time: no more entries than there are objects.
#[derive(Debug)]
pub(super) struct Later<K>(BTreeSet<(Moment, K)>);

impl<K> Default for Later<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Ord> Later<K> {
    pub(super) fn insert(&mut self, at: Moment, key: K) {
        self.0.insert((at, key));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The next one whose time has come.
    pub(super) fn take(&mut self, now: Moment) -> Option<K> {
        let is_due = self.0.first().is_some_and(|(at, _)| *at <= now);
        is_due.then(|| self.0.pop_first()).flatten().map(|(_, key)| key)
    }

    /// How long until the time of one comes.
    pub(super) fn wait(&self, now: Moment) -> Option<Duration> {
        self.0.first().map(|(at, _)| now.until(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, LONGEST, Later, NAMED_EACH, Naming, Silence, crossed_again, pause};
    use crate::clock::Moment;
    use std::time::Duration;

    #[test]
    fn who_writes_between_all_the_time_is_answered_with_pauses() {
        let mut failures = 0;
        let pauses = (0..8).map(|_| {
            let found = crossed_again(failures, 3);
            failures = found.unwrap_or(0) + 1;
            found.map_or(0, |_| pause(failures).as_secs())
        });
        assert_eq!(pauses.collect::<Vec<_>>(), [0, 1, 2, 4, 4, 4, 4, 4]);
    }

    #[test]
    fn who_fails_waits_twice_as_long_each_time_up_to_a_bound() {
        assert_eq!([1, 2, 3].map(pause), [FIRST, FIRST * 2, FIRST * 4]);
        assert_eq!([10, u32::MAX].map(pause), [LONGEST, LONGEST]);
    }

    #[test]
    fn what_failed_at_the_same_time_is_one_silence_and_an_answer_ends_it() {
        let now = Moment::now();
        let mut silence = Silence::default();
        assert!(silence.left(now).is_zero());
        assert!(silence.begin(now), "it is told");
        assert!(!silence.begin(now), "told once");
        assert_eq!(silence.left(now), FIRST);
        assert!(!silence.begin(now + FIRST), "told once");
        assert_eq!(silence.left(now + FIRST), FIRST * 2);
        silence.end();
        assert!(silence.left(now).is_zero());
        assert!(silence.begin(now));
    }

    #[test]
    fn one_of_those_that_fail_is_named_each_minute() {
        let now = Moment::now();
        let mut naming = Naming::default();
        let moments = [now, now, now + NAMED_EACH / 2, now + NAMED_EACH, now + NAMED_EACH];
        assert_eq!(moments.map(|at| naming.is_due(at)), [true, false, false, true, false]);
    }

    #[test]
    fn each_is_looked_at_in_its_own_time() {
        let now = Moment::now();
        let second = Duration::from_secs(1);
        let mut later = Later::default();
        assert_eq!(later.wait(now), None);
        later.insert(now + second * 2, "b");
        later.insert(now + second, "a");
        assert_eq!((later.take(now), later.wait(now)), (None, Some(second)));
        assert_eq!(later.take(now + second), Some("a"));
        assert_eq!(later.take(now + second), None);
        assert_eq!(later.take(now + second * 3), Some("b"));
    }
}
