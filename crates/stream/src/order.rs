//! Which question goes next, where strangers are asked: namespaces take turns, none has more than a quarter of the
//! questions on their way, and those who did not answer in time have a quarter together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long it is held against somebody that he did not answer in time.
const HELD: Duration = Duration::from_secs(3600);

/// Whose a question is, and who is asked.
#[derive(Clone, Debug)]
pub struct Whose {
    /// The namespace whose share it has.
    pub namespace: Arc<str>,
    /// Who answers, by a name that is his alone in this namespace.
    pub responder: Arc<str>,
}

/// Those who wait for a question, and those whose question is on its way.
#[derive(Debug)]
pub struct Order {
    /// Questions on their way at a time.
    at_once: usize,
    /// Those of one namespace, and those to responders that did not answer in time.
    quarter: usize,
    namespaces: BTreeMap<Arc<str>, Share>,
    running: usize,
    running_late: usize,
    /// How often it was somebody's turn.
    turns: u64,
}

/// Who waits, by the moment from which it is its turn and by its number; with the responder.
type Waiting = BTreeMap<(Instant, usize), Arc<str>>;

/// What a namespace has of the questions.
#[derive(Debug, Default)]
struct Share {
    prompt: Waiting,
    /// Those whose responder did not answer in time.
    late: Waiting,
    running: usize,
    /// The number of its last turn.
    turn: u64,
    /// Responders that did not answer in time, and how long that is held against them. It counts for this namespace
    /// alone: its objects may name the responders of others, and what they do there is theirs. There are no more
    /// than can run out of time meanwhile.
    silent: BTreeMap<Arc<str>, Instant>,
}

/// Who may go.
struct Candidate<'a> {
    namespace: &'a Arc<str>,
    turn: u64,
    is_late: bool,
    at: Instant,
    id: usize,
}

impl Order {
    /// Nobody yet, for so many questions at a time.
    pub fn new(at_once: usize) -> Self {
        let quarter = (at_once / 4).max(1);
        let namespaces = BTreeMap::new();
        Self { at_once, quarter, namespaces, running: 0, running_late: 0, turns: 0 }
    }

    /// Somebody waits, from this moment on.
    pub fn wait(&mut self, whose: &Whose, id: usize, at: Instant) {
        let share = self.namespaces.entry(whose.namespace.clone()).or_default();
        let is_late = share.silent.contains_key(&whose.responder);
        share.list(is_late).insert((at, id), whose.responder.clone());
    }

    /// Somebody who waited from that moment on went away.
    pub fn leave(&mut self, whose: &Whose, id: usize, at: Instant) {
        let Some(share) = self.namespaces.get_mut(&whose.namespace) else { return };
        share.prompt.remove(&(at, id));
        share.late.remove(&(at, id));
        if share.is_over() {
            self.namespaces.remove(&whose.namespace);
        }
    }

    /// When it is somebody's turn; none if nobody waits, or a question has to end before.
    pub fn due(&self) -> Option<Instant> {
        self.candidates().map(|one| one.at).min()
    }

    /// Whose turn it is: of the namespace that had none for longest, the one that is due for longest; and whether it
    /// counts as late.
    pub fn next(&mut self, now: Instant) -> Option<(usize, bool)> {
        let due = self.candidates().filter(|one| one.at <= now);
        let first = due.min_by_key(|one| (one.turn, one.is_late, one.at))?;
        let (namespace, Candidate { is_late, at, id, .. }) = (first.namespace.clone(), first);
        let share = self.namespaces.get_mut(&namespace)?;
        share.list(is_late).remove(&(at, id));
        self.turns += 1;
        (share.turn, share.running) = (self.turns, share.running + 1);
        self.running += 1;
        self.running_late += usize::from(is_late);
        Some((id, is_late))
    }

    /// A question has ended, and whether its responder was heard in time; none if nobody was asked.
    pub fn end(&mut self, whose: &Whose, was_late: bool, in_time: Option<bool>, now: Instant) {
        self.running -= 1;
        self.running_late -= usize::from(was_late);
        let Some(share) = self.namespaces.get_mut(&whose.namespace) else { return };
        share.running -= 1;
        let before = share.silent.len();
        share.silent.retain(|_, until| *until > now);
        match in_time {
            Some(true) => drop(share.silent.remove(&whose.responder)),
            Some(false) => drop(share.silent.insert(whose.responder.clone(), now + HELD)),
            None => {}
        }
        if share.silent.len() != before || in_time == Some(false) {
            share.sort();
        }
        if share.is_over() {
            self.namespaces.remove(&whose.namespace);
        }
    }

    /// The first ones of each namespace for whom there is room.
    fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        let has_room = self.running < self.at_once;
        let has_late = self.running_late < self.quarter;
        let with_room = move |share: &Share| has_room && share.running < self.quarter;
        let all = self.namespaces.iter().filter(move |(_, share)| with_room(share));
        all.flat_map(move |(namespace, share)| {
            let late = Some(&share.late).filter(|_| has_late);
            let lists = [(false, Some(&share.prompt)), (true, late)];
            lists.into_iter().filter_map(move |(is_late, list)| {
                let (&(at, id), _) = list?.first_key_value()?;
                Some(Candidate { namespace, turn: share.turn, is_late, at, id })
            })
        })
    }
}

impl Share {
    fn list(&mut self, is_late: bool) -> &mut Waiting {
        if is_late { &mut self.late } else { &mut self.prompt }
    }

