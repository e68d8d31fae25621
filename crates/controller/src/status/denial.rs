//! Where a right is missing, every object is forbidden: asking for thousands of them, each in its own time, would be
//! hundreds of requests a second for nothing. They wait together, and one is tried.

use crate::clock::Moment;
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// So many different objects of a namespace in a row, or so many namespaces, are forbidden where a right is missing: a
/// policy may be about one. And so many that are tried are written, one after the other, once it is there.
const ROW: usize = 20;
/// How long the others wait then for one that is tried.
const PAUSE: Duration = Duration::from_secs(30);

/// What was forbidden, of each namespace since something of it was written last. Namespaces of which nothing was are
/// not here: a policy about one namespace is nothing to others, and what is written elsewhere says nothing of it.
#[derive(Debug, Default)]
pub(super) struct Denial {
    suspects: BTreeMap<Arc<str>, Suspect>,
    /// Until when nothing is tried of the namespaces whose objects wait; none where there are none.
    until: Option<Moment>,
    /// Whose turn to be tried was the last one.
    last: Arc<str>,
    /// Of which one was written last: while one after the other is, nobody else's turn ends its row.
    goes_on: Option<Arc<str>>,
}

/// A namespace of which something was forbidden.
#[derive(Debug, Default)]
struct Suspect {
    /// What was forbidden in a row, and was not written since.
    row: BTreeSet<ObjectKey>,
    /// How many were written in a row since it waits: what is forbidden elsewhere says nothing of these.
    good: usize,
    /// Its objects wait.
    waits: bool,
    /// Those that wait and were not forbidden before, which come first.
    fresh: BTreeSet<ObjectKey>,
    held: BTreeSet<ObjectKey>,
    /// Which of `held` was tried last: each of them gets its turn.
    last: Option<ObjectKey>,
}

impl Suspect {
    fn has_some(&self) -> bool {
        !(self.fresh.is_empty() && self.held.is_empty())
    }

    /// The next one to be tried.
    fn take(&mut self) -> Option<ObjectKey> {
        if let Some(key) = self.fresh.pop_first() {
            return Some(key);
        }
        let after = self.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut following = self.held.range((after, Bound::Unbounded));
        let key = following.next().or_else(|| self.held.first())?.clone();
        self.held.remove(&key);
        self.last = Some(key.clone());
        Some(key)
    }
}

impl Denial {
    /// An object was forbidden; whether objects wait from now on, and none did before.
    pub(super) fn forbidden(&mut self, key: &ObjectKey, now: Moment) -> bool {
        let are_many = self.suspects.len() >= ROW;
        let suspect = self.suspects.entry(Arc::clone(&key.namespace)).or_default();
        if suspect.row.len() < ROW {
            suspect.row.insert(key.clone());
        }
        suspect.waits |= are_many || suspect.row.len() >= ROW;
        if !suspect.waits {
            return false;
        }
        suspect.good = 0;
        self.lets_others(key);
        self.until.replace(now + PAUSE).is_none()
    }

    /// One was written. Where others like it wait, the next one is tried at once; after a row of them all of the
    /// namespace are free, which are returned.
    pub(super) fn written(&mut self, key: &ObjectKey, now: Moment) -> BTreeSet<ObjectKey> {
        let namespace = &key.namespace;
        let Some(suspect) = self.suspects.get_mut(namespace) else { return BTreeSet::new() };
        if suspect.waits {
            self.until = Some(now);
            suspect.good += 1;
            suspect.row.remove(key);
            if suspect.good < ROW && !suspect.row.is_empty() {
                self.goes_on = Some(Arc::clone(namespace));
                return BTreeSet::new();
            }
        }
        let free = self.suspects.remove(namespace).unwrap_or_default();
        self.end_if_none_waits();
        free.fresh.into_iter().chain(free.held).collect()
    }

    fn end_if_none_waits(&mut self) {
        if !self.suspects.values().any(|suspect| suspect.waits) {
            self.until = None;
        }
    }

    /// One that was tried says nothing of the others: it has changed, or is gone. The next one is tried at once.
    pub(super) fn nothing_learnt(&mut self, key: &ObjectKey, now: Moment) {
        self.lets_others(key);
        if self.waits(key) {
            self.until = Some(now);
        }
    }

    /// One was not written, for whatever reason: the others have their turns again.
    pub(super) fn lets_others(&mut self, key: &ObjectKey) {
        self.goes_on.take_if(|namespace| **namespace == *key.namespace);
    }

