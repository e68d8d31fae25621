//! What the routes of one namespace take together. Beyond it the newest of them wait, and nobody else does.

use super::kinds::RouteId;
use super::weights::{closed_places, expressions, places};
use crate::budget;
use objects::gateway::HttpRoute;
use objects::{Kind, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is counted, with how much of it there may be.
type Most = [(&'static str, u64); 3];
/// Places, regular expressions, and bytes of their text.
pub(super) type Amounts = [u64; 3];
/// Reason and message.
pub(super) type Why = (&'static str, String);

/// What a route asks for, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// When it was made.
    pub(super) created: i64,
    /// What it takes.
    pub(super) served: Amounts,
    /// What it takes while it waits, and its places lead nowhere.
    pub(super) closed: Amounts,
}

impl Weight {
    /// That of an HTTPRoute or a GRPCRoute that would answer under so many hosts.
    pub(super) fn of(route: &HttpRoute, hosts: usize) -> Self {
        let (number, bytes) = expressions(route);
        // Whom fewer listeners have is never charged less than for what it says itself.
        let hosts = hosts.max(route.hostnames.len()).max(1);
        let amounts = |places: usize| {
            let amounts = [places.saturating_mul(hosts), number, bytes];
            amounts.map(|amount| u64::try_from(amount).unwrap_or(u64::MAX))
        };
        let (served, closed) = (amounts(places(route)), amounts(closed_places(route)));
        Self { created: route.meta.created, served, closed }
    }
}

/// Why a route waits, and whether it keeps its places meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waits {
    lacks: &'static str,
    keeps: bool,
}

/// What routes take by namespace; costs time by what changes, unless a namespace has too much.
#[derive(Debug, Default)]
pub(super) struct Places {
    namespaces: BTreeMap<Arc<str>, Namespace>,
    most: Most,
}

#[derive(Debug, Default)]
struct Namespace {
    routes: BTreeMap<Name, Weight>,
    total: Amounts,
    waiting: BTreeMap<Name, Waits>,
}

/// A route among those of its namespace.
type Name = (Kind, Arc<str>);

impl Places {
    /// Weighs routes again, or forgets those that are gone or nobody's; gives back those of whom something else is true
    /// now: who waits or need not any longer, and who keeps places meanwhile.
    pub(super) fn weigh<'r>(
        &mut self,
        routes: impl Iterator<Item = (&'r RouteId, Option<Weight>)>,
        most: Most,
    ) -> BTreeSet<RouteId> {
        let mut touched = BTreeSet::new();
        for (id, route) in routes {
            let key = &id.1;
            let namespace = self.namespaces.entry(key.namespace.clone()).or_default();
            namespace.put((id.0, key.name.clone()), route);
            touched.insert(key.namespace.clone());
        }
        if std::mem::replace(&mut self.most, most) != most {
            touched.extend(self.namespaces.keys().cloned());
        }
        let mut news = BTreeSet::new();
        for name in touched {
            let Some(namespace) = self.namespaces.get_mut(&name) else { continue };
            let waiting = namespace.newest(&most);
            let before = std::mem::replace(&mut namespace.waiting, waiting);
            let now = &namespace.waiting;
            let differ = before.keys().chain(now.keys());
            let differ = differ.filter(|route| before.get(*route) != now.get(*route));
            let id = |(kind, route): &Name| (*kind, ObjectKey::new(name.clone(), route.clone()));
            news.extend(differ.map(id));
            if namespace.routes.is_empty() {
                self.namespaces.remove(&name);
            }
        }
        news
    }

    /// Why a route waits, and whether it keeps its places meanwhile.
    pub(super) fn refused(&self, (kind, key): &RouteId) -> Option<(Why, bool)> {
        let waiting = &self.namespaces.get(&key.namespace)?.waiting;
        let Waits { lacks, keeps } = waiting.get(&(*kind, key.name.clone()))?;
        Some((over_budget(lacks), *keeps))
    }
}

/// Reason and message for a route that waits.
fn over_budget(name: &str) -> Why {
    let message = format!(
        "the older routes of its namespace leave too little of the {name} that they may have; remove some, or raise \
         {name} in {} of the ConfigMap",
        budget::KEY
    );
    ("OverBudget", message)
}

impl Namespace {
    fn put(&mut self, name: Name, route: Option<Weight>) {
        if let Some(before) = self.routes.remove(&name) {
            self.total = with(self.total, before.served, u64::saturating_sub);
        }
        if let Some(weight) = route {
            self.total = with(self.total, weight.served, u64::saturating_add);
            self.routes.insert(name, weight);
        }
    }

    /// Those for whom the older ones leave too little. What they ask for stays closed, as far as it would fit a budget
    /// of the same size once more: what a route guards is open to nobody because an older one has grown.
    fn newest(&self, most: &Most) -> BTreeMap<Name, Waits> {
        let exceeded = |amounts: &Amounts| {
            let mut kinds = most.iter().zip(amounts);
            kinds.find(|((_, most), amount)| *amount > most).map(|((name, _), _)| *name)
        };
        let mut waiting = BTreeMap::new();
        if exceeded(&self.total).is_none() {
            return waiting;
        }
        let mut order: Vec<_> = self.routes.iter().collect();
        order.sort_by_key(|((kind, name), weight)| (weight.created, name, *kind));
        let (mut taken, mut kept) = (Amounts::default(), Amounts::default());
        for (name, weight) in order {
            let then = with(taken, weight.served, u64::saturating_add);
            let Some(lacks) = exceeded(&then) else {
                taken = then;
                continue;
            };
            let closed = with(kept, weight.closed, u64::saturating_add);
            let keeps = exceeded(&closed).is_none();
            if keeps {
                kept = closed;
            }
            waiting.insert(name.clone(), Waits { lacks, keeps });
        }
        waiting
    }
}

fn with(own: Amounts, other: Amounts, join: fn(u64, u64) -> u64) -> Amounts {
    std::array::from_fn(|kind| join(own[kind], other[kind]))
}
