//! What is to be told next: namespaces take turns, and each has a pace of its own. What one of them changes may touch
//! tens of thousands of statuses; the API server has others to answer besides.

use super::later::Later;
use super::which::{Id, Which};
use crate::budget::Budget;
use crate::clock::Moment;
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Statuses of one namespace that are written at once, and each second then.
const BURST: u32 = 1000;
const RATE: f64 = 20.0;
/// How long a namespace waits that has none left: it has so many together then.
const HOLD: Duration = Duration::from_secs(1);
/// Namespaces of which it is known how much they have left.
const REMEMBERED: usize = 1000;

/// Gateways before their routes: addresses wait for no conditions.
type Objects = BTreeSet<(Which, Arc<str>)>;

/// What is to be looked at, by namespace.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Services have no pace: a load balancer that leads to Pods which are gone is worse than any status that is old.
    services: Turns,
    is_services_turn: bool,
    others: Turns,
    /// Those of namespaces that have no write left.
    held: BTreeMap<Arc<str>, Objects>,
    /// When these go on.
    due: Later<Arc<str>>,
    /// What namespaces have left that have written lately.
    left: BTreeMap<Arc<str>, Budget>,
}

/// Namespaces take turns: who always has something keeps nobody else waiting.
#[derive(Debug, Default)]
struct Turns {
    all: BTreeMap<Arc<str>, Objects>,
    /// Whose turn was the last one.
    last: Arc<str>,
}

impl Turns {
    /// Something of the namespace that follows the last one.
    fn take(&mut self) -> Option<Id> {
        // No text stands between `a` and `a\0`.
        let following: Arc<str> = format!("{}\0", self.last).into();
        let next = self.all.range(following..).next().or_else(|| self.all.first_key_value());
        let namespace = Arc::clone(next?.0);
        let of_namespace = self.all.get_mut(&namespace)?;
        let (which, name) = of_namespace.pop_first()?;
        if of_namespace.is_empty() {
            self.all.remove(&namespace);
        }
        self.last = Arc::clone(&namespace);
        Some((which, ObjectKey { namespace, name }))
    }
}

impl Pending {
    pub(super) fn insert(&mut self, (which, ObjectKey { namespace, name }): Id) {
        let of_namespace = match (which, self.held.get_mut(&namespace)) {
            (Which::Service, _) => self.services.all.entry(namespace).or_default(),
            (_, Some(held)) => held,
            (_, None) => self.others.all.entry(namespace).or_default(),
        };
        of_namespace.insert((which, name));
    }

    /// Nothing is to be looked at any more.
    pub(super) fn clear(&mut self) {
        self.services.all.clear();
        self.others.all.clear();
        self.held.clear();
        self.due.clear();
    }

    /// What is next: Services and all else by turns.
    pub(super) fn take_turn(&mut self) -> Option<Id> {
        self.is_services_turn = !self.is_services_turn;
        let Self { services, others, is_services_turn, .. } = self;
        let (first, second) =
            if *is_services_turn { (services, others) } else { (others, services) };
        first.take().or_else(|| second.take())
    }

    /// Whether an object may be written now, which takes one write of its namespace; if none is left, the object waits
    /// and so does all that is to be looked at there.
    pub(super) fn charge(&mut self, id: &Id, now: Moment) -> bool {
        if id.0 == Which::Service {
            return true;
        }
        let namespace = &id.1.namespace;
        if self.left.len() >= REMEMBERED && !self.left.contains_key(namespace) {
            self.left.retain(|_, left| !left.is_full(now));
        }
        let new = || Budget::new(BURST, RATE, now);
        if self.left.entry(Arc::clone(namespace)).or_insert_with(new).take(now).is_ok() {
            return true;
        }
        let waiting = self.others.all.remove(namespace).unwrap_or_default();
        self.held.entry(Arc::clone(namespace)).or_default().extend(waiting);
        self.due.insert(now + HOLD, Arc::clone(namespace));
        self.insert(id.clone());
        false
    }

    /// Nothing was written after all.
    pub(super) fn give_back(&mut self, id: &Id, now: Moment) {
        let left = self.left.get_mut(&id.1.namespace).filter(|_| id.0 != Which::Service);
        if let Some(left) = left {
            left.give_back(now);
        }
    }

    /// Those go on that have waited for long enough.
    pub(super) fn release(&mut self, now: Moment) {
        while let Some(namespace) = self.due.take(now) {
            if let Some(held) = self.held.remove(&namespace) {
                self.others.all.entry(namespace).or_default().extend(held);
            }
        }
    }