    /// Whether an object waits: it is held then. One that was never forbidden is tried before those that were.
    pub(super) fn holds(&mut self, key: &ObjectKey, is_fresh: bool) -> bool {
        let suspect = self.suspects.get_mut(&key.namespace).filter(|suspect| suspect.waits);
        let Some(suspect) = suspect else { return false };
        let (to, from) = if is_fresh {
            (&mut suspect.fresh, &mut suspect.held)
        } else {
            (&mut suspect.held, &mut suspect.fresh)
        };
        from.remove(key);
        to.insert(key.clone());
        true
    }

    /// The one to try, once the pause is over: of the namespace whose row goes on, or else of the one that follows the
    /// last one, as others' objects keep nobody waiting.
    pub(super) fn release(&mut self, now: Moment) -> Option<ObjectKey> {
        self.until.filter(|until| *until <= now)?;
        let after = (Bound::Excluded(Arc::clone(&self.last)), Bound::Unbounded);
        let with_some = |(_, suspect): &(&Arc<str>, &Suspect)| suspect.has_some();
        let goes_on = self.goes_on.as_ref().and_then(|name| self.suspects.get_key_value(name));
        let following = || self.suspects.range::<Arc<str>, _>(after).find(with_some);
        let (namespace, _) = (goes_on.filter(with_some))
            .or_else(following)
            .or_else(|| self.suspects.iter().find(with_some))?;
        self.last = Arc::clone(namespace);
        self.suspects.get_mut(&self.last)?.take()
    }

    /// An object is tried: others that wait go on waiting for what becomes of it.
    pub(super) fn tries(&mut self, key: &ObjectKey, now: Moment) {
        if self.waits(key) {
            self.until = Some(now + PAUSE);
        }
    }

