//! The second front: GatewayClasses, Gateways and their routes to hosts with rules, beside the servers of Ingresses.
//! What is kept from one Snapshot to the next is looked at again only where something touched it.

mod added;
mod addresses;
mod apart;
mod attach;
mod authorities;
mod authority_files;
mod backend_tls;
mod backends;
mod certificates;
mod classes;
mod client_certificates;
mod closed;
mod conflicts;
mod cors;
mod expressions;
mod features;
mod few;
mod filters;
mod giving;
mod grants;
mod guards;
mod hosts;
mod index;
mod kinds;
mod links;
mod listeners;
mod missing;
mod names;
mod parents;
mod paths;
mod places;
mod policies;
mod reach;
mod rivals;
mod room;
mod rules;
mod service_names;
mod services;
mod sessions;
mod sets;
mod sockets;
mod status;
mod streams;
mod targets;
mod texts;
mod times;
mod ungranted;
mod unlisted;
mod upstreams;
mod vain;
mod weights;

pub use names::covers;
pub(crate) use room::Room;
pub(crate) use rules::usual;
pub use service_names::{
    FAMILIES, label_of, named_by, own_slices, service_name, slice_name, stand_in,
};
pub use status::{
    ClassStatus, Condition, GatewayService, GatewayStatus, ListenerStatus, PolicyStatus,
    RouteStatus, Sentence, ServiceKind, SetStatus, Statuses,
};

use crate::Options;
use crate::endpoint_budget::Lists;
use crate::kinds::kind_of;
use crate::translator::differing;
use addresses::Given;
use attach::{Attached, attach, hosts_of};
use authority_files::AuthorityFiles;
use backend_tls::Policies;
use backends::Port;
use certificates::Certified;
use classes::{class_status, is_ours};
use client_certificates::authorities_of;
use few::Few;
use hosts::host;
use imbl::OrdMap;
use index::{put, take_out};
use kinds::{RouteId, is_stream};
use links::{Links, Named};
use listeners::State;
use model::{
    Configuration, Kind, Listener, ListenerId, Origin, Problem, RouteKey, Severity, StreamPort,
};
use objects::gateway::{Gateway, ListenerSet};
use objects::{ObjectKey, Snapshot, interleaved};
use parents::{Parent, ours};
use places::{Places, Weight};
use reach::Behind;
use reach::Taken;
use rivals::Lost;
use status::unserved;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use streams::{List, Streams};

/// Secrets that a Gateway names, for whoever keeps their data.
pub fn secrets_of(gateway: &Gateway) -> Vec<ObjectKey> {
    listeners::secrets(gateway).collect()
}

/// Secrets that a ListenerSet names, for whoever keeps their data.
pub fn secrets_of_set(set: &ListenerSet) -> Vec<ObjectKey> {
    added::secrets(set).collect()
}

/// What was made of the objects of the Gateway API.
#[derive(Debug, Default)]
pub(crate) struct Gateways {
    gateways: BTreeMap<ObjectKey, State>,
    /// The routes that name a Gateway of ours, or did.
    routes: BTreeMap<RouteId, Box<Attached>>,
    /// Which ListenerSets name a Gateway, whosever it is.
    sets: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// The ListenerSets that wait, as their namespaces have too many listeners.
    waiting_sets: BTreeSet<ObjectKey>,
    /// How many of them a namespace may have.
    most_listeners: u64,
    /// What routes name, those of streams among them.
    links: Links,
    /// Which routes answer for a host.
    by_host: BTreeMap<RouteKey, Few<RouteId>>,
    /// Which of them have no part in it, where there are such.
    lost: BTreeMap<RouteKey, Lost>,
    /// The address of each Gateway, where there is a pool of them.
    given: BTreeMap<ObjectKey, Given>,
    /// The Service of each Gateway, where it has a load balancer.
    behind: BTreeMap<ObjectKey, Behind>,
    /// How many ports the Gateways of a namespace may have.
    most_ports: u64,
    /// What sockets there are for listeners, if there is a bound.
    sockets: Option<Room>,
    /// The ports of Gateways for which there is none.
    crowded: BTreeMap<ObjectKey, BTreeSet<targets::Port>>,
    /// The ports of TCP and UDP services.
    stream_ports: BTreeSet<StreamPort>,
    /// The lists of endpoints of the Service ports that routes lead to.
    lists: Lists<Port>,
    /// What routes take, by namespace.
    places: Places,
    /// The Secrets of listeners that are served.
    pub(crate) secrets: BTreeSet<ObjectKey>,
    /// The routes of streams.
    streams: Streams,
    /// Which backends are spoken to under TLS.
    policies: Policies,
    /// The authorities that policies and Gateways name.
    files: AuthorityFiles,
    pub(crate) statuses: Statuses,
}