    /// Puts those who wait where they belong.
    fn sort(&mut self) {
        let mut all = std::mem::take(&mut self.prompt);
        all.append(&mut self.late);
        for (key, responder) in all {
            let is_late = self.silent.contains_key(&responder);
            self.list(is_late).insert(key, responder);
        }
    }

    fn is_over(&self) -> bool {
        let nobody_waits = self.prompt.is_empty() && self.late.is_empty();
        nobody_waits && self.running == 0 && self.silent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{HELD, Order, Whose};
    use std::collections::BTreeMap;
    use std::time::Duration;
    use tokio::time::Instant;

    const AT_ONCE: usize = 8;
    const QUARTER: usize = 2;

    /// Those who were told to wait, by their numbers.
    struct Bed {
        order: Order,
        all: BTreeMap<usize, Whose>,
    }

    impl Default for Bed {
        fn default() -> Self {
            Self { order: Order::new(AT_ONCE), all: BTreeMap::new() }
        }
    }

    impl Bed {
        fn wait(&mut self, namespace: &str, responder: &str, at: Instant) -> usize {
            let (namespace, responder) = (namespace.into(), responder.into());
            // The one that comes last has the lowest number.
            let id = usize::MAX - self.all.len();
            let whose = Whose { namespace, responder };
            self.order.wait(&whose, id, at);
            self.all.insert(id, whose);
            id
        }

        fn go(&mut self, now: Instant) -> Vec<(usize, bool)> {
            std::iter::from_fn(|| self.order.next(now)).collect()
        }

        fn end(&mut self, went: &[(usize, bool)], in_time: bool, now: Instant) {
            for (id, was_late) in went {
                self.order.end(&self.all[id], *was_late, Some(in_time), now);
            }
        }

        fn namespaces(&self, went: &[(usize, bool)]) -> Vec<&str> {
            went.iter().map(|(id, _)| &*self.all[id].namespace).collect()
        }
    }

    #[test]
    fn a_namespace_has_a_quarter_of_the_questions_and_those_due_for_longest_go_first() {
        let (mut bed, now) = (Bed::default(), Instant::now());
        let ago = |seconds| now - Duration::from_secs(seconds);
        let bad: Vec<_> = (0..50).map(|of| bed.wait("bad", "slow", ago(100 - of))).collect();
        let went = bed.go(now);
        assert_eq!(went, [(bad[0], false), (bad[1], false)]);
        assert_eq!(bed.order.due(), None, "it is nobody's turn before one of them has ended");
        let good = bed.wait("good", "fast", ago(0));
        assert_eq!((bed.order.due(), bed.go(now)), (Some(ago(0)), vec![(good, false)]));
        bed.end(&went[..1], true, now);
        assert_eq!(bed.go(now), [(bad[2], false)]);
        let later = bed.wait("good", "fast", now + HELD);
        assert_eq!((bed.go(now), bed.order.due()), (vec![], Some(now + HELD)));
        assert_eq!(bed.go(now + HELD), [(later, false)]);
    }

    #[test]
    fn namespaces_take_turns_where_all_questions_are_on_their_way() {
        let (mut bed, now) = (Bed::default(), Instant::now());
        let bad = ["a", "b", "c", "d", "e"];
        for namespace in bad.repeat(10) {
            bed.wait(namespace, "slow", now - Duration::from_secs(9));
        }
        let went = bed.go(now);
        assert_eq!(bed.namespaces(&went), ["a", "b", "c", "d", "e", "a", "b", "c"]);
        assert_eq!(went.len(), AT_ONCE);
        let good = bed.wait("good", "fast", now);
        bed.end(&went[..2], true, now);
        let next = bed.go(now);
        assert_eq!((next[0].0, bed.namespaces(&next)), (good, vec!["good", "d"]));
    }

    #[test]
    fn responders_that_did_not_answer_in_time_have_a_quarter_together_until_they_do() {
        let (mut bed, now) = (Bed::default(), Instant::now());
        let bad = ["a", "b", "c", "d"];
        for namespace in bad.repeat(3) {
            bed.wait(namespace, "slow", now);
        }
        let went = bed.go(now);
        assert_eq!(went.len(), AT_ONCE);
        bed.end(&went, false, now);
        let late = bed.go(now);
        assert_eq!(bed.namespaces(&late), ["a", "b"]);
        assert!(late.len() == QUARTER && late.iter().all(|(_, is_late)| *is_late));
        let other = bed.wait("a", "fast", now);
        let same = bed.wait("z", "slow", now);
        assert_eq!(bed.go(now), [(same, false), (other, false)], "it is held against its own");
        bed.end(&late, true, now);
        let late = bed.go(now);
        assert_eq!(bed.namespaces(&late), ["c", "d"]);
        bed.wait("a", "slow", now);
        assert!(bed.go(now).iter().all(|(_, is_late)| !is_late), "it has answered since");
    }

    #[test]
    fn whoever_waits_no_more_leaves_nothing_behind() {
        let (mut bed, now) = (Bed::default(), Instant::now());
        for responder in ["x", "y", "z"] {
            bed.wait("a", responder, now);
        }
        for (seconds, in_time) in [(0, false), (1, false), (3602, true)] {
            let now = now + Duration::from_secs(seconds);
            let (id, was_late) = bed.order.next(now).expect("it is its turn");
            bed.order.end(&bed.all[&id], was_late, Some(in_time), now);
        }
        let whose = bed.all.values().next().expect("there are some").clone();
        bed.order.wait(&whose, 1, now);
        bed.order.leave(&whose, 1, now);
        assert!(bed.order.namespaces.is_empty(), "{:?}", bed.order);
        assert_eq!((bed.order.running, bed.order.running_late), (0, 0));
    }
}
