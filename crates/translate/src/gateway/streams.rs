//! TCPRoutes, UDPRoutes and TLSRoutes: where connections and datagrams go, whatever is in them. There are few of them,
//! so all are read again as soon as something touches one.

use super::Around;
use super::attach::{Wish, hosts, listeners};
use super::backend_tls::Policies;
use super::grants;
use super::listeners::{Protocol, State};
use super::missing;
use super::parents::ours;
use super::places::over_budget;
use super::rules::{Port, Wanted, upstream_id};
use super::status::{Condition, RouteStatus, unserved};
use crate::endpoint_budget::too_many;
use crate::kinds::kind_of;
use crate::translator::differing;
use crate::upstream;
use model::policy::UpstreamTls;
use model::{
    Configuration, Endpoints, Kind, Origin, Problem, RouteKey, Severity, Speaks, Stream,
    StreamPort, StreamShare, TlsRoute, TlsShare, Transport,
};
use objects::gateway::StreamRoute;
use objects::{ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;
use std::sync::Arc;

/// Weights and Service ports; without a port nobody is there.
type Shares = Vec<(u32, Option<Port>)>;

/// What was made of these routes.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// Where ports lead.
    ports: BTreeMap<StreamPort, Stream>,
    /// Where hosts of listeners lead.
    hosts: BTreeMap<RouteKey, TlsRoute>,
    /// How long the host is that led there, as its route says it: the longer one goes before.
    ranks: BTreeMap<RouteKey, usize>,
    /// The Service ports that hosts lead to.
    pub(super) upstreams: BTreeSet<Port>,
    /// The Services that routes name, whether or not they are there.
    services: BTreeSet<ObjectKey>,
    /// Services that are reached where TLS ended, and the Gateways where it did.
    ended: BTreeSet<(ObjectKey, ObjectKey)>,
    /// How many routes are attached to a listener.
    pub(super) attached: BTreeMap<(ObjectKey, usize), u32>,
    /// What the routes of each namespace take: backends times host names.
    taken: BTreeMap<Arc<str>, u64>,
    /// What they may take.
    most: u64,
    /// The lists of endpoints of Service ports; none for those that have to wait.
    lists: BTreeMap<(Port, &'static str), Option<Arc<Endpoints>>>,
    /// How many endpoints these have by namespace, and how many they may have.
    listed: BTreeMap<Arc<str>, u64>,
    most_listed: u64,
    /// The status of each route that names a Gateway of ours.
    pub(super) statuses: BTreeMap<(objects::Kind, ObjectKey), RouteStatus>,
    /// Gateways that routes name and that are not there.
    pub(super) notes: BTreeMap<(objects::Kind, ObjectKey), Vec<Problem>>,
}

/// Whether something of the cluster touches routes, Gateways aside.
pub(super) fn touched(known: &Streams, around: &Around<'_>) -> bool {
    let (old, new) = (around.old, around.new);
    let has_routes = |namespace: &Arc<str>| {
        let mut routes = new.stream_routes.values();
        routes.any(|route| route.meta.key.namespace == *namespace)
    };
    differing(&old.stream_routes, &new.stream_routes).next().is_some()
        || (known.most, known.most_listed) != (around.most[0].1, around.endpoints)
        || differing(&old.namespaces, &new.namespaces).any(|key| has_routes(&key.name))
        || grants::touched(old, new).iter().any(has_routes)
        || around.services.iter().any(|service| known.is_touched(service, around))
}

impl Streams {
    /// Reads all routes; older ones first, then by name.
    pub(super) fn read(
        gateways: &BTreeMap<ObjectKey, State>,
        policies: &Policies,
        around: &Around<'_>,
    ) -> Self {
        let (most, most_listed) = (around.most[0].1, around.endpoints);
        let mut made = Self { most, most_listed, ..Self::default() };
        let mut routes: Vec<_> = around.new.stream_routes.values().collect();
        routes.sort_by_key(|route| (route.meta.created, route.meta.key.clone(), route.kind));
        for route in routes {
            made.add(route, gateways, policies, around);
        }
        made
    }

    fn add(
        &mut self,
        route: &Arc<StreamRoute>,
        gateways: &BTreeMap<ObjectKey, State>,
        policies: &Policies,
        around: &Around<'_>,
    ) {
        let key = &route.meta.key;
        let kind = kind_of(route.kind);
        let notes = missing::of_stream(kind, route, around.new, around.options);
        if !notes.is_empty() {
            self.notes.insert((route.kind, key.clone()), notes);
        }
        let ours = ours(&route.parents, &key.namespace, gateways, around.new);
        if ours.is_empty() {
            return;
        }
        let waits = self.waits(route, around);
        // Of one that waits nothing is looked up, as with other routes.
        let (shares, unresolved) = match waits {
            Some(_) => Default::default(),
            None => self.shares(route, around.new),
        };
        let resolved = match unresolved {
            Some((reason, message)) => Condition::fails("ResolvedRefs", reason, message),
            None => Condition::holds("ResolvedRefs", "ResolvedRefs"),
        };
        let wish = Wish {
            kind: route.kind.name(),
            namespace: &key.namespace,
            hostnames: &route.hostnames,
        };
        let mut told = Vec::with_capacity(ours.len());
        let mut counted = BTreeSet::new();
        for (parent, (state, set)) in ours {
            let found = listeners(&wish, parent, (state, set), around.new);
            let accepted = match (&route.unread, found) {
                (_, Err((reason, message))) => Condition::fails("Accepted", reason, message),
                (_, Ok(_)) if waits.is_some() => {
                    let (reason, message) = waits.clone().unwrap_or_default();
                    Condition::fails("Accepted", reason, message)
                }
                (Some(field), Ok(_)) => {
                    let message = format!("{field} is not supported: take it out");
                    Condition::fails("Accepted", "UnsupportedValue", message)
                }
                (None, Ok(found)) => {
                    for index in found {
                        let listener = (state.gateway.meta.key.clone(), index);
                        if counted.insert(listener.clone()) {
                            *self.attached.entry(listener).or_default() += 1;
                        }
                        self.lead(route, (state, index), &shares, policies, around);
                    }
                    Condition::holds("Accepted", "Accepted")
                }
            };
            told.push((parent.clone(), vec![accepted, resolved.clone()]));
        }
        let status = RouteStatus { generation: route.meta.generation, parents: told };
        self.statuses.insert((route.kind, key.clone()), status);
    }

    /// Why a route has to wait, if the older ones of its namespace leave too little.
    fn waits(
        &mut self,
        route: &StreamRoute,
        around: &Around<'_>,
    ) -> Option<(&'static str, String)> {
        if around.options.raw {
            return Some(unserved("routes of Gateways"));
        }
        let (name, most) = around.most[0];
        let takes = route.backends.len().max(1) * route.hostnames.len().max(1);
        let taken = self.taken.entry(route.meta.key.namespace.clone()).or_default();
        let then = taken.saturating_add(u64::try_from(takes).unwrap_or(u64::MAX));
        if then > most {
            return Some(over_budget(name));
        }
        *taken = then;
        None
    }

    /// Leads a listener where a route says, unless an older one does already.
    fn lead(
        &mut self,
        route: &StreamRoute,
        (state, index): (&State, usize),
        shares: &Shares,
        policies: &Policies,
        around: &Around<'_>,
    ) {
        let key = &route.meta.key;
        if let Some(port) = state.stream(index).filter(|port| !self.ports.contains_key(port)) {
            let shares = shares.iter().map(|(weight, to)| StreamShare {
                weight: *weight,
                endpoints: self.endpoints(to.as_ref(), port.transport, route, around),
            });
            let stream = Stream {
                service: format!("{} {}/{}", route.kind.name(), key.namespace, key.name).into(),
                namespace: key.namespace.clone(),
                endpoints: Arc::default(),
                external: None,
                takes_proxy: false,
                gives_proxy: false,
                shares: shares.collect(),
            };
            self.ports.insert(port, stream);
        }
        let listener = state.listener(index);
        let Some(own) = state.own(index).filter(|_| state.serves(index)) else { return };
        if route.kind != objects::Kind::TlsRoute {
            return;
        }
        let listens = listener.hostname.as_deref();
        for host in hosts(&route.hostnames, listens) {
            // Of its host names those count that lead here.
            let written = route.hostnames.iter();
            let written = written.filter(|name| hosts(from_ref(*name), listens).contains(&host));
            let rank = written.map(String::len).max().unwrap_or_default();
            let at = RouteKey { listener: Some(own.clone()), host };
            if self.ranks.get(&at).is_some_and(|known| *known >= rank) {
                continue;
            }
            let ended = (state.listeners[index].protocol
                == Some(Protocol::Spoken(Speaks::TlsEnded)))
            .then_some((state, policies));
            let shares = shares.iter().map(|share| self.share(share, ended, around));
            let shares = shares.collect();
            let origin = Origin::new(Kind::TlsRoute, key.namespace.clone(), key.name.clone());
            self.ranks.insert(at.clone(), rank);
            self.hosts.insert(at, TlsRoute { shares, origin });
        }
    }

    /// The endpoints of a Service port, which all that lead there share. Those of the oldest routes go first; where
    /// they leave too little, there are none.
    fn endpoints(
        &mut self,
        to: Option<&Port>,
        transport: Transport,
        route: &StreamRoute,
        around: &Around<'_>,
    ) -> Arc<Endpoints> {
        let Some(to) = to else { return Arc::default() };
        let protocol = match transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        };
        if !self.lists.contains_key(&(to.clone(), protocol)) {
            let made = self.list(to, protocol, around);
            self.lists.insert((to.clone(), protocol), made);
        }
        let Some(list) = &self.lists[&(to.clone(), protocol)] else {
            let message = format!("{}; connections there end", too_many(&to.0));
            let note = missing::note(kind_of(route.kind), &route.meta.key, "spec.rules", message);
            let note = Problem { severity: Severity::Error, ..note };
            let notes = self.notes.entry((route.kind, route.meta.key.clone())).or_default();
            if !notes.contains(&note) {
                notes.push(note);
            }
            return Arc::default();
        };
        list.clone()
    }

    fn list(
        &mut self,
        (key, number): &Port,
        protocol: &str,
        around: &Around<'_>,
    ) -> Option<Arc<Endpoints>> {
        let service = around.new.services.get(key);
        let ports = service.into_iter().flat_map(|service| service.ports.iter());
        let mut ports = ports.filter(|port| port.port == *number && port.protocol == protocol);
        let Some((service, port)) = service.zip(ports.next()) else {
            return Some(Arc::default());
        };
        let listed = self.listed.entry(key.namespace.clone()).or_default();
        let then = listed.saturating_add(upstream::count(service, port, protocol, around.new));
        if then > self.most_listed {
            return None;
        }
        *listed = then;
        let found = upstream::endpoints(service, port, protocol, around.new, around.options);
        Some(Arc::new(found))
    }

    /// A part of the connections to a host. Where TLS ended a policy may ask for it again; what cannot be kept to ends
    /// them.
    fn share(
        &mut self,
        (weight, port): &(u32, Option<Port>),
        ended: Option<(&State, &Policies)>,
        around: &Around<'_>,
    ) -> TlsShare {
        let mut made = TlsShare { weight: *weight, upstream: None, tls: None };
        let Some(port) = port else { return made };
        let asked = ended.and_then(|(state, policies)| {
            self.ended.insert((port.0.clone(), state.gateway.meta.key.clone()));
            let identity = state.identity.as_ref().map(|found| found.as_ref().ok().cloned());
            Some((policies.of_port(port, around.new)?.ok(), identity))
        });
        let tls = match asked {
            None => None,
            Some((None, _) | (_, Some(None))) => return made,
            Some((Some(tls), None)) => Some(tls),
            Some((Some(tls), Some(identity))) => {
                Some(Arc::new(UpstreamTls { identity, ..UpstreamTls::clone(&tls) }))
            }
        };
        (made.upstream, made.tls) = (Some(upstream_id(port)), tls);
        made
    }

    /// Whether a Service that changed, or whose endpoints did, makes routes another thing. Endpoints alone do so where
    /// they are listed here; those of hosts are an upstream's.
    fn is_touched(&self, service: &ObjectKey, around: &Around<'_>) -> bool {
        let (old, new) = (&around.old.services, &around.new.services);
        let mut lists = self.lists.range(((service.clone(), 0), "")..);
        let is_listed = lists.next().is_some_and(|(((listed, _), _), _)| listed == service);
        self.services.contains(service) && (is_listed || old.get(service) != new.get(service))
    }

    /// Whether a route names a Service.
    pub(super) fn names(&self, service: &ObjectKey) -> bool {
        self.services.contains(service)
    }

    /// The Gateways where TLS ends before a Service is reached.
    pub(super) fn gateways_of(&self, service: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        let from = (service.clone(), ObjectKey::new("", ""));
        let all = self.ended.range(from..).take_while(move |(found, _)| found == service);
        all.map(|(_, gateway)| gateway)
    }

    /// The Services that are reached through other Gateways than before.
    pub(super) fn differs(&self, now: &Self) -> Vec<ObjectKey> {
        let differ = self.ended.symmetric_difference(&now.ended);
        differ.map(|(service, _)| service.clone()).collect()
    }

    /// Weights and Service ports of a route, and the first reference that leads nowhere.
    fn shares(
        &mut self,
        route: &StreamRoute,
        snapshot: &Snapshot,
    ) -> (Shares, Option<(&'static str, String)>) {
        let protocol = if route.kind == objects::Kind::UdpRoute { "UDP" } else { "TCP" };
        let namespace = &route.meta.key.namespace;
        let wanted = Wanted { kind: route.kind.name(), namespace, protocol };
        let mut unresolved = None;
        let shares = route.backends.iter().map(|backend| {
            let port = wanted.port(backend, snapshot, &mut self.services);
            let port = port.map_err(|why| unresolved.get_or_insert(why).0).ok();
            if route.kind == objects::Kind::TlsRoute {
                self.upstreams.extend(port.clone());
            }
            (backend.weight, port)
        });
        let shares = shares.collect();
        (shares, unresolved)
    }

    /// Writes what differs from `before` into the configuration.
    pub(super) fn write(&self, before: &Self, configuration: &mut Configuration) {
        for port in before.ports.keys().filter(|port| !self.ports.contains_key(port)) {
            configuration.streams.remove(port);
        }
        for (port, stream) in &self.ports {
            if before.ports.get(port) != Some(stream) {
                configuration.streams.insert(*port, Arc::new(stream.clone()));
            }
        }
        for key in before.hosts.keys().filter(|key| !self.hosts.contains_key(key)) {
            configuration.tls_routes.remove(key);
        }
        for (key, route) in &self.hosts {
            if before.hosts.get(key) != Some(route) {
                configuration.tls_routes.insert(key.clone(), Arc::new(route.clone()));
            }
        }
    }
}
