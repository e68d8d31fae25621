//! Where a right is missing, every object is forbidden: asking for thousands of them, each in its own time, would be
//! hundreds of requests a second for nothing. They wait together, and one is tried.

use crate::clock::Moment;
use objects::ObjectKey;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// So many different objects in a row are forbidden where a right is missing: a policy may be about one.
const ROW: usize = 20;
/// How long the others wait then for one that is tried.
const PAUSE: Duration = Duration::from_secs(30);

/// What was forbidden since something was written last. Namespaces of which nothing was are not held: a policy about
/// one namespace is nothing to others.
#[derive(Debug, Default)]
pub(super) struct Denial {
    row: BTreeSet<ObjectKey>,
    namespaces: BTreeSet<Arc<str>>,
    /// Until when nothing of these is tried, once the row is long enough.
    until: Option<Moment>,
    held: BTreeSet<ObjectKey>,
}

impl Denial {
    /// An object was forbidden; whether those like it wait from now on.
    pub(super) fn forbidden(&mut self, key: &ObjectKey, now: Moment) -> bool {
        self.namespaces.insert(Arc::clone(&key.namespace));
        if self.row.len() < ROW {
            self.row.insert(key.clone());
        }
        self.row.len() >= ROW && self.until.replace(now + PAUSE).is_none()
    }

    /// One was written, so that nothing is held; what was.
    pub(super) fn end(&mut self) -> BTreeSet<ObjectKey> {
        std::mem::take(self).held
    }

    /// What was held, once the pause is over.
    pub(super) fn release(&mut self, now: Moment) -> BTreeSet<ObjectKey> {
        let is_over = self.until.is_some_and(|until| until <= now);
        if is_over { std::mem::take(&mut self.held) } else { BTreeSet::new() }
    }

    /// Whether an object waits: it is held then.
    pub(super) fn holds(&mut self, key: &ObjectKey, now: Moment) -> bool {
        let is_early = self.until.is_some_and(|until| now < until);
        let holds = is_early && self.namespaces.contains(&key.namespace);
        if holds {
            self.held.insert(key.clone());
        }
        holds
    }

    /// An object is tried: where the pause was over, others like it wait for what becomes of it.
    pub(super) fn tries(&mut self, key: &ObjectKey, now: Moment) {
        if let Some(until) = self.until.as_mut().filter(|until| **until <= now)
            && self.namespaces.contains(&key.namespace)
        {
            *until = now + PAUSE;
        }
    }

    /// How long until something that is held may be tried.
    pub(super) fn wait(&self, now: Moment) -> Option<Duration> {
        self.until.filter(|_| !self.held.is_empty()).map(|until| now.until(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, number: usize) -> ObjectKey {
        ObjectKey::new(namespace, format!("i{number}"))
    }

    #[test]
    fn one_object_that_is_forbidden_again_and_again_holds_nothing() {
        let (mut denial, now) = (Denial::default(), Moment::now());
        for _ in 0..2 * ROW {
            assert!(!denial.forbidden(&key("a", 1), now));
        }
        assert!(!denial.holds(&key("a", 1), now));
        // Nor do some, where others are written in between.
        for number in 0..2 * ROW {
            assert!(!denial.forbidden(&key("a", number % (ROW - 1)), now));
        }
        assert!(denial.end().is_empty());
        assert!(!denial.forbidden(&key("a", ROW), now));
    }

    #[test]
    fn one_is_tried_after_each_pause_and_what_is_written_ends_it() {
        let (mut denial, now) = (Denial::default(), Moment::now());
        let news = (0..2 * ROW).filter(|number| denial.forbidden(&key("a", *number), now)).count();
        assert_eq!(news, 1, "it is told once");
        assert_eq!(denial.wait(now), None, "nothing waits yet");
        let all: BTreeSet<_> = (0..100).map(|number| key("a", number)).collect();
        assert!(all.iter().all(|key| denial.holds(key, now)));
        assert!(!denial.holds(&key("b", 1), now), "nothing was forbidden there");
        denial.tries(&key("b", 1), now);
        assert!(denial.release(now).is_empty());
        let later = now + denial.wait(now).expect("they wait");
        assert_eq!((later, denial.release(later)), (now + PAUSE, all.clone()));
        assert!(!denial.holds(&key("a", 0), later));
        denial.tries(&key("a", 0), later);
        assert!(
            all.iter().all(|key| denial.holds(key, later)),
            "until it is known what became of it"
        );
        assert!(!denial.forbidden(&key("a", 0), later));
        assert_eq!(denial.wait(later), Some(PAUSE));
        assert_eq!(denial.end(), all);
        assert!(!denial.holds(&key("a", 0), later));
    }
}
