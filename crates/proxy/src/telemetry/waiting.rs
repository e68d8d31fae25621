//! Spans that wait to be sent, by whose requests they are of: where there is no room, whoever has most makes some.

use super::record::Record;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The namespace that has the location of a request; none for what nobody has.
pub(super) type Owner = Option<Arc<str>>;

/// Spans that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Those of each namespace that has any, in the order in which they came.
    spans: HashMap<Owner, VecDeque<Record>>,
    /// These namespaces, in the order of their turns.
    turns: VecDeque<Owner>,
    count: usize,
}

impl Waiting {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds a span; whether that cost none: where there are `most` of them already, the last one of whoever has most
    /// goes for one of somebody who has fewer, and else this one.
    pub(super) fn add(&mut self, owner: Owner, record: Record, most: usize) -> bool {
        let has_room = self.count < most;
        if !has_room && !self.make_room(&owner, most) {
            return false;
        }
        if let Some(spans) = self.spans.get_mut(&owner) {
            spans.push_back(record);
        } else {
            self.turns.push_back(owner.clone());
            self.spans.insert(owner, [record].into());
        }
        self.count += 1;
        has_room
    }

    fn make_room(&mut self, owner: &Owner, most: usize) -> bool {
        let own = self.spans.get(owner).map_or(0, VecDeque::len);
        let owners = self.spans.len() + usize::from(own == 0);
        // Whoever has a share already is told without a look at all others.
        if own >= most / owners {
            return false;
        }
        // Of those who have the same, whoever has the next turn.
        let length = |owner: &&Owner| self.spans.get(*owner).map_or(0, VecDeque::len);
        let fullest = self.turns.iter().rev().max_by_key(length);
        let fullest = fullest.and_then(|owner| self.spans.get_mut(owner));
        let Some(fullest) = fullest.filter(|spans| spans.len() > own + 1) else { return false };
        self.count -= usize::from(fullest.pop_back().is_some());
        true
    }

    /// Takes up to so many out, one of each namespace in turn.
    pub(super) fn take(&mut self, most: usize) -> Vec<Record> {
        let mut taken = Vec::with_capacity(most.min(self.count));
        while taken.len() < most
            && let Some(owner) = self.turns.pop_front()
        {
            let spans = self.spans.get_mut(&owner).expect("whoever has a turn has spans");
            taken.extend(spans.pop_front());
            if spans.is_empty() {
                self.spans.remove(&owner);
            } else {
                self.turns.push_back(owner);
            }
        }
        self.count -= taken.len();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::{Owner, Waiting};
    use crate::telemetry::{Context, Kind, Record, SpanId, TraceId};
    use std::time::Duration;

    fn span(name: &str) -> Record {
        Record {
            context: Context { trace: TraceId::drawn(1), span: SpanId::drawn(1), sampled: true },
            parent: None,
            remote_parent: false,
            kind: Kind::Server,
            name: name.to_owned(),
            start: Duration::ZERO,
            end: Duration::ZERO,
            failed: false,
            attributes: Vec::new(),
        }
    }

    fn of(namespace: &str) -> Owner {
        Some(namespace.into())
    }

    fn names(taken: Vec<Record>) -> String {
        taken.into_iter().map(|record| record.name + " ").collect()
    }

    #[test]
    fn who_fills_the_queue_leaves_others_their_shares() {
        let mut waiting = Waiting::default();
        for number in 0..20 {
            let had_room = waiting.add(of("a"), span(&format!("a{number}")), 8);
            assert_eq!(had_room, number < 8, "alone it may have all of it");
        }
        for number in 0..20 {
            waiting.add(of("b"), span(&format!("b{number}")), 8);
            waiting.add(of("a"), span("late"), 8);
        }
        waiting.add(None, span("nobody's"), 8);
        assert_eq!(waiting.count(), 8);
        let first = waiting.take(5);
        assert_eq!(names(first), "a0 b0 nobody's a1 b1 ", "they have turns");
        assert_eq!(waiting.count(), 3);
        waiting.add(of("c"), span("c"), 8);
        assert_eq!(names(waiting.take(10)), "a2 b2 c b3 ");
        assert_eq!((waiting.count(), waiting.spans.len(), waiting.turns.len()), (0, 0, 0));
    }

    #[test]
    fn a_queue_for_one_takes_what_comes_first() {
        let mut waiting = Waiting::default();
        assert!(waiting.add(of("a"), span("a"), 1) && !waiting.add(of("b"), span("b"), 1));
        assert_eq!(names(waiting.take(1)), "a ");
    }
}
