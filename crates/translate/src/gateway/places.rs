//! What the routes of one namespace take together. Beyond it the newest of them wait, and nobody else does.

use super::rules::places;
use crate::budget;
use objects::ObjectKey;
use objects::gateway::HttpRoute;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The places of routes by namespace; costs time by what changes, unless a namespace has too much.
#[derive(Debug, Default)]
pub(super) struct Places {
    namespaces: BTreeMap<Arc<str>, Namespace>,
    most: u64,
}

#[derive(Debug, Default)]
struct Namespace {
    /// When a route was made, and what it takes.
    routes: BTreeMap<Arc<str>, (i64, u64)>,
    total: u64,
    waiting: BTreeSet<Arc<str>>,
}

impl Places {
    /// Weighs routes again, or forgets those that are gone or nobody's; gives back those who wait from now on, and
    /// those who need not any longer.
    pub(super) fn weigh<'r>(
        &mut self,
        routes: impl Iterator<Item = (&'r ObjectKey, Option<&'r HttpRoute>)>,
        most: u64,
    ) -> BTreeSet<ObjectKey> {
        let mut touched = BTreeSet::new();
        for (key, route) in routes {
            let namespace = self.namespaces.entry(key.namespace.clone()).or_default();
            namespace.put(key, route);
            touched.insert(key.namespace.clone());
        }
        if std::mem::replace(&mut self.most, most) != most {
            touched.extend(self.namespaces.keys().cloned());
        }
        let mut news = BTreeSet::new();
        for name in touched {
            let Some(namespace) = self.namespaces.get_mut(&name) else { continue };
            let waiting = namespace.newest(most);
            let differ = namespace.waiting.symmetric_difference(&waiting);
            news.extend(differ.map(|route| ObjectKey::new(name.clone(), route.clone())));
            namespace.waiting = waiting;
            if namespace.routes.is_empty() {
                self.namespaces.remove(&name);
            }
        }
        news
    }

    /// Why a route waits.
    pub(super) fn refused(&self, key: &ObjectKey) -> Option<(&'static str, String)> {
        self.namespaces.get(&key.namespace)?.waiting.get(&key.name)?;
        let message = format!(
            "the older routes of its namespace leave too little of the {name} that it may have (matches times backends \
             times host names); remove some, or raise {name} in {key} of the ConfigMap",
            name = budget::PLACES,
            key = budget::KEY
        );
        Some(("OverBudget", message))
    }
}

impl Namespace {
    fn put(&mut self, key: &ObjectKey, route: Option<&HttpRoute>) {
        if let Some((_, places)) = self.routes.remove(&key.name) {
            self.total -= places;
        }
        if let Some(route) = route {
            let places = u64::try_from(places(route)).unwrap_or(u64::MAX >> 16);
            self.total += places;
            self.routes.insert(key.name.clone(), (route.meta.created, places));
        }
    }

    /// Those for whom the older ones leave too little.
    fn newest(&self, most: u64) -> BTreeSet<Arc<str>> {
        if self.total <= most {
            return BTreeSet::new();
        }
        let mut order: Vec<_> = self.routes.iter().collect();
        order.sort_by_key(|(name, (created, _))| (*created, *name));
        let mut taken = 0;
        let waits = order.into_iter().filter(|(_, (_, places))| {
            let fits = taken + places <= most;
            taken += if fits { *places } else { 0 };
            !fits
        });
        waits.map(|(name, _)| name.clone()).collect()
    }
}
