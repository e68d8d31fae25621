//! Which routes name what, so that whatever changes touches those alone.

use super::Work;
use super::backends::Port;
use super::few::Few;
use super::index::{fewer, more, put, take_out};
use super::kinds::RouteId;
use super::parents::{Parent, parents};
use objects::gateway::ParentRef;
use objects::{ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The routes that there are, by what they name.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// A Gateway or a ListenerSet, whosever it is.
    pub(super) by_parent: BTreeMap<Parent, BTreeSet<RouteId>>,
    /// A Service.
    pub(super) by_service: BTreeMap<ObjectKey, BTreeSet<RouteId>>,
    /// Backends of a namespace that is not theirs.
    pub(super) by_abroad: BTreeMap<Arc<str>, BTreeSet<RouteId>>,
    /// How many routes lead to an upstream, by its Service port.
    pub(super) ports: BTreeMap<Port, u32>,
    /// How many routes are attached to a listener.
    attached: BTreeMap<(ObjectKey, usize), u32>,
}

/// What a route names, and the listeners that it is attached to.
pub(super) struct Named<'a> {
    pub(super) parents: &'a [ParentRef],
    pub(super) services: &'a Few<ObjectKey>,
    pub(super) abroad: &'a Few<Arc<str>>,
    pub(super) ports: &'a Few<Port>,
    pub(super) listeners: &'a Few<(ObjectKey, usize)>,
}

impl Links {
    /// Adds a route; what it leads to, and is attached to, is touched.
    pub(super) fn put(&mut self, id: &RouteId, named: &Named<'_>, work: &mut Work) {
        for parent in parents(named.parents, &id.1.namespace) {
            put(&mut self.by_parent, &parent, id.clone());
        }
        named.services.iter().for_each(|one| put(&mut self.by_service, one, id.clone()));
        named.abroad.iter().for_each(|one| put(&mut self.by_abroad, one, id.clone()));
        named.ports.iter().for_each(|port| more(&mut self.ports, port));
        named.listeners.iter().for_each(|listener| more(&mut self.attached, listener));
        work.touch(named);
    }

    /// Takes a route out; what it led to, and was attached to, is touched.
    pub(super) fn take_out(&mut self, id: &RouteId, named: &Named<'_>, work: &mut Work) {
        for parent in parents(named.parents, &id.1.namespace) {
            take_out(&mut self.by_parent, &parent, id);
        }
        named.services.iter().for_each(|one| take_out(&mut self.by_service, one, id));
        named.abroad.iter().for_each(|one| take_out(&mut self.by_abroad, one, id));
        named.ports.iter().for_each(|port| fewer(&mut self.ports, port));
        named.listeners.iter().for_each(|listener| fewer(&mut self.attached, listener));
        work.touch(named);
    }

    /// How many routes are attached to a listener of a Gateway.
    pub(super) fn attached_at(&self, gateway: &ObjectKey, index: usize) -> u32 {
        self.attached.get(&(gateway.clone(), index)).copied().unwrap_or_default()
    }

    /// The routes that name one of these.
    pub(super) fn of_parents(&self, parents: impl IntoIterator<Item = Parent>) -> Vec<RouteId> {
        let routes = parents.into_iter().filter_map(|parent| self.by_parent.get(&parent));
        routes.flatten().cloned().collect()
    }

    /// The routes that name what is not there and stood beside `parent`: another name may be the nearest one now.
    pub(super) fn astray(&self, parent: &Parent, snapshot: &Snapshot) -> Vec<RouteId> {
        let is_there = |other: &Parent| match other {
            Parent::Gateway(key) => snapshot.gateways.contains_key(key),
            Parent::Set(key) => snapshot.listener_sets.contains_key(key),
        };
        let beside = self.by_parent.range(parent.first_beside()..);
        let beside = beside.take_while(|(other, _)| other.is_beside(parent));
        let astray = beside.filter(|(other, _)| !is_there(other));
        astray.flat_map(|(_, routes)| routes).cloned().collect()
    }
}

impl Work {
    fn touch(&mut self, named: &Named<'_>) {
        self.policed.extend(named.services.iter().cloned());
        self.ports.extend(named.ports.iter().cloned());
        self.gateways.extend(named.listeners.iter().map(|(gateway, _)| gateway.clone()));
    }
}
