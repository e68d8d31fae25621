//! ListenerSets: whose listeners are added to a Gateway, and what they are told.

use super::added::Set;
use super::index::{put, take_out};
use super::listeners::State;
use super::missing::{note, of_set};
use super::parents::Parent;
use super::status::{Condition, ListenerStatus, SetStatus};
use super::{Around, Gateways, Work, differing, failing, listener_problems, vain};
use crate::budget;
use model::Kind;
use objects::gateway::{FromNamespaces, Gateway, ListenerSet};
use objects::{InText, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Gateways {
    /// Follows ListenerSets: what they name, or named, is touched.
    pub(super) fn take_sets(&mut self, around: &Around<'_>, work: &mut Work) {
        let (old, new) = (&around.old.listener_sets, &around.new.listener_sets);
        for key in differing(old, new) {
            work.sets.insert(key.clone());
            let parent = Parent::Set(key.clone());
            if old.contains_key(key) != new.contains_key(key) {
                work.routes.extend(self.links.astray(&parent, around.new));
            }
            work.routes.extend(self.links.of_parents([parent]));
            if let Some(before) = old.get(key).and_then(|set| set.gateway()) {
                take_out(&mut self.sets, &before, key);
                work.gateways.insert(before);
            }
            if let Some(now) = new.get(key).and_then(|set| set.gateway()) {
                put(&mut self.sets, &now, key.clone());
                work.gateways.insert(now);
            }
        }
        let others = differing(&around.old.namespaces, &around.new.namespaces);
        let others: BTreeSet<&Arc<str>> = others.map(|key| &key.name).collect();
        let selects = |state: &&State| {
            matches!(state.gateway.allowed_sets, FromNamespaces::Selector(_))
                && state.sets.iter().any(|set| others.contains(&set.object.meta.key.namespace))
        };
        if !others.is_empty() {
            let touched = self.gateways.values().filter(selects);
            work.gateways.extend(touched.map(|state| state.gateway.meta.key.clone()));
        }
        if !work.gateways.is_empty() || self.most_listeners != around.listeners {
            self.weigh_sets(around, work);
        }
    }

    /// Finds the sets for whose listeners the older ones of their namespace leave too little.
    fn weigh_sets(&mut self, around: &Around<'_>, work: &mut Work) {
        self.most_listeners = around.listeners;
        let is_ours = |set: &&Arc<ListenerSet>| {
            let gateway = set.gateway().and_then(|key| around.new.gateways.get(&key));
            gateway.is_some_and(|gateway| self.is_served(gateway, around))
        };
        let mut order: Vec<_> = around.new.listener_sets.values().filter(is_ours).collect();
        order.sort_by_key(|set| (set.meta.created, InText(&set.meta.key)));
        let mut taken = BTreeMap::<&Arc<str>, u64>::new();
        let mut waiting = BTreeSet::new();
        for set in order {
            let taken = taken.entry(&set.meta.key.namespace).or_default();
            let then = taken.saturating_add(u64::try_from(set.listeners.len()).unwrap_or(u64::MAX));
            if then > around.listeners {
                waiting.insert(set.meta.key.clone());
            } else {
                *taken = then;
            }
        }
        for key in waiting.symmetric_difference(&self.waiting_sets) {
            let set = around.new.listener_sets.get(key);
            work.gateways.extend(set.and_then(|set| set.gateway()));
        }
        self.waiting_sets = waiting;
    }

    /// The ListenerSets that name a Gateway, in the order of their precedence.
    pub(super) fn sets_of(&self, gateway: &Gateway, snapshot: &Snapshot) -> Vec<Set> {
        let keys = self.sets.get(&gateway.meta.key).into_iter().flatten();
        let mut sets: Vec<_> = keys.filter_map(|key| snapshot.listener_sets.get(key)).collect();
        sets.sort_by_key(|set| (set.meta.created, InText(&set.meta.key)));
        let mut first = gateway.listeners.len();
        let read = sets.into_iter().map(|set| {
            let key = &set.meta.key;
            let own = &gateway.meta.key.namespace;
            let is_taken = gateway.allowed_sets.take(own, &key.namespace, &snapshot.namespaces);
            let refused = if !is_taken {
                let message = "the Gateway takes no listeners of this namespace; see its spec.allowedListeners";
                Some(("NotAllowed", message.to_owned()))
            } else if self.waiting_sets.contains(key) {
                let message = format!(
                    "the older ListenerSets of its namespace leave too little of the {name} that they may have; \
                     remove some, or raise {name} in {} of the ConfigMap",
                    budget::KEY,
                    name = budget::LISTENERS
                );
                Some(("OverBudget", message))
            } else {
                None
            };
            let read = Set { object: set.clone(), refused, first };
            first += read.added().len();
            read
        });
        read.collect()
    }

    /// Tells ListenerSets what became of them.
    pub(super) fn tell_sets(&mut self, around: &Around<'_>, work: &mut Work) {
        for key in std::mem::take(&mut work.sets) {
            let set = around.new.listener_sets.get(&key);
            let state = set.and_then(|set| self.gateways.get(&set.gateway()?));
            let place = state
                .and_then(|state| state.sets.iter().position(|set| set.object.meta.key == key));
            let status = state.zip(place).map(|(state, place)| {
                state.set_status(place, |index| {
                    self.links.attached_at(&state.gateway.meta.key, index)
                })
            });
            let mut problems = Vec::new();
            if let Some(status) = &status {
                problems.extend(failing(&status.conditions));
                problems.extend(listener_problems(&status.listeners));
            }
            work.tell(Kind::ListenerSet, &key, problems);
            work.note(set.into_iter().flat_map(|set| of_set(set, around.new, around.options)));
            let warnings = state.zip(place).map(|(state, place)| state.warnings(Some(place)));
            work.note(warnings.into_iter().flatten());
            let added = set.filter(|_| place.is_some()).map(|set| &set.listeners);
            let own = (Kind::ListenerSet, &key);
            work.note(vain::of_listeners(own, added.into_iter().flatten()));
            let foreign = set.filter(|set| set.gateway().is_none());
            work.note(foreign.map(|_| {
                let message = "only Gateways are known; name one".to_owned();
                note(Kind::ListenerSet, &key, "spec.parentRef", message)
            }));
            match status {
                Some(status) => self.statuses.sets.insert(key, Arc::new(status)),
                None => self.statuses.sets.remove(&key),
            };
        }
    }
}

impl State {
    /// The status of one of its ListenerSets, with as many routes attached to each listener.
    fn set_status(&self, place: usize, attached: impl Fn(usize) -> u32) -> SetStatus {
        let set = &self.sets[place];
        let Set { object, refused, first } = set;
        let is_closed = self.is_closed();
        let own = || self.each().enumerate().skip(*first).take(set.added().len());
        let listeners = own().map(|(index, (listener, read))| ListenerStatus {
            name: listener.name.clone(),
            kinds: read.takes.clone(),
            attached: attached(index),
            conditions: read.conditions(is_closed),
        });
        let bad = own().filter(|(_, (_, read))| !read.is_served());
        let bad: Vec<&str> = bad.map(|(_, (listener, _))| listener.name.as_str()).collect();
        let fails = |reason, message: &str| {
            ["Accepted", "Programmed"]
                .map(|kind| Condition::fails(kind, reason, message.to_owned()))
        };
        let of_bad =
            || format!("listeners that are not served: {}; see their conditions", bad.join(", "));
        let conditions = if let Some((reason, message)) = refused {
            fails(*reason, message)
        } else if self.refused.is_some() {
            fails("ParentNotAccepted", "its Gateway is not accepted; see its status")
        } else if bad.len() == object.listeners.len() {
            fails("ListenersNotValid", &of_bad())
        } else {
            let reason = if bad.is_empty() { "Accepted" } else { "ListenersNotValid" };
            let message = if bad.is_empty() { String::new() } else { of_bad() };
            let accepted =
                Condition { message: message.into(), ..Condition::holds("Accepted", reason) };
            let programmed = if is_closed || self.reach.lacks().is_some() {
                let message = "its Gateway has no address; see its status".to_owned();
                Condition::fails("Programmed", "ParentNotProgrammed", message)
            } else {
                Condition::holds("Programmed", "Programmed")
            };
            [accepted, programmed]
        };
        SetStatus {
            generation: object.meta.generation,
            gateway: self.gateway.meta.key.clone(),
            conditions: conditions.to_vec(),
            listeners: listeners.collect(),
        }
    }

    /// How many ListenerSets are accepted; nothing if none names it.
    pub(super) fn accepted_sets(&self) -> Option<u32> {
        let is_accepted = |place: &usize| {
            let status = self.set_status(*place, |_| 0);
            status.conditions.iter().any(|one| one.kind == "Accepted" && one.holds)
        };
        let accepted = (0..self.sets.len()).filter(is_accepted).count();
        (!self.sets.is_empty()).then(|| u32::try_from(accepted).unwrap_or(u32::MAX))
    }
}
