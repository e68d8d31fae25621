//! Which Ingress has which buckets and slots: found again by every generation that still limits something.

use super::{Buckets, Names, Slots};
use crate::crowds::Crowd;
use crate::under_way::UNSAID;
use model::policy::{LimitKey, Limits};
use model::snippet::{GlobalScope, Template};
use model::{Location, Origin};
use parking_lot::Mutex;
use shares::WeakMap;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Room;

/// All zones of the process.
#[derive(Debug)]
pub(crate) struct Zones {
    /// What clients of Ingresses take that limits remember.
    room: Room,
    buckets: Registry<(Origin, Per, String), Buckets>,
    slots: Registry<(Origin, String), Slots>,
    declared_buckets: Registry<Declared, Buckets>,
    declared_slots: Registry<Declared, Slots>,
    /// Clients that declared zones had no room for.
    full: Arc<AtomicU64>,
    names: Names,
}

/// A zone that an `http-snippet` declares: its name, its key, its size. Another key or size is another zone.
type Declared = (String, String, u64);

/// Clients that limits of Ingresses remember may take so many parts of the memory, those of one namespace as much as is
/// left for others: whatever some fill, who comes later is limited, too.
const PART: u64 = 16;
const QUARTERS: u64 = 2;

/// Bytes of a zone's declared size for each client (nginx: one state of a zone).
const STATE: u64 = 128;

/// The zones that an `http-snippet` declares, by name.
#[derive(Debug, Default)]
pub(crate) struct DeclaredZones {
    /// `limit_req_zone`
    pub requests: HashMap<String, Arc<RequestZone>>,
    /// `limit_conn_zone`
    pub connections: HashMap<String, Arc<ConnectionZone>>,
}

/// `limit_req_zone`.
#[derive(Debug)]
pub(crate) struct RequestZone {
    /// Whose requests are counted.
    pub key: Template,
    /// Thousandths of a request in a second.
    pub rate: u64,
    /// What it counts with.
    pub buckets: Arc<Buckets>,
    /// Makes clients of texts.
    pub names: Names,
}

/// `limit_conn_zone`.
#[derive(Debug)]
pub(crate) struct ConnectionZone {
    /// Whose requests are counted.
    pub key: Template,
    /// What it counts with.
    pub slots: Arc<Slots>,
    /// Makes clients of texts.
    pub names: Names,
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

impl Default for Zones {
    fn default() -> Self {
        Self {
            room: Room::leaving_some(UNSAID / PART, QUARTERS),
            buckets: Registry::default(),
            slots: Registry::default(),
            declared_buckets: Registry::default(),
            declared_slots: Registry::default(),
            full: Arc::default(),
            names: Names::default(),
        }
    }
}

impl Zones {
    /// The process may use so much memory: clients that are remembered have their part of it.
    pub(crate) fn bound(&self, memory: u64) {
        self.room.set(memory / PART);
    }

    /// Forgets clients that were away for long.
    pub(crate) fn sweep(&self) {
        self.buckets.held().iter().for_each(|zone| zone.sweep());
    }

    /// What the limits of a location count with; none if it has none. A zone is that of the Ingress, and another one
    /// when something else tells clients apart; other numbers change nothing about it.
    pub(crate) fn gate(&self, location: &Location) -> Option<Arc<Gate>> {
        let limits = &location.policy.limits;
        let origin = location.origin.as_deref().cloned().filter(|_| !limits.is_empty())?;
        let Limits { per_second, per_minute, connections, exempt: _, key, .. } = limits;
        let key = match key {
            LimitKey::Address => String::new(),
            LimitKey::Text(template) => template.to_string(),
        };
        let make = || Buckets::default().lent(self.room.lend(&origin.namespace));
        let buckets = |per| self.buckets.of((origin.clone(), per, key.clone()), make);
        Some(Arc::new(Gate {
            per_second: per_second.map(|_| buckets(Per::Second)),
            per_minute: per_minute.map(|_| buckets(Per::Minute)),
            connections: connections
                .map(|_| self.slots.of((origin.clone(), key.clone()), Slots::default)),
            names: self.names.clone(),
        }))
    }

