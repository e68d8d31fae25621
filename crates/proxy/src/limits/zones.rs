//! Which Ingress has which buckets and slots: found again by every generation that still limits something.

use super::{Buckets, Names, Slots};
use model::policy::{LimitKey, Limits};
use model::{Location, Origin};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// All zones of the process.
#[derive(Debug, Default)]
pub struct Zones {
    buckets: Registry<(Origin, Per, String), Buckets>,
    slots: Registry<(Origin, String), Slots>,
    names: Names,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Per {
    Second,
    Minute,
}

/// What the limits of a location count with.
#[derive(Clone, Debug)]
pub struct Gate {
    /// For `limit-rps`.
    pub per_second: Option<Arc<Buckets>>,
    /// For `limit-rpm`.
    pub per_minute: Option<Arc<Buckets>>,
    /// For `limit-connections`.
    pub connections: Option<Arc<Slots>>,
    /// Makes clients of texts.
    pub names: Names,
}

impl Zones {
    /// What the limits of a location count with; none if it has none. A zone is that of the Ingress, and another one
    /// when something else tells clients apart; other numbers change nothing about it.
    pub fn gate(&self, location: &Location) -> Option<Arc<Gate>> {
        let limits = &location.policy.limits;
        let origin = location.origin.clone().filter(|_| !limits.is_empty())?;
        let Limits { per_second, per_minute, connections, exempt: _, key, .. } = limits;
        let key = match key {
            LimitKey::Address => String::new(),
            LimitKey::Text(template) => template.to_string(),
        };
        let buckets = |per| self.buckets.of((origin.clone(), per, key.clone()));
        Some(Arc::new(Gate {
            per_second: per_second.map(|_| buckets(Per::Second)),
            per_minute: per_minute.map(|_| buckets(Per::Minute)),
            connections: connections.map(|_| self.slots.of((origin.clone(), key.clone()))),
            names: self.names.clone(),
        }))
    }
}

/// What somebody still holds, by name.
#[derive(Debug)]
struct Registry<K, V>(Mutex<HashMap<K, Weak<V>>>);

impl<K, V> Default for Registry<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Default> Registry<K, V> {
    fn of(&self, key: K) -> Arc<V> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.get(&key).and_then(Weak::upgrade) {
            return found;
        }
        held.retain(|_, zone| zone.strong_count() > 0);
        let new = Arc::new(V::default());
        held.insert(key, Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Gate, Zones};
    use model::policy::{LimitKey, Limits, Policy, RequestLimit};
    use model::{Backend, Kind, Location, Origin, PathKind, Template};

    fn location(ingress: &str, limits: Limits) -> Location {
        Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend: Backend::NotFound,
            canary: None,
            service: None,
            origin: Some(Origin {
                kind: Kind::Ingress,
                namespace: "demo".into(),
                name: ingress.into(),
            }),
            policy: Arc::new(Policy { limits, ..Policy::default() }),
        }
    }

    fn limits(rate: u64) -> Limits {
        let per_second = Some(RequestLimit { rate, burst: 1000 });
        Limits { per_second, ..Limits::default() }
    }

    fn same(one: &Arc<Gate>, other: &Arc<Gate>) -> bool {
        let of = |gate: &Arc<Gate>| gate.per_second.clone().expect("has a limit");
        Arc::ptr_eq(&of(one), &of(other))
    }

    #[test]
    fn a_zone_is_that_of_its_ingress_and_survives_other_numbers() {
        let zones = Zones::default();
        let gate = |ingress, limits| zones.gate(&location(ingress, limits)).expect("limits");
        let first = gate("a", limits(1));
        assert!(same(&first, &gate("a", limits(2))));
        assert!(!same(&first, &gate("b", limits(1))));
    }

    #[test]
    fn another_key_is_another_zone() {
        let zones = Zones::default();
        let key = LimitKey::Text(Template::parse("$http_x_api_key").expect("a known variable"));
        let gate = |limits| zones.gate(&location("a", limits)).expect("limits");
        assert!(!same(&gate(limits(1)), &gate(Limits { key, ..limits(1) })));
    }

    #[test]
    fn what_no_location_holds_is_forgotten() {
        let zones = Zones::default();
        drop(zones.gate(&location("a", limits(1))));
        let kept = zones.gate(&location("b", limits(1)));
        assert_eq!(zones.buckets.0.lock().expect("not poisoned").len(), 1);
        assert!(kept.is_some() && zones.gate(&location("c", Limits::default())).is_none());
    }
}
