//! How often requests may be tried again where a route says so: a share of the requests that its namespace sends to an
//! upstream, so that nobody multiplies the load of a Service that others have in common with them.

use crate::crowds::{OfThread, add};
use lru::LruCache;
use model::UpstreamId;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Requests that bring one more try.
const SHARE: u32 = 5;
/// Tries at once, before anybody has asked for one.
const MOST: u32 = 100;
/// Time that brings a fifth of a try: ten a second, however few requests there are.
const TICK: Duration = Duration::from_millis(20);
/// Budgets that a thread remembers; the one that was used longest ago is forgotten.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not 0");

/// Whose tries of which upstream.
pub(crate) type Whose = (UpstreamId, Arc<str>);

/// The budgets of one thread.
#[derive(Debug)]
pub(crate) struct RetryBudgets {
    budgets: RefCell<LruCache<Whose, Budget>>,
    counts: Arc<OfThread>,
}

impl RetryBudgets {
    /// Those of a thread that counts there.
    pub(crate) fn new(counts: Arc<OfThread>) -> Self {
        Self { budgets: RefCell::new(LruCache::new(KEPT)), counts }
    }

    /// Counts a request, which brings a part of a try.
    pub(crate) fn ask(&self, whose: &Whose) {
        self.with(whose, |budget| budget.parts = (budget.parts + 1).min(MOST * SHARE));
    }

    /// Takes a try more, if there is one left.
    pub(crate) fn take(&self, whose: &Whose) -> bool {
        let taken = self.with(whose, |budget| {
            let left = budget.parts.checked_sub(SHARE);
            budget.parts = left.unwrap_or(budget.parts);
            left.is_some()
        });
        if !taken {
            add(&self.counts.tries);
        }
        taken
    }

    fn with<T>(&self, whose: &Whose, does: impl FnOnce(&mut Budget) -> T) -> T {
        let now = wire::now();
        let mut budgets = self.budgets.borrow_mut();
        let full = || Budget { parts: MOST * SHARE, since: now };
        let budget = budgets.get_or_insert_mut_ref(whose, full);
        budget.follow(now);
        does(budget)
    }
}

/// Tries in parts, and since when time has brought none.
#[derive(Debug)]
struct Budget {
    parts: u32,
    since: Instant,
}

impl Budget {
    fn follow(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let ticks = u32::try_from(passed.as_millis() / TICK.as_millis()).unwrap_or(u32::MAX);
        if ticks >= MOST * SHARE {
            (self.parts, self.since) = (MOST * SHARE, now);
        } else {
            self.parts = (self.parts + ticks).min(MOST * SHARE);
            self.since += TICK * ticks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, MOST, RetryBudgets, SHARE, Whose};
    use model::UpstreamId;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::advance;

    fn whose(upstream: &str, namespace: &str) -> Whose {
        (UpstreamId::new(upstream.to_owned()), namespace.into())
    }

    fn taken(budgets: &RetryBudgets, whose: &Whose) -> u32 {
        (0..MOST * 2).take_while(|_| budgets.take(whose)).count() as u32
    }

    #[tokio::test(start_paused = true)]
    async fn tries_are_a_share_of_requests_and_some_each_second() {
        let threads = crate::crowds::Threads::default();
        let (budgets, own) = (RetryBudgets::new(threads.join()), whose("a", "shop"));
        assert_eq!(
            (taken(&budgets, &own), threads.sum(0).1),
            (MOST, 1),
            "who gets none is counted"
        );
        for requests in [SHARE - 1, 1, 10 * SHARE] {
            (0..requests).for_each(|_| budgets.ask(&own));
        }
        assert_eq!(taken(&budgets, &own), 11);
        for (wait, brings) in [(50, 0), (50, 1), (1000, 10), (1 << 40, MOST)] {
            advance(Duration::from_millis(wait)).await;
            assert_eq!(taken(&budgets, &own), brings, "{wait}");
        }
        (0..MOST * SHARE * 2).for_each(|_| budgets.ask(&own));
        assert_eq!(taken(&budgets, &own), MOST, "they do not pile up");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_used_up_tries_takes_nobody_elses_and_little_is_remembered() {
        let (budgets, own) = (RetryBudgets::new(Arc::default()), whose("a", "shop"));
        assert_eq!(taken(&budgets, &own), MOST);
        for other in [whose("a", "news"), whose("b", "shop")] {
            assert_eq!(taken(&budgets, &other), MOST, "{other:?}");
        }
        assert_eq!(taken(&budgets, &own), 0);
        (0..2 * KEPT.get()).for_each(|name| budgets.ask(&whose(&name.to_string(), "shop")));
        assert_eq!(budgets.budgets.borrow().len(), KEPT.get());
    }
}