    /// The zones that an `http-snippet` declares; each remembers as many clients as its size has room for.
    pub(crate) fn declared(&self, scope: &GlobalScope) -> DeclaredZones {
        let clients = |size: u64| usize::try_from(size / STATE).unwrap_or(usize::MAX);
        let requests = scope.request_zones.iter().map(|zone| {
            let declared = (zone.name.clone(), zone.key.to_string(), zone.size);
            let buckets = self
                .declared_buckets
                .of(declared, || Buckets::of(clients(zone.size)).counted(self.full.clone()));
            let rate = u64::from(zone.rate.requests) * 1000;
            let rate = if zone.rate.per_minute { rate / 60 } else { rate };
            let (key, names) = (zone.key.clone(), self.names.clone());
            (zone.name.clone(), Arc::new(RequestZone { key, rate, buckets, names }))
        });
        let connections = scope.connection_zones.iter().map(|zone| {
            let declared = (zone.name.clone(), zone.key.to_string(), zone.size);
            let slots = self
                .declared_slots
                .of(declared, || Slots::of(clients(zone.size)).counted(self.full.clone()));
            let (key, names) = (zone.key.clone(), self.names.clone());
            (zone.name.clone(), Arc::new(ConnectionZone { key, slots, names }))
        });
        DeclaredZones { requests: requests.collect(), connections: connections.collect() }
    }

    /// How full the fullest of the declared zones is; there is room for nobody where none is declared.
    pub(crate) fn crowd(&self) -> Crowd {
        let buckets = self.declared_buckets.held().into_iter().map(|zone| zone.room());
        let slots = self.declared_slots.held().into_iter().map(|zone| zone.room());
        let share = |(now, most): &(usize, usize)| *now as f64 / *most as f64;
        let fullest = buckets.chain(slots).max_by(|one, other| share(one).total_cmp(&share(other)));
        let (now, most) = fullest.unwrap_or_default();
        let refused = self.full.load(Ordering::Relaxed);
        Crowd { now: now as u64, most: most as u64, refused }
    }
}

/// What somebody still holds, by name.
#[derive(Debug)]
struct Registry<K, V>(Mutex<WeakMap<K, V>>);

impl<K, V> Default for Registry<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V> Registry<K, V> {
    fn held(&self) -> Vec<Arc<V>> {
        self.0.lock().values().collect()
    }

