//! How many endpoints the lists of one namespace may have together: each Service port that somebody leads to has one.
//! Beyond it the lists of its newest Services stay empty, and nobody else's do.

use crate::budget::{ENDPOINTS, KEY};
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a list would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// When its Service was made.
    pub(crate) created: i64,
    /// Addresses of its EndpointSlices, for each port that they are reached at.
    pub(crate) endpoints: u64,
}

/// The lists of endpoints that one kind of objects leads to, and which of them stay empty. Costs time by what changes,
/// unless a namespace has too much.
#[derive(Debug)]
pub(crate) struct Lists<K> {
    namespaces: BTreeMap<Arc<str>, Namespace<K>>,
    touched: BTreeSet<Arc<str>>,
    most: u64,
}

#[derive(Debug)]
struct Namespace<K> {
    weights: BTreeMap<K, Weight>,
    total: u64,
    waiting: BTreeSet<K>,
}

impl<K> Default for Lists<K> {
    fn default() -> Self {
        Self { namespaces: BTreeMap::new(), touched: BTreeSet::new(), most: 0 }
    }
}

impl<K: Ord + Clone> Lists<K> {
    /// Weighs a list of a namespace again, or forgets it.
    pub(crate) fn weigh(&mut self, namespace: &Arc<str>, list: &K, weight: Option<Weight>) {
        let all = self.namespaces.entry(Arc::clone(namespace)).or_insert_with(|| Namespace {
            weights: BTreeMap::new(),
            total: 0,
            waiting: BTreeSet::new(),
        });
        let before = match weight {
            Some(weight) => all.weights.insert(list.clone(), weight),
            None => all.weights.remove(list),
        };
        if before != weight {
            all.total -= before.map_or(0, |before| before.endpoints);
            all.total += weight.map_or(0, |weight| weight.endpoints);
            self.touched.insert(Arc::clone(namespace));
        } else if all.weights.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// Decides again which lists stay empty; returns those of which it is news.
    pub(crate) fn admit(&mut self, most: u64) -> BTreeSet<K> {
        let mut touched = std::mem::take(&mut self.touched);
        if std::mem::replace(&mut self.most, most) != most {
            touched.extend(self.namespaces.keys().cloned());
        }
        let mut news = BTreeSet::new();
        for name in touched {
            let Some(namespace) = self.namespaces.get_mut(&name) else { continue };
            let waiting = namespace.newest(most);
            news.extend(waiting.symmetric_difference(&namespace.waiting).cloned());
            namespace.waiting = waiting;
            if namespace.weights.is_empty() {
                self.namespaces.remove(&name);
            }
        }
        news
    }

    /// Whether a list stays empty.
    pub(crate) fn waits(&self, namespace: &str, list: &K) -> bool {
        self.namespaces.get(namespace).is_some_and(|all| all.waiting.contains(list))
    }
}

impl<K: Ord + Clone> Namespace<K> {
    /// Those for which the lists of older Services leave too little.
    fn newest(&self, most: u64) -> BTreeSet<K> {
        if self.total <= most {
            return BTreeSet::new();
        }
        let mut order: Vec<_> = self.weights.iter().collect();
        order.sort_by_key(|(list, weight)| (weight.created, *list));
        let mut taken = 0;
        let waits = |(_, weight): &(&K, &Weight)| {
            let fits = taken + weight.endpoints <= most;
            if fits {
                taken += weight.endpoints;
            }
            !fits
        };
        order.into_iter().filter(waits).map(|(list, _)| list.clone()).collect()
    }
}

/// Why the list of a Service stays empty.
pub(crate) fn too_many(service: &ObjectKey) -> String {
    format!(
        "Service {}/{} has more endpoints than the older ones of its namespace leave of those that they may have: \
         remove some, or raise {ENDPOINTS} in {KEY} of the ConfigMap",
        service.namespace, service.name
    )
}

#[cfg(test)]
mod tests {
    use super::{Lists, Weight};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn weight(created: i64, endpoints: u64) -> Option<Weight> {
        Some(Weight { created, endpoints })
    }

    #[test]
    fn the_newest_wait_until_there_is_room_and_one_that_fits_need_not() {
        let mut lists = Lists::default();
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        lists.weigh(&a, &1, weight(1, 6));
        lists.weigh(&a, &2, weight(2, 6));
        lists.weigh(&a, &3, weight(3, 4));
        lists.weigh(&b, &4, weight(9, 10));
        assert_eq!(lists.admit(10), BTreeSet::from([2]));
        assert!(lists.waits("a", &2) && !lists.waits("a", &3) && !lists.waits("b", &4));
        lists.weigh(&a, &0, weight(0, 5));
        assert_eq!(lists.admit(10), BTreeSet::from([1]), "2 waits as before, 3 fits still");
        lists.weigh(&a, &0, None);
        lists.weigh(&a, &1, None);
        assert_eq!(lists.admit(10), BTreeSet::from([1, 2]));
        assert_eq!(lists.admit(9), BTreeSet::from([3, 4]), "the bound itself changed");
        for list in [2, 3] {
            lists.weigh(&a, &list, None);
        }
        lists.weigh(&b, &4, None);
        lists.admit(9);
        assert!(lists.namespaces.is_empty());
    }
}
