//! What the routes of one namespace take together. Beyond it the newest of them wait, and nobody else does.

use super::kinds::RouteId;
use super::rules::{expressions, places};
use crate::budget;
use objects::gateway::HttpRoute;
use objects::{Kind, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is counted, with how much of it there may be.
type Most = [(&'static str, u64); 3];
/// Places, regular expressions, and bytes of their text.
type Amounts = [u64; 3];

/// What routes take by namespace; costs time by what changes, unless a namespace has too much.
#[derive(Debug, Default)]
pub(super) struct Places {
    namespaces: BTreeMap<Arc<str>, Namespace>,
    most: Most,
}

#[derive(Debug, Default)]
struct Namespace {
    /// When a route was made, and what it takes.
    routes: BTreeMap<Name, (i64, Amounts)>,
    total: Amounts,
    /// Who waits, and for want of what.
    waiting: BTreeMap<Name, &'static str>,
}

/// A route among those of its namespace.
type Name = (Kind, Arc<str>);

impl Places {
    /// Weighs routes again, each with the number of hosts under which it would answer, or forgets those that are gone
    /// or nobody's; gives back those who wait from now on, and those who need not any longer.
    pub(super) fn weigh<'r>(
        &mut self,
        routes: impl Iterator<Item = (&'r RouteId, Option<(&'r HttpRoute, usize)>)>,
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

    /// Why a route waits.
    pub(super) fn refused(&self, (kind, key): &RouteId) -> Option<(&'static str, String)> {
        let name = self.namespaces.get(&key.namespace)?.waiting.get(&(*kind, key.name.clone()))?;
        Some(over_budget(name))
    }
}

/// Reason and message for a route that waits.
pub(super) fn over_budget(name: &str) -> (&'static str, String) {
    let message = format!(
        "the older routes of its namespace leave too little of the {name} that they may have; remove some, or raise \
         {name} in {} of the ConfigMap",
        budget::KEY
    );
    ("OverBudget", message)
}

impl Namespace {
    fn put(&mut self, name: Name, route: Option<(&HttpRoute, usize)>) {
        if let Some((_, amounts)) = self.routes.remove(&name) {
            self.total = with(self.total, amounts, u64::saturating_sub);
        }
        if let Some((route, hosts)) = route {
            let (number, bytes) = expressions(route);
            // Whom fewer listeners have is never charged less than for what it says itself.
            let hosts = hosts.max(route.hostnames.len()).max(1);
            let amounts = [places(route).saturating_mul(hosts), number, bytes];
            let amounts = amounts.map(|amount| u64::try_from(amount).unwrap_or(u64::MAX));
            self.total = with(self.total, amounts, u64::saturating_add);
            self.routes.insert(name, (route.meta.created, amounts));
        }
    }

    /// Those for whom the older ones leave too little.
    fn newest(&self, most: &Most) -> BTreeMap<Name, &'static str> {
        let exceeded = |amounts: &Amounts| {
            let mut kinds = most.iter().zip(amounts);
            kinds.find(|((_, most), amount)| *amount > most).map(|((name, _), _)| *name)
        };
        let mut waiting = BTreeMap::new();
        if exceeded(&self.total).is_none() {
            return waiting;
        }
        let mut order: Vec<_> = self.routes.iter().collect();
        order.sort_by_key(|((kind, name), (created, _))| (*created, name, *kind));
        let mut taken = Amounts::default();
        for (name, (_, amounts)) in order {
            let then = with(taken, *amounts, u64::saturating_add);
            match exceeded(&then) {
                Some(kind) => drop(waiting.insert(name.clone(), kind)),
                None => taken = then,
            }
        }
        waiting
    }
}

fn with(own: Amounts, other: Amounts, join: fn(u64, u64) -> u64) -> Amounts {
    std::array::from_fn(|kind| join(own[kind], other[kind]))
}