    /// An object is there no more.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        let Some(suspect) = self.suspects.get_mut(&key.namespace) else { return };
        for set in [&mut suspect.row, &mut suspect.fresh, &mut suspect.held] {
            set.remove(key);
        }
        if suspect.row.is_empty() && !suspect.has_some() {
            self.suspects.remove(&key.namespace);
            self.end_if_none_waits();
        }
    }

    /// How long until something that is held may be tried.
    pub(super) fn wait(&self, now: Moment) -> Option<Duration> {
        let is_some_held = || self.suspects.values().any(Suspect::has_some);
        self.until.filter(|_| is_some_held()).map(|until| now.until(until))
    }

    fn waits(&self, key: &ObjectKey) -> bool {
        self.suspects.get(&key.namespace).is_some_and(|suspect| suspect.waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, number: usize) -> ObjectKey {
        ObjectKey::new(namespace, format!("i{number:04}"))
    }

    /// One where so many of namespace `a` were forbidden and wait.
    fn waiting(number: usize, now: Moment) -> Denial {
        let mut denial = Denial::default();
        let news = (0..number).filter(|one| denial.forbidden(&key("a", *one), now)).count();
        assert_eq!(news, 1, "it is told once");
        assert_eq!(denial.wait(now), None, "nothing waits yet");
        assert!((0..number).all(|one| denial.holds(&key("a", one), false)));
        denial
    }

    #[test]
    fn one_object_that_is_forbidden_again_and_again_holds_nothing() {
        let (mut denial, now) = (Denial::default(), Moment::now());
        for _ in 0..2 * ROW {
            assert!(!denial.forbidden(&key("a", 1), now));
        }
        assert!(!denial.holds(&key("a", 1), false));
        // Nor do some, where others are written in between.
        for number in 0..2 * ROW {
            assert!(!denial.forbidden(&key("a", number % (ROW - 1)), now));
        }
        assert!(denial.written(&key("a", ROW), now).is_empty());
        assert!(!denial.forbidden(&key("a", ROW), now));
    }

    #[test]
    fn each_one_has_its_turn_after_a_pause_and_those_that_were_never_forbidden_have_it_first() {
        let now = Moment::now();
        let mut denial = waiting(ROW, now);
        assert!(!denial.holds(&key("b", 1), true), "nothing was forbidden there");
        assert!(denial.holds(&key("a", 9999), true));
        assert_eq!((denial.release(now), denial.wait(now)), (None, Some(PAUSE)));
        let mut later = now;
        for expected in [9999].into_iter().chain(0..ROW).chain([9999, 0]) {
            later = later + denial.wait(later).expect("they wait");
            let next = denial.release(later).expect("its turn");
            assert_eq!(next, key("a", expected));
            denial.tries(&next, later);
            assert_eq!(denial.release(later), None, "until it is known what became of it");
            assert!(!denial.forbidden(&next, later) && denial.holds(&next, false));
        }
        assert_eq!(now.until(later), PAUSE * 23);
    }

    #[test]
    fn the_next_one_is_tried_as_soon_as_one_is_written_and_after_a_row_of_them_all_are_free() {
        let now = Moment::now();
        let mut denial = waiting(ROW * 3, now);
        let later = now + PAUSE;
        for number in 0..ROW {
            assert_eq!(denial.release(later), Some(key("a", number)));
            denial.tries(&key("a", number), later);
            // That nobody else had to wait says nothing of these.
            assert!(denial.written(&key("z", number), later).is_empty());
            assert_eq!(denial.release(later), None);
            let free = denial.written(&key("a", number), later);
            let rest = if number + 1 == ROW { ROW..ROW * 3 } else { 0..0 };
            assert_eq!(free, rest.map(|one| key("a", one)).collect());
        }
        assert!(!denial.holds(&key("a", 0), false) && denial.wait(later).is_none());
    }

    #[test]
    fn what_one_namespace_may_not_for_good_ends_no_row_of_another_one() {
        let now = Moment::now();
        let mut denial = waiting(ROW * 2, now);
        for number in 0..ROW * 2 {
            denial.forbidden(&key("b", number), now);
        }
        assert!((0..ROW * 2).all(|one| denial.holds(&key("b", one), false)));
        let (mut later, mut free) = (now, BTreeSet::new());
        let mut tried = 0;
        while free.is_empty() {
            later = later + denial.wait(later).expect("they wait");
            let next = denial.release(later).expect("its turn");
            denial.tries(&next, later);
            tried += 1;
            if &*next.namespace == "b" {
                free = denial.written(&next, later);
            } else {
                denial.forbidden(&next, later);
                denial.holds(&next, false);
            }
        }
        assert_eq!(free, (ROW..ROW * 2).map(|one| key("b", one)).collect());
        assert!(now.until(later) <= PAUSE * 2 && tried <= ROW + 2, "{tried}");
        assert!(!denial.holds(&key("b", 0), true) && denial.holds(&key("a", 0), false));
    }

    #[test]
    fn whose_others_are_not_written_keeps_nobody_from_a_turn() {
        let now = Moment::now();
        let mut denial = waiting(ROW * 2, now);
        for number in 0..ROW * 2 {
            denial.forbidden(&key("b", number), now);
            denial.holds(&key("b", number), false);
        }
        let (mut later, mut first) = (now, None);
        for turn in 0.. {
            later = later + denial.wait(later).expect("they wait");
            let next = denial.release(later).expect("its turn");
            denial.tries(&next, later);
            if &*next.namespace == "b" {
                assert!(turn < 4, "{turn} turns of a");
                break;
            }
            // One is, and what comes behind it is not, in two ways by turns.
            if first.get_or_insert_with(|| next.clone()) == &next {
                denial.written(&next, later);
            } else if turn % 2 == 0 {
                denial.nothing_learnt(&next, later);
            } else {
                denial.lets_others(&next);
            }
            denial.holds(&next, false);
        }
    }

    #[test]
    fn a_namespace_of_which_all_that_was_forbidden_is_written_waits_no_more() {
        let (mut denial, now) = (Denial::default(), Moment::now());
        for number in 0..=ROW {
            denial.forbidden(&key(&format!("n{number:04}"), 1), now);
        }
        let last = key(&format!("n{ROW:04}"), 1);
        assert!(denial.holds(&last, false));
        assert!(denial.written(&last, now).contains(&last));
        assert!(!denial.holds(&last, false));
    }

    #[test]
    fn many_namespaces_with_few_objects_wait_as_well_and_have_their_turns() {
        let (mut denial, now) = (Denial::default(), Moment::now());
        let namespaces = (0..ROW + 2).map(|one| format!("n{one:04}")).collect::<Vec<_>>();
        let held = |denial: &mut Denial| {
            let keys = namespaces.iter().flat_map(|name| [key(name, 1), key(name, 2)]);
            keys.filter(|key| denial.holds(key, false)).count()
        };
        for one in namespaces.iter().take(ROW) {
            assert!(!denial.forbidden(&key(one, 1), now));
        }
        assert_eq!(held(&mut denial), 0);
        for one in &namespaces {
            denial.forbidden(&key(one, 2), now);
        }
        assert_eq!(held(&mut denial), 2 * namespaces.len());
        let mut later = now;
        for one in &namespaces {
            later = later + PAUSE;
            let next = denial.release(later).expect("its turn");
            assert_eq!(&*next.namespace, one);
            denial.tries(&next, later);
            denial.nothing_learnt(&next, later);
            assert_eq!(denial.wait(later), Some(Duration::ZERO), "it had changed");
            denial.tries(&next, later);
        }
    }

    #[test]
    fn nothing_is_kept_of_what_is_gone() {
        let now = Moment::now();
        let mut denial = waiting(ROW * 2, now);
        (0..ROW * 2).for_each(|one| denial.forget(&key("a", one)));
        assert!(denial.suspects.is_empty() && denial.until.is_none());
    }
}