/// What changed beside the objects of the Gateway API itself.
pub(crate) struct Around<'a> {
    pub(crate) old: &'a Snapshot,
    pub(crate) new: &'a Snapshot,
    pub(crate) options: &'a Options,
    /// What the routes of a namespace may take.
    pub(crate) most: [(&'static str, u64); 3],
    /// How many listeners the ListenerSets of a namespace may have.
    pub(crate) listeners: u64,
    /// How many endpoints the Services of a namespace may have.
    pub(crate) endpoints: u64,
    /// How many ports behind their Services the Gateways of a namespace may have.
    pub(crate) ports: u64,
    /// What sockets there are for listeners, if there is a bound.
    pub(crate) sockets: Option<Room>,
    /// Ports of TCP and UDP services, which have all addresses.
    pub(crate) stream_ports: &'a BTreeSet<StreamPort>,
    /// Services that changed, or whose EndpointSlices did.
    pub(crate) services: &'a BTreeSet<ObjectKey>,
    pub(crate) secrets: &'a [ObjectKey],
    pub(crate) config_maps: &'a BTreeSet<ObjectKey>,
    /// Whether a Secret holds a certificate, and what is said of it.
    pub(crate) certified: Certified<'a>,
}

/// What was touched on the way.
#[derive(Default)]
struct Work {
    gateways: BTreeSet<ObjectKey>,
    sets: BTreeSet<ObjectKey>,
    routes: BTreeSet<RouteId>,
    hosts: BTreeSet<RouteKey>,
    /// Listeners that appeared, changed or went: what each is now.
    listeners: BTreeMap<ListenerId, Option<Listener>>,
    ports: BTreeSet<Port>,
    /// Ports and hosts of listeners that may lead elsewhere, and lists of endpoints.
    streams: BTreeSet<StreamPort>,
    stream_hosts: BTreeSet<RouteKey>,
    lists: BTreeSet<List>,
    /// Services that have too many endpoints from now on, or have so no longer.
    crowded: BTreeSet<ObjectKey>,
    /// Services whose policies, or the routes that lead to them, are others now.
    policed: BTreeSet<ObjectKey>,
    policies: BTreeSet<ObjectKey>,
    problems: Vec<(Kind, ObjectKey, Vec<Problem>)>,
}

impl Gateways {
    /// Follows to another Snapshot; gives back the problems of each object that was touched.
    pub(crate) fn update(
        &mut self,
        mut around: Around<'_>,
        configuration: &mut Configuration,
    ) -> Vec<(Kind, ObjectKey, Vec<Problem>)> {
        let (old, new) = (around.old, around.new);
        self.policies.unlisted = new.unlisted.contains(&objects::Kind::BackendTlsPolicy);
        let nobody = |all: &Snapshot| {
            let without = all.http_routes.is_empty() && all.stream_routes.is_empty();
            all.gateway_classes.is_empty() && without
        };
        let idle = |all: &Snapshot| {
            let without = all.backend_tls.is_empty() && all.listener_sets.is_empty();
            all.gateways.is_empty() && without
        };
        if nobody(old) && nobody(new) && idle(old) && idle(new) {
            self.files = AuthorityFiles::default();
            return Vec::new();
        }
        let mut work = Work::default();
        self.files.forget(around.config_maps);
        self.take_unlisted(&around, &mut work);
        self.take_classes(&around, &mut work);
        self.take_sets(&around, &mut work);
        self.take_gateways(&mut around, &mut work);
        self.take_policies(&around, &mut work);
        self.touch_routes(&around, &mut work);
        self.weigh(&around, &mut work);
        self.take_routes(&around, &mut work);
        self.tell_gateways(&around, &mut work);
        self.tell_sets(&around, &mut work);
        self.tell_policies(&around, &mut work);
        self.make_hosts(configuration, &work);
        for (id, listener) in std::mem::take(&mut work.listeners) {
            match listener {
                Some(listener) => configuration.listeners.insert(id, Arc::new(listener)),
                None => configuration.listeners.remove(&id),
            };
        }
        self.make_upstreams(&around, configuration, &mut work);
        self.make_streams(&around, configuration, &mut work);
        self.tell_services(&mut work);
        work.problems
    }

    /// GatewayClasses of ours, and the Gateways of those that changed.
    fn take_classes(&mut self, around: &Around<'_>, work: &mut Work) {
        let (old, new) = (&around.old.gateway_classes, &around.new.gateway_classes);
        for key in differing(old, new) {
            let class = new.get(key).filter(|class| is_ours(class, around.options));
            let status = class.map(|class| class_status(class, around.options));
            let problems = status.as_ref().map(|status| failing(&status.conditions));
            work.tell(Kind::GatewayClass, key, problems.unwrap_or_default());
            let named = new.get(key).and_then(|class| missing::of_class(class, around.options));
            work.note(named);
            match status {
                Some(status) => self.statuses.classes.insert(key.clone(), Arc::new(status)),
                None => self.statuses.classes.remove(key),
            };
            let of_class = around.new.gateways.iter().filter(|(_, one)| *one.class == *key.name);
            work.gateways.extend(of_class.map(|(key, _)| key.clone()));
        }
    }

    /// Gateways that changed, or whose Secrets, grants or class did.
    fn take_gateways(&mut self, around: &mut Around<'_>, work: &mut Work) {
        let (old, new) = (around.old, around.new);
        work.gateways.extend(differing(&old.gateways, &new.gateways).cloned());
        for key in differing(&old.gateways, &new.gateways) {
            // Whosever it is: that it is there answers routes that name it.
            if old.gateways.contains_key(key) != new.gateways.contains_key(key) {
                self.touch_children(key, work);
                work.routes.extend(self.links.astray(&Parent::Gateway(key.clone()), new));
            }
        }
        let granted = grants::touched(old, new);
        let touched = self.gateways.iter().filter(|(key, state)| {
            let mut sets = state.sets.iter().map(|set| &set.object.meta.key.namespace);
            granted.contains(&key.namespace)
                || sets.any(|namespace| granted.contains(namespace))
                || state.secrets().any(|secret| around.secrets.contains(&secret))
                || authorities_of(&state.gateway).any(|map| around.config_maps.contains(&map))
        });
        work.gateways.extend(touched.map(|(key, _)| key.clone()));
        if self.stream_ports != *around.stream_ports {
            self.stream_ports.clone_from(around.stream_ports);
            work.gateways.extend(self.gateways.keys().cloned());
        }
        self.give_addresses(around, work);
        self.weigh_ports(around, work);
        let (mut others, options) = (BTreeSet::new(), around.options);
        for key in &work.gateways.clone() {
            let gateway = new.gateways.get(key).filter(|gateway| self.is_served(gateway, around));
            let state = gateway.map(|gateway| {
                let reach = self.reach(key);
                let sets = self.sets_of(gateway, new);
                let looked_at = (gateway, sets);
                let crowded = self.crowded.get(key);
                let taken = Taken::of(options, around.stream_ports, crowded);
                State::read(
                    looked_at,
                    reach,
                    (new, options, taken),
                    &mut *around.certified,
                    &mut self.files,
                )
            });
            if self.gateways.get(key) != state.as_ref() {
                self.touch_children(key, work);
                others.insert(key.clone());
                let before = self.gateways.get(key).into_iter().flat_map(State::doors);
                for listener in before {
                    work.listeners.entry(listener.id).or_default();
                }
                for listener in state.iter().flat_map(State::doors) {
                    work.listeners.insert(listener.id.clone(), Some(listener));
                }
            }
            match state {
                Some(state) => self.gateways.insert(key.clone(), state),
                None => self.gateways.remove(key),
            };
        }
        if !others.is_empty() {
            let served = self.gateways.values().flat_map(|state| &state.listeners);
            let found = served.filter_map(|read| read.certificate.as_ref()?.as_ref().ok());
            self.secrets = found.cloned().collect();
        }
    }

    /// Routes that changed, or whose namespace, grants or Services did.
    fn touch_routes(&self, around: &Around<'_>, work: &mut Work) {
        let (old, new) = (around.old, around.new);
        work.routes.extend(differing(&old.http_routes, &new.http_routes).cloned());
        work.routes.extend(differing(&old.stream_routes, &new.stream_routes).cloned());
        // Whoever grants something to a namespace touches those of its routes alone that ask for it.
        for (namespace, to) in grants::changed(old, new) {
            let routes = self.links.by_abroad.get(&to).into_iter().flatten();
            let routes = routes.filter(|(_, key)| key.namespace == namespace);
            work.routes.extend(routes.cloned());
        }
        for namespace in differing(&old.namespaces, &new.namespaces).map(|key| &key.name) {
            work.routes.extend(within(&new.http_routes, namespace));
            work.routes.extend(within(&new.stream_routes, namespace));
        }
        for service in around.services {
            // Endpoints alone change nothing that a route says.
            if old.services.get(service) != new.services.get(service) {
                let routes = self.links.by_service.get(service).into_iter().flatten();
                work.routes.extend(routes.cloned());
            }
        }
    }

    /// Weighs the touched routes that name a Gateway of ours; those whom that makes wait, or wait no more, are touched.
    fn weigh(&mut self, around: &Around<'_>, work: &mut Work) {
        let Self { places, streams, gateways, .. } = self;
        let (of_streams, others): (Vec<_>, Vec<_>) =
            work.routes.iter().partition(|id| is_stream(id));
        let weighed = |id: &RouteId| {
            let route = around.new.http_routes.get(id)?;
            let ours = ours(&route.parents, &route.meta.key.namespace, gateways, around.new);
            let hosts = (!ours.is_empty()).then(|| hosts_of(route, &ours, around.new))?;
            Some(Weight::of(route, hosts))
        };
        let others = others.into_iter().map(|id| (id, weighed(id)));
        let weighed = |id: &RouteId| {
            let route = around.new.stream_routes.get(id)?;
            let ours = ours(&route.parents, &route.meta.key.namespace, gateways, around.new);
            let served = (!ours.is_empty()).then(|| streams::amounts(route, &ours, around.new))?;
            // What waits of them leads nowhere, and keeps nothing.
            let closed = places::Amounts::default();
            Some(Weight { created: route.meta.created, served, closed })
        };
        let of_streams = of_streams.into_iter().map(|id| (id, weighed(id)));
        let mut news = places.weigh(others, around.most);
        news.extend(streams.places.weigh(of_streams, around.most));
        work.routes.extend(news);
    }

    fn take_routes(&mut self, around: &Around<'_>, work: &mut Work) {
        let mut taken = BTreeSet::new();
        for id in interleaved(std::mem::take(&mut work.routes)) {
            if is_stream(&id) {
                self.take_stream(&id, around, work);
            } else {
                self.take_route(&id, around, work);
                taken.insert(id);
            }
        }
        for id in self.find_rivals(work) {
            if taken.insert(id.clone()) {
                self.take_route(&id, around, work);
            }
        }
        for id in taken {
            self.give_way(&id, around.new, work);
            self.tell_route(&id, around, work);
        }
    }

    fn make_hosts(&self, configuration: &mut Configuration, work: &Work) {
        for name in interleaved(&work.hosts) {
            let routes = self.by_host.get(name).into_iter().flatten();
            let made = host(
                name,
                routes.filter_map(|key| self.routes.get(key).map(|attached| &**attached)),
                self.lost.get(name),
                &self.gateways,
            );
            let known = configuration.routes.get(name).map(|known| &**known);
            if known != made.as_ref() {
                match made {
                    Some(made) => configuration.routes.insert(name.clone(), Arc::new(made)),
                    None => configuration.routes.remove(name),
                };
            }
        }
    }

    /// Whether a Gateway is of a class of ours. With `--engine=nginx` it is, too: it and its routes are told why they
    /// are not served. A class that is given parameters takes no more Gateways, and ends none that it has: one that was
    /// served, or has an address from a time when it was, goes on.
    fn is_served(&self, gateway: &Gateway, around: &Around<'_>) -> bool {
        let class = ObjectKey::new("", gateway.class.as_str());
        let class = around.new.gateway_classes.get(&class);
        let was_served =
            || !gateway.published.is_empty() || self.gateways.contains_key(&gateway.meta.key);
        class.is_some_and(|class| {
            is_ours(class, around.options) && (!class.has_parameters || was_served())
        })
    }

    fn take_route(&mut self, id: &RouteId, around: &Around<'_>, work: &mut Work) {
        let snapshot = around.new;
        if let Some(before) = self.routes.remove(id) {
            self.links.take_out(id, &named(&before), work);
            for spot in &before.spots {
                take_out(&mut self.by_host, &spot.key, id);
                work.hosts.insert(spot.key.clone());
            }
        }
        let Some(route) = snapshot.http_routes.get(id) else { return };
        let raw = around.options.raw.then(|| (unserved("routes of Gateways"), false));
        let waits = raw.or_else(|| self.places.refused(id));
        let attached = attach(route, waits, &self.gateways, (snapshot, &self.policies));
        self.links.put(id, &named(&attached), work);
        for spot in &attached.spots {
            put(&mut self.by_host, &spot.key, id.clone());
            work.hosts.insert(spot.key.clone());
        }
        self.routes.insert(id.clone(), Box::new(attached));
    }

    /// Tells a route what became of it, and what it should know.
    fn tell_route(&mut self, id: &RouteId, around: &Around<'_>, work: &mut Work) {
        let attached = self.routes.get(id);
        let status = attached.and_then(|attached| attached.status.as_ref());
        let notes = attached.map(|attached| {
            let route = &attached.route;
            let mut notes = missing::of_route(id, &route.parents, around.new, around.options);
            if status.is_some() {
                notes.extend(vain::of_route(route));
            }
            notes
        });
        tell_route((id, status), notes.unwrap_or_default(), &mut self.statuses.routes, work);
    }

    fn tell_gateways(&mut self, around: &Around<'_>, work: &mut Work) {
        let snapshot = around.new;
        for key in std::mem::take(&mut work.gateways) {
            let attached = |index| self.links.attached_at(&key, index);
            let status = self.gateways.get(&key).map(|state| state.status(attached));
            work.sets.extend(self.sets.get(&key).into_iter().flatten().cloned());
            let mut problems = Vec::new();
            if let Some(status) = &status {
                problems.extend(failing(&status.conditions));
                problems.extend(listener_problems(&status.listeners));
            }
            work.tell(Kind::Gateway, &key, problems);
            let gateway = snapshot.gateways.get(&key);
            work.note(
                gateway.and_then(|gateway| missing::of_gateway(gateway, snapshot, around.options)),
            );
            let state = self.gateways.get(&key);
            work.note(state.and_then(State::unused_infrastructure));
            work.note(state.into_iter().flat_map(|state| state.warnings(None)));
            let own = state.map(|state| &state.gateway.listeners).into_iter().flatten();
            work.note(vain::of_listeners((Kind::Gateway, &key), own));
            match status {
                Some(status) => self.statuses.gateways.insert(key, Arc::new(status)),
                None => self.statuses.gateways.remove(&key),
            };
        }
    }

    /// What names a Gateway, or a ListenerSet that names it, is touched.
    fn touch_children(&self, gateway: &ObjectKey, work: &mut Work) {
        let sets = self.sets.get(gateway).into_iter().flatten().cloned();
        work.sets.extend(sets.clone());
        let parents = sets.map(Parent::Set).chain([Parent::Gateway(gateway.clone())]);
        work.routes.extend(self.links.of_parents(parents));
    }
}

impl Work {
    fn tell(&mut self, kind: Kind, key: &ObjectKey, messages: Vec<String>) {
        let ObjectKey { namespace, name } = key;
        let origin = Origin::new(kind, namespace.clone(), name.clone());
        let problem = |message: String| Problem {
            origin: origin.clone(),
            key: Some("spec".to_owned()),
            severity: Severity::Error,
            message: message.into(),
        };
        let mut problems: Vec<Problem> = messages.into_iter().map(problem).collect();
        problems.sort();
        problems.dedup();
        self.problems.push((kind, key.clone(), problems));
    }

    /// Adds to what was told last what its object should know.
    fn note(&mut self, notes: impl IntoIterator<Item = Problem>) {
        if let Some((_, _, problems)) = self.problems.last_mut() {
            problems.extend(notes);
            problems.sort();
        }
    }
}

/// What is wrong, said by conditions that should hold.
fn failing(conditions: &[Condition]) -> Vec<String> {
    let wrong = conditions.iter().filter(|condition| match condition.kind {
        "Conflicted" | "Programmed" => false,
        "PartiallyInvalid" => condition.holds,
        _ => !condition.holds,
    });
    wrong.map(|condition| format!("{}: {}", condition.reason, condition.message)).collect()
}

/// The same of listeners.
fn listener_problems(listeners: &[ListenerStatus]) -> impl Iterator<Item = String> {
    listeners.iter().flat_map(|listener| {
        let name = &listener.name;
        failing(&listener.conditions).into_iter().map(move |why| format!("listener {name}: {why}"))
    })
}

/// What an HTTPRoute or a GRPCRoute names.
fn named(attached: &Attached) -> Named<'_> {
    let Attached { route, draft, listeners, .. } = attached;
    let (services, abroad, ports) = (&draft.services, &draft.abroad, &draft.ports);
    Named { parents: &route.parents, services, abroad, ports, listeners }
}

