//! Who uses which target, and which upstream's name each target has.

use crate::ingress::Target;
use model::UpstreamId;
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};

/// Who uses which target, and which upstream's name each target has.
#[derive(Debug, Default)]
pub(super) struct Users {
    by_target: BTreeMap<Target, BTreeSet<ObjectKey>>,
    /// Nearly always one: `<namespace>-<service>-<port>` can mean two things.
    by_id: BTreeMap<UpstreamId, BTreeSet<Target>>,
}

impl Users {
    /// Notes a user; returns the targets whose name may be another one now.
    pub(super) fn add(&mut self, target: &Target, ingress: &ObjectKey) -> Vec<Target> {
        let users = self.by_target.entry(target.clone()).or_default();
        let is_first = users.is_empty();
        users.insert(ingress.clone());
        if !is_first {
            return Vec::new();
        }
        let rivals = self.by_id.entry(target.id()).or_default();
        rivals.insert(target.clone());
        if rivals.len() > 1 { rivals.iter().cloned().collect() } else { vec![target.clone()] }
    }

    /// Forgets a user; returns the targets whose name may be another one now.
    pub(super) fn remove(&mut self, target: &Target, ingress: &ObjectKey) -> Vec<Target> {
        let Some(users) = self.by_target.get_mut(target) else { return Vec::new() };
        users.remove(ingress);
        if !users.is_empty() {
            return Vec::new();
        }
        self.by_target.remove(target);
        let id = target.id();
        let Some(rivals) = self.by_id.get_mut(&id) else { return Vec::new() };
        let all = rivals.iter().cloned().collect();
        rivals.remove(target);
        if rivals.is_empty() {
            self.by_id.remove(&id);
        }
        all
    }

    /// The upstream's name of a target; the least of those that would share a name has it.
    pub(super) fn id(&self, target: &Target) -> UpstreamId {
        let id = target.id();
        match self.by_id.get(&id).and_then(BTreeSet::first) {
            Some(owner) if owner != target => target.distinct_id(),
            _ => id,
        }
    }

    /// Whether anybody uses a target.
    pub(super) fn is_used(&self, target: &Target) -> bool {
        self.by_target.contains_key(target)
    }

    /// Who uses a target.
    pub(super) fn of(&self, target: &Target) -> impl Iterator<Item = &ObjectKey> {
        self.by_target.get(target).into_iter().flatten()
    }

    /// The targets that a Service is behind.
    pub(super) fn targets_of(&self, service: &ObjectKey) -> impl Iterator<Item = &Target> {
        let from = Target::first_of(service);
        let default = self
            .by_target
            .get_key_value(&Target::Default(service.clone()))
            .map(|(target, _)| target);
        let ports = self.by_target.range(from..).map(|(target, _)| target);
        ports.take_while(move |target| target.service() == Some(service)).chain(default)
    }
}
