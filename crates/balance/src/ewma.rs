//! The better one of two: a moving average of response times, weighted by age (ingress-nginx: `load-balance: ewma`).

use std::sync::atomic::{AtomicU64, Ordering};

/// Seconds in which what was measured loses weight by the factor e.
const DECAY: f32 = 10.0;

/// How slow an endpoint has been lately, in seconds, and when that was last looked at. All threads share it; a change
/// that meets another one is left out, as in ingress-nginx, rather than waited for.
#[derive(Debug, Default)]
pub struct Score(AtomicU64);

impl Score {
    /// What an endpoint starts with that comes to others: their mean.
    pub(crate) fn starting(seconds: f32, now: u32) -> Self {
        Self(AtomicU64::new(pack(seconds, now)))
    }

    /// The score with its age, for a copy.
    pub(crate) fn copy(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }

    /// Whether nothing has been measured yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// The score as it was when it was last looked at.
    pub(crate) fn last(&self) -> f32 {
        unpack(self.0.load(Ordering::Relaxed)).0
    }

    /// The score at `now` (milliseconds of the upstream's own clock).
    pub fn at(&self, now: u32) -> f32 {
        decayed(self.0.load(Ordering::Relaxed), 0.0, now)
    }

    /// Takes a response time in.
    pub fn measured(&self, seconds: f32, now: u32) {
        let before = self.0.load(Ordering::Relaxed);
        let after = pack(decayed(before, seconds, now), now);
        // Whoever was faster has it.
        let _ = self.0.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn pack(seconds: f32, now: u32) -> u64 {
    (u64::from(now) << 32) | u64::from(seconds.to_bits())
}

fn unpack(packed: u64) -> (f32, u32) {
    (f32::from_bits(packed as u32), (packed >> 32) as u32)
}

fn decayed(packed: u64, measured: f32, now: u32) -> f32 {
    let (score, touched) = unpack(packed);
    // The clock starts again after 49 days; what another thread has just touched is not older than now.
    let age = now.wrapping_sub(touched);
    let age = if age > u32::MAX / 2 { 0.0 } else { age as f32 / 1000.0 };
    let weight = (-age / DECAY).exp();
    score * weight + measured * (1.0 - weight)
}

/// The number of the better one of two endpoints, drawn of those that are not among the `tried`; the one if there is
/// but one. However many endpoints there are, only the tried ones are gone through, whose numbers rise. `random` gives
/// a number below its argument.
pub(crate) fn pick(
    tried: &[usize],
    scores: &[Score],
    now: u32,
    mut random: impl FnMut(usize) -> usize,
) -> Option<usize> {
    let untried = |rank: usize| tried.iter().fold(rank, |at, tried| at + usize::from(*tried <= at));
    let (first, second) = match scores.len().saturating_sub(tried.len()) {
        0 => return None,
        1 => return Some(untried(0)),
        2 => (0, 1),
        count => {
            let first = random(count);
            let second = random(count - 1);
            (first, if second >= first { second + 1 } else { second })
        }
    };
    let (first, second) = (untried(first), untried(second));
    Some(if scores[second].at(now) < scores[first].at(now) { second } else { first })
}

#[cfg(test)]
mod tests {
    use super::{Score, pick};
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn a_slow_answer_weighs_more_the_longer_nothing_was_heard() {
        let (soon, late) = (Score::starting(0.1, 0), Score::starting(0.1, 0));
        soon.measured(1.0, 100);
        late.measured(1.0, 10_000);
        assert!((soon.last() - (0.1 * 0.99005 + 0.00995)).abs() < 1e-4, "{}", soon.last());
        assert!((late.last() - (0.1 * 0.36788 + 0.63212)).abs() < 1e-4, "{}", late.last());
    }

    #[test]
    fn the_better_one_of_two_is_chosen() {
        let scores = [Score::starting(0.3, 0), Score::starting(0.1, 0), Score::starting(0.2, 0)];
        assert_eq!(pick(&[], &scores, 1, |_| 0), Some(1));
        assert_eq!(pick(&[1], &scores, 1, |_| 0), Some(2));
        assert_eq!(pick(&[1, 2], &scores, 1, |_| 0), Some(0));
        assert_eq!(pick(&[0, 1, 2], &scores, 1, |_| 0), None);
    }

    #[test]
    fn two_that_never_answered_are_equals_and_two_different_ones_are_drawn() {
        let scores = [Score::default(), Score::default(), Score::default()];
        for first in 0..3 {
            for second in 0..2 {
                let mut draws = [first, second].into_iter();
                let drawn = pick(&[], &scores, 5, |_| draws.next().expect("two draws"));
                assert_eq!(drawn, Some(first), "the first of two equals");
            }
        }
    }

    proptest! {
        #[test]
        fn a_score_stays_within_what_was_measured(times in prop::collection::vec((0u32..5000, 0.0f32..60.0), 1..50)) {
            let score = Score::default();
            let mut now = 0;
            let mut most = 0.0f32;
            for (later, seconds) in times {
                now += later;
                most = most.max(seconds);
                score.measured(seconds, now);
                prop_assert!(score.at(now) >= 0.0 && score.at(now) <= most * 1.0001);
            }
        }

        #[test]
        fn the_worst_of_all_is_never_chosen_while_others_are_there(count in 3usize..10, worst in any::<prop::sample::Index>(), draws in any::<(usize, usize)>()) {
            let worst = worst.index(count);
            let scores: Vec<Score> = (0..count).map(|at| Score::starting(if at == worst { 2.0 } else { 1.0 }, 0)).collect();
            let mut draws = [draws.0, draws.1].into_iter();
            let found = pick(&[], &scores, 0, |below| draws.next().expect("two draws") % below);
            prop_assert!(found != Some(worst));
        }

        #[test]
        fn each_that_was_not_tried_may_be_drawn_and_no_other(
            tried in prop::collection::btree_set(0usize..12, 0..12),
        ) {
            let scores: Vec<Score> = (0..12).map(|_| Score::default()).collect();
            let tried: Vec<usize> = tried.into_iter().collect();
            let left = 12 - tried.len();
            let drawn = (0..left).filter_map(|first| {
                let mut draws = [first, 0].into_iter();
                pick(&tried, &scores, 0, |_| draws.next().expect("two draws"))
            });
            let drawn: std::collections::BTreeSet<usize> = drawn.collect();
            prop_assert!(tried.iter().all(|tried| !drawn.contains(tried)));
            // Of two that are left none is drawn by chance, and of equals it is the first.
            prop_assert_eq!(drawn.len(), if left == 2 { 1 } else { left });
        }
    }
}