/// The routes of a namespace.
fn within<'r, V>(
    all: &'r OrdMap<RouteId, V>,
    namespace: &Arc<str>,
) -> impl Iterator<Item = RouteId> + use<'r, V> {
    let namespace = namespace.clone();
    let kinds = objects::Kind::ALL.into_iter();
    kinds.flat_map(move |kind| {
        let from = (kind, ObjectKey::new(namespace.clone(), ""));
        let namespace = namespace.clone();
        let routes = all.range(from..).map(|(id, _)| id);
        routes.take_while(move |(of, key)| *of == kind && key.namespace == namespace).cloned()
    })
}

/// Tells a route what became of it, and what it should know.
fn tell_route(
    (id, status): (&RouteId, Option<&Arc<RouteStatus>>),
    notes: Vec<Problem>,
    told: &mut OrdMap<RouteId, Arc<RouteStatus>>,
    work: &mut Work,
) {
    let conditions = status.into_iter().flat_map(|status| &status.parents);
    let conditions: Vec<_> = conditions.flat_map(|(_, all)| all.iter().cloned()).collect();
    work.tell(kind_of(id.0), &id.1, failing(&conditions));
    work.note(notes);
    match status {
        Some(status) => told.insert(id.clone(), status.clone()),
        None => told.remove(id),
    };
}