    /// How long until the first of them goes on.
    pub(super) fn wait(&self, now: Moment) -> Option<Duration> {
        self.due.wait(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(namespace: &str, number: usize) -> Id {
        (Which::Gateway, ObjectKey::new(namespace, format!("g{number:05}")))
    }

    /// How many are written of each namespace at a moment, where nothing else bounds them.
    fn written(pending: &mut Pending, now: Moment) -> BTreeMap<Arc<str>, usize> {
        pending.release(now);
        let mut written = BTreeMap::new();
        while let Some(id) = pending.take_turn() {
            if pending.charge(&id, now) {
                *written.entry(id.1.namespace).or_default() += 1;
            }
        }
        written
    }

    #[test]
    fn a_namespace_that_always_has_something_to_tell_keeps_no_other_one_waiting() {
        let mut pending = Pending::default();
        for number in 0..100 {
            pending.insert(gateway("a", number));
        }
        for namespace in ["", "a-b", "z"] {
            pending.insert((Which::Class, ObjectKey::new(namespace, "one")));
        }
        let mut turns = (0..5).filter_map(|_| pending.take_turn()).map(|(_, key)| key.namespace);
        assert!(turns.by_ref().take(5).eq(["a", "a-b", "z", "", "a"].map(Into::into)));
        assert_eq!(std::iter::from_fn(|| pending.take_turn()).count(), 98);
    }

    #[test]
    fn a_namespace_whose_edits_touch_very_many_has_a_pace_and_others_have_theirs() {
        let (mut pending, start) = (Pending::default(), Moment::now());
        let second = Duration::from_secs(1);
        for number in 0..20_000 {
            pending.insert(gateway("many", number));
        }
        pending.insert(gateway("few", 0));
        let first = written(&mut pending, start);
        assert_eq!(first, [("few".into(), 1), ("many".into(), 1000)].into());
        assert_eq!(pending.wait(start), Some(second));
        assert!(written(&mut pending, start + second / 2).is_empty());
        // The same edit again adds nothing to what waits, and others go on.
        for number in 0..20_000 {
            pending.insert(gateway("many", number));
        }
        pending.insert(gateway("few", 0));
        let other = written(&mut pending, start + second / 2);
        assert_eq!(other, [("few".into(), 1)].into());
        for seconds in 1..10 {
            let each = written(&mut pending, start + second * seconds);
            assert_eq!(each, [("many".into(), 20)].into(), "{seconds}");
        }
        let waiting: usize = pending.held.values().map(BTreeSet::len).sum();
        assert_eq!((waiting, pending.others.all.len()), (20_000 - 180, 0), "nothing is left out");
        pending.clear();
        assert!(written(&mut pending, start + second * 60).is_empty());
    }

    #[test]
    fn services_wait_for_no_statuses_and_gateways_for_no_routes() {
        let (mut pending, start) = (Pending::default(), Moment::now());
        let route = |number: usize| {
            let key = ObjectKey::new("many", format!("a{number:05}"));
            (Which::Route(objects::Kind::HttpRoute), key)
        };
        for number in 0..20_000 {
            pending.insert(route(number));
        }
        assert_eq!(written(&mut pending, start)["many"], 1000);
        // The Pods of Fairway are replaced meanwhile.
        pending.insert(gateway("many", 1));
        for name in ["web", "api"] {
            pending.insert((Which::Service, ObjectKey::new("many", name)));
        }
        assert_eq!(written(&mut pending, start), [("many".into(), 2)].into(), "both Services");
        let next = start + HOLD;
        pending.release(next);
        assert_eq!(pending.take_turn(), Some(gateway("many", 1)), "it stands before all routes");
        // Nor do Services keep all else waiting.
        for number in 0..100 {
            pending.insert((Which::Service, ObjectKey::new("other", format!("s{number:05}"))));
        }
        let next: Vec<_> = (0..10).filter_map(|_| pending.take_turn()).collect();
        assert_eq!(next.iter().filter(|(which, _)| *which == Which::Service).count(), 5);
    }

    #[test]
    fn what_stands_as_it_should_costs_a_namespace_nothing() {
        let (mut pending, now) = (Pending::default(), Moment::now());
        for number in 0..5000 {
            pending.insert(gateway("many", number));
        }
        let mut looked_at = 0;
        while let Some(id) = pending.take_turn() {
            assert!(pending.charge(&id, now));
            pending.give_back(&id, now);
            looked_at += 1;
        }
        assert_eq!(looked_at, 5000);
    }

    #[test]
    fn what_namespaces_have_left_is_forgotten_once_it_is_all_of_it() {
        let (mut pending, start) = (Pending::default(), Moment::now());
        for number in 0..3 * REMEMBERED {
            let now = start + Duration::from_secs(1) * u32::try_from(number).unwrap_or_default();
            assert!(pending.charge(&gateway(&format!("n{number}"), 0), now));
        }
        assert!(pending.left.len() <= REMEMBERED, "{}", pending.left.len());
    }
}