    fn of(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut held = self.0.lock();
        held.get_or_insert_with(key, || Arc::new(make()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Crowd, Gate, Zones};
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
            origin: Some(Origin::new(Kind::Ingress, "demo", ingress).into()),
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

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_has_a_bound_for_a_namespace_and_is_given_back() {
        let zones = Zones::default();
        // Half of a sixteenth of it: about 43,000 clients.
        zones.bound(128 << 20);
        let gates: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .map(|ingress| zones.gate(&location(ingress, limits(1000))).expect("limits"))
            .collect();
        let buckets = || gates.iter().map(|gate| gate.per_second.as_ref().expect("a limit"));
        let limit = RequestLimit { rate: 1000, burst: 0 };
        for client in 0..30_000 {
            let client = zones.names.client(&client.to_string());
            buckets().for_each(|zone| assert!(zone.take(client, limit)));
        }
        let count = || buckets().map(|zone| zone.len()).sum::<usize>();
        assert!((40_000..45_000).contains(&count()), "{}", count());
        assert!(zones.room.now().0 <= 4 << 20, "{:?}", zones.room.now());
        // Whoever came last is known.
        let last = zones.names.client("29999");
        assert!(buckets().all(|zone| !zone.has_room(last, limit)));
        // Two others that take all they may leave something to a fourth.
        let of = |namespace: &str| {
            let origin = Origin::new(Kind::Ingress, namespace, "a");
            let location = Location { origin: Some(origin.into()), ..location("a", limits(1000)) };
            zones.gate(&location).and_then(|gate| gate.per_second.clone()).expect("a limit")
        };
        let others = ["second", "third", "fourth"].map(of);
        for zone in &others {
            for client in 0..30_000 {
                assert!(zone.take(zones.names.client(&client.to_string()), limit));
            }
        }
        assert!(others[2].len() > 4_000, "{:?}", others.each_ref().map(|zone| zone.len()));
        drop(others);
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        zones.sweep();
        assert_eq!((count(), zones.room.now().0), (0, 0));
    }

    #[test]
    fn another_key_is_another_zone() {
        let zones = Zones::default();
        let key = LimitKey::Text(Template::parse("$http_x_api_key").expect("a known variable"));
        let gate = |limits| zones.gate(&location("a", limits)).expect("limits");
        assert!(!same(&gate(limits(1)), &gate(Limits { key, ..limits(1) })));
    }

    #[test]
    fn a_declared_zone_survives_what_changes_around_it_and_has_room_for_its_size() {
        let zones = Zones::default();
        let declared = |text| {
            let read = snippet::understand(snippet::Context::Http, text);
            zones.declared(&read.expect("the test writes a snippet").http)
        };
        let zone = |text| declared(text).requests["a"].clone();
        let text = "limit_req_zone $http_x zone=a:32k rate=30r/m;";
        let first = zone(text);
        assert_eq!(first.rate, 500);
        let faster = zone("limit_req_zone $http_x zone=a:32k rate=1r/s; map $host $x {}");
        assert!(Arc::ptr_eq(&first.buckets, &faster.buckets));
        let another = zone("limit_req_zone $http_y zone=a:32k rate=30r/m;");
        assert!(!Arc::ptr_eq(&first.buckets, &another.buckets));
        let limit = RequestLimit { rate: 500, burst: 0 };
        for client in 0..10_000 {
            first.buckets.take(first.names.client(&client.to_string()), limit);
        }
        assert!(first.buckets.len() <= 256, "{} of 32k / 128", first.buckets.len());
    }

    #[test]
    fn the_fullest_declared_zone_is_told_with_what_found_no_room() {
        let zones = Zones::default();
        assert_eq!(zones.crowd(), Crowd::default(), "none is declared");
        let text =
            "limit_req_zone $http_x zone=a:32k rate=1r/s; limit_conn_zone $http_x zone=b:32k;";
        let read = snippet::understand(snippet::Context::Http, text);
        let declared = zones.declared(&read.expect("the test writes a snippet").http);
        let (requests, connections) = (&declared.requests["a"], &declared.connections["b"]);
        let slot = connections.slots.take(requests.names.client("0"), 1);
        assert!(slot.is_some());
        assert_eq!(zones.crowd(), Crowd { now: 1, most: 256, refused: 0 });
        let limit = RequestLimit { rate: 1000, burst: 0 };
        for client in 0..1000 {
            requests.buckets.take(requests.names.client(&client.to_string()), limit);
        }
        let Crowd { now, most, refused } = zones.crowd();
        assert!(now > 200 && now <= 256 && most == 256 && refused == 1000 - now, "{now} {refused}");
        drop((slot, declared));
        assert_eq!(zones.crowd(), Crowd { now: 0, most: 0, refused }, "nobody declares it");
    }

    #[test]
    fn what_no_location_holds_is_forgotten() {
        let zones = Zones::default();
        for other in 0..1000 {
            drop(zones.gate(&location(&other.to_string(), limits(1))));
        }
        let kept = zones.gate(&location("b", limits(1)));
        assert!(zones.buckets.0.lock().entries() < 100);
        assert!(kept.is_some() && zones.gate(&location("c", Limits::default())).is_none());
    }
}
