//! TCPRoutes, UDPRoutes and TLSRoutes: where connections and datagrams go, whatever is in them. Of several routes that
//! want a port, or a host of a listener, one has it; the others stand behind it.

use super::attach::{Wish, attachable, hosts, listeners, rank, route_keys};
use super::backend_tls::Policies;
use super::backends::{Port, Wanted, upstream_id};
use super::few::{Few, Set};
use super::index::{put, take_out};
use super::kinds::RouteId;
use super::links::Named;
use super::listeners::{Protocol, State};
use super::parents::{Ours, ours};
use super::places::{Amounts, Places, Why};
use super::status::{Condition, RouteStatus, unserved};
use super::{Around, Gateways, Work, missing, tell_route, vain};
use crate::endpoint_budget::{Lists, Weight};
use crate::upstream;
use model::policy::UpstreamTls;
use model::{
    Configuration, Endpoints, Kind, Origin, RouteKey, Speaks, Stream, StreamPort, StreamShare,
    TlsRoute, TlsShare,
};
use objects::gateway::StreamRoute;
use objects::{InText, ObjectKey, Service, ServicePort, Snapshot};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;
use std::sync::Arc;

/// A list of endpoints that ports lead to: a Service port and its protocol.
pub(super) type List = (Port, &'static str);

/// Where a route stands among those that want the same: how special the host name is by which it does, its age, and its
/// name.
type Claim = (Reverse<(usize, usize)>, i64, InText<ObjectKey>, objects::Kind);

/// What was made of these routes.
#[derive(Debug, Default)]
pub(super) struct Streams {
    routes: BTreeMap<RouteId, Draft>,
    /// Which routes want a port. The first one has it.
    ports: BTreeMap<StreamPort, BTreeSet<Claim>>,
    /// Which routes want a host of a listener.
    hosts: BTreeMap<RouteKey, BTreeSet<Claim>>,
    /// Which routes lead to a list of endpoints.
    by_list: BTreeMap<List, BTreeSet<RouteId>>,
    /// These lists, which all share that lead there.
    endpoints: BTreeMap<List, Arc<Endpoints>>,
    /// Which of them have to stay empty.
    pub(super) lists: Lists<List>,
    /// What routes take, by namespace: backends times host names.
    pub(super) places: Places,
}

/// What one route asks for, before it meets the others.
#[derive(Debug)]
struct Draft {
    /// The object.
    route: Arc<StreamRoute>,
    /// Weights and Service ports; without a port nobody is there.
    shares: Vec<(u32, Option<Port>)>,
    /// The Services that it names, whether or not they are there.
    services: Few<ObjectKey>,
    /// Other namespaces in which it names backends, whether or not it may.
    abroad: Few<Arc<str>>,
    /// The upstreams that it leads to.
    upstreams: Few<Port>,
    /// The listeners that it counts for: Gateway and number.
    listeners: Few<(ObjectKey, usize)>,
    /// The ports that it wants.
    ports: BTreeSet<StreamPort>,
    /// The hosts that it wants, how long each is as the route says it, and where it would lead.
    hosts: BTreeMap<RouteKey, ((usize, usize), Arc<TlsRoute>)>,
    /// The Gateways where TLS ends before its backends are reached.
    ended: BTreeSet<ObjectKey>,
    /// What its parents say; none if none of them is ours.
    status: Option<Arc<RouteStatus>>,
}

/// What a route takes of the budget of its namespace: its backends at each port and host of the listeners that have
/// it, or at its own host names where these are more.
pub(super) fn amounts(route: &StreamRoute, ours: &[Ours<'_, '_>], snapshot: &Snapshot) -> Amounts {
    let wish = wish(route);
    let (mut ports, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for (state, index) in attachable(&wish, ours, snapshot) {
        ports.extend(state.stream(index));
        if route.kind == objects::Kind::TlsRoute && state.serves(index) {
            hosts.extend(route_keys(&wish, state, index));
        }
    }
    let at = (ports.len() + hosts.len()).max(route.hostnames.len()).max(1);
    let places = route.backends.len().max(1).saturating_mul(at);
    [u64::try_from(places).unwrap_or(u64::MAX), 0, 0]
}

fn wish(route: &StreamRoute) -> Wish<'_> {
    let StreamRoute { kind, meta, hostnames, .. } = route;
    Wish { kind: kind.name(), namespace: &meta.key.namespace, hostnames }
}

impl Draft {
    /// Reads a route, unless it waits for the reason given.
    fn read(
        route: &Arc<StreamRoute>,
        waits: Option<Why>,
        gateways: &BTreeMap<ObjectKey, State>,
        (snapshot, policies): (&Snapshot, &Policies),
    ) -> Self {
        let mut draft = Self {
            route: route.clone(),
            shares: Vec::new(),
            services: Few::default(),
            abroad: Few::default(),
            upstreams: Few::default(),
            listeners: Few::default(),
            ports: BTreeSet::new(),
            hosts: BTreeMap::new(),
            ended: BTreeSet::new(),
            status: None,
        };
        let own = &route.meta.key.namespace;
        let ours = ours(&route.parents, own, gateways, snapshot);
        if ours.is_empty() {
            return draft;
        }
        // Of one that waits nothing is looked up, as with other routes.
        let unresolved = if waits.is_none() { draft.resolve(snapshot) } else { None };
        let resolved = match unresolved {
            Some((reason, message)) => Condition::fails("ResolvedRefs", reason, message),
            None => Condition::holds("ResolvedRefs", "ResolvedRefs"),
        };
        let unread = route.unread.as_ref().map(|why| ("UnsupportedValue", why.clone()));
        let refused = waits.or(unread);
        let refused =
            refused.map(|(reason, message)| Condition::fails("Accepted", reason, message));
        let wish = wish(route);
        let mut told = Vec::with_capacity(ours.len());
        for (parent, (state, set)) in ours {
            let found = listeners(&wish, parent, (state, set), snapshot);
            let mut closed = None;
            let accepted = match (&refused, found) {
                (_, Err((reason, message))) => Condition::fails("Accepted", reason, message),
                (Some(refused), Ok(_)) => refused.clone(),
                (None, Ok(found)) => {
                    for index in found {
                        let why = draft.lead((state, index), policies, snapshot);
                        closed = closed.or(why);
                    }
                    Condition::holds("Accepted", "Accepted")
                }
            };
            let closed = closed.filter(|_| resolved.holds);
            let closed = closed.map(|(reason, why)| Condition::fails("ResolvedRefs", reason, why));
            told.push((parent.clone(), vec![accepted, closed.unwrap_or_else(|| resolved.clone())]));
        }
        draft.status =
            Some(Arc::new(RouteStatus { generation: route.meta.generation, parents: told }));
        draft
    }

    /// Looks up the backends; gives back the first reference that leads nowhere.
    fn resolve(&mut self, snapshot: &Snapshot) -> Option<Why> {
        let route = self.route.clone();
        let own = &route.meta.key.namespace;
        let wanted = Wanted { kind: route.kind.name(), namespace: own, protocol: protocol(&route) };
        let mut unresolved = None;
        for backend in &route.backends {
            let port = wanted.port(backend, snapshot, &mut self.services, &mut self.abroad);
            let port = port.map_err(|why| unresolved.get_or_insert(why).0).ok();
            if route.kind == objects::Kind::TlsRoute {
                port.iter().cloned().for_each(|port| self.upstreams.put(port));
            }
            self.shares.push((backend.weight, port));
        }
        unresolved
    }

    /// Wants what comes in at a listener; why a backend is closed there, if a policy, or the want of one, closes it.
    fn lead(
        &mut self,
        (state, index): (&State, usize),
        policies: &Policies,
        snapshot: &Snapshot,
    ) -> Option<Why> {
        let (route, gateway) = (&self.route, &state.gateway.meta.key);
        self.listeners.put((gateway.clone(), index));
        self.ports.extend(state.stream(index));
        let own = state.own(index).filter(|_| state.serves(index))?;
        if route.kind != objects::Kind::TlsRoute {
            return None;
        }
        let is_ended = state.listeners[index].protocol == Some(Protocol::Spoken(Speaks::TlsEnded));
        if is_ended {
            self.ended.insert(gateway.clone());
        }
        let ended = is_ended.then_some((state, policies));
        let shares = self.shares.iter().map(|share| tls_share(share, ended, snapshot));
        let key = &route.meta.key;
        let origin = Origin::new(Kind::TlsRoute, key.namespace.clone(), key.name.clone());
        let made = Arc::new(TlsRoute { shares: shares.collect(), origin });
        let listens = state.listener(index).hostname.as_deref();
        for host in hosts(&route.hostnames, listens) {
            // Of its host names those count that lead here.
            let written = route.hostnames.iter();
            let written = written.filter(|name| hosts(from_ref(*name), listens).contains(&host));
            let rank = written.map(|name| rank(name)).max().unwrap_or_default();
            let at = RouteKey { listener: Some(own.clone()), host };
            self.hosts.insert(at, (rank, made.clone()));
        }
        let ports = self.shares.iter().filter_map(|(_, port)| port.as_ref());
        let mut closed = ports.filter_map(|port| policies.of_port(port, snapshot)?.err());
        closed.next().filter(|_| is_ended)
    }

    /// The lists of endpoints that its ports lead to.
    fn lists(&self) -> impl Iterator<Item = List> {
        let is_listed = self.route.kind != objects::Kind::TlsRoute;
        let ports = self.shares.iter().filter_map(|(_, port)| port.clone());
        ports.filter(move |_| is_listed).map(|port| (port, protocol(&self.route)))
    }

    fn named(&self) -> Named<'_> {
        Named {
            parents: &self.route.parents,
            services: &self.services,
            abroad: &self.abroad,
            ports: &self.upstreams,
            listeners: &self.listeners,
        }
    }

    fn claim(&self, rank: (usize, usize)) -> Claim {
        let meta = &self.route.meta;
        (Reverse(rank), meta.created, InText(meta.key.clone()), self.route.kind)
    }
}

fn protocol(route: &StreamRoute) -> &'static str {
    if route.kind == objects::Kind::UdpRoute { "UDP" } else { "TCP" }
}

/// A part of the connections to a host. Where TLS ended a policy may ask for it again; what cannot be kept to ends
/// them.
fn tls_share(
    (weight, port): &(u32, Option<Port>),
    ended: Option<(&State, &Policies)>,
    snapshot: &Snapshot,
) -> TlsShare {
    let mut made = TlsShare { weight: *weight, upstream: None, tls: None };
    let Some(port) = port else { return made };
    let asked = ended.and_then(|(state, policies)| {
        let identity = state.identity.as_ref().map(|found| found.as_ref().ok().cloned());
        Some((policies.of_port(port, snapshot)?.ok(), identity))
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

/// The port of a Service that a list has the endpoints of, if it is there.
fn listed<'s>(
    ((key, number), protocol): &List,
    snapshot: &'s Snapshot,
) -> Option<(&'s Service, &'s ServicePort)> {
    let service = snapshot.services.get(key)?;
    let is_it = |port: &&ServicePort| port.port == *number && port.protocol == *protocol;
    Some((service, service.ports.iter().find(is_it)?))
}

impl Streams {
    fn put(&mut self, id: &RouteId, draft: Draft, work: &mut Work) {
        draft.ports.iter().for_each(|port| put(&mut self.ports, port, draft.claim((0, 0))));
        for (at, (rank, _)) in &draft.hosts {
            put(&mut self.hosts, at, draft.claim(*rank));
        }
        draft.lists().for_each(|list| put(&mut self.by_list, &list, id.clone()));
        work.touch_streams(&draft);
        self.routes.insert(id.clone(), draft);
    }

    fn take_out(&mut self, id: &RouteId, draft: &Draft, work: &mut Work) {
        draft.ports.iter().for_each(|port| take_out(&mut self.ports, port, &draft.claim((0, 0))));
        for (at, (rank, _)) in &draft.hosts {
            take_out(&mut self.hosts, at, &draft.claim(*rank));
        }
        draft.lists().for_each(|list| take_out(&mut self.by_list, &list, id));
        work.touch_streams(draft);
    }

    /// Whoever goes before all others that want the same.
    fn first(&self, claims: Option<&BTreeSet<Claim>>) -> Option<&Draft> {
        let (_, _, InText(key), kind) = claims?.first()?;
        self.routes.get(&(*kind, key.clone()))
    }

    /// Where a port leads.
    fn stream(&self, port: &StreamPort) -> Option<Stream> {
        let draft = self.first(self.ports.get(port))?;
        let shares = draft.shares.iter().map(|(weight, to)| {
            let list = to.as_ref().map(|to| (to.clone(), protocol(&draft.route)));
            let endpoints = list.and_then(|list| self.endpoints.get(&list).cloned());
            StreamShare { weight: *weight, endpoints: endpoints.unwrap_or_default() }
        });
        let (kind, key) = (draft.route.kind.name(), &draft.route.meta.key);
        Some(Stream {
            service: format!("{kind} {}/{}", key.namespace, key.name).into(),
            namespace: key.namespace.clone(),
            endpoints: Arc::default(),
            external: None,
            takes_proxy: false,
            gives_proxy: false,
            shares: shares.collect(),
        })
    }

    /// Where a host of a listener leads.
    fn tls_route(&self, at: &RouteKey) -> Option<&Arc<TlsRoute>> {
        let (_, made) = self.first(self.hosts.get(at))?.hosts.get(at)?;
        Some(made)
    }

    /// Looks again who is behind the touched lists, and which of them have to stay empty.
    fn list(&mut self, around: &Around<'_>, work: &mut Work) {
        let mut touched = std::mem::take(&mut work.lists);
        for service in around.services {
            let lists = self.by_list.range(((service.clone(), 0), "")..).map(|(list, _)| list);
            let lists = lists.take_while(|((key, _), _)| key == service);
            touched.extend(lists.cloned());
        }
        for list @ ((key, _), protocol) in &touched {
            let found = listed(list, around.new).filter(|_| self.by_list.contains_key(list));
            let weight = found.map(|(service, port)| Weight {
                created: service.meta.created,
                endpoints: upstream::count(service, port, protocol, around.new),
            });
            self.lists.weigh(&key.namespace, list, weight);
        }
        let news = self.lists.admit(around.endpoints);
        work.crowded.extend(news.iter().map(|((service, _), _)| service.clone()));
        touched.extend(news);
        for list in touched {
            let Some(users) = self.by_list.get(&list) else {
                self.endpoints.remove(&list);
                continue;
            };
            let waits = self.lists.waits(&list.0.0.namespace, &list);
            let found = listed(&list, around.new).filter(|_| !waits);
            let made = found.map(|(service, port)| {
                upstream::endpoints(service, port, list.1, around.new, around.options)
            });
            let made = made.unwrap_or_default();
            if self.endpoints.get(&list).is_none_or(|known| **known != made) {
                let users = users.iter().filter_map(|id| self.routes.get(id));
                work.streams.extend(users.flat_map(|draft| &draft.ports));
                self.endpoints.insert(list, Arc::new(made));
            }
        }
    }

    /// Whether the endpoints of a Service stay unused, as there are too many.
    pub(super) fn is_crowded(&self, service: &ObjectKey) -> bool {
        let lists = self.by_list.range(((service.clone(), 0), "")..).map(|(list, _)| list);
        let mut lists = lists.take_while(|((key, _), _)| key == service);
        lists.any(|list| self.lists.waits(&service.namespace, list))
    }

    /// The Gateways where TLS ends before a route leads to a Service.
    pub(super) fn gateways_of<'s>(
        &'s self,
        id: &RouteId,
        service: &ObjectKey,
    ) -> impl Iterator<Item = &'s ObjectKey> {
        let leads = |draft: &&Draft| draft.upstreams.iter().any(|(found, _)| found == service);
        self.routes.get(id).filter(leads).into_iter().flat_map(|draft| &draft.ended)
    }
}

impl Work {
    fn touch_streams(&mut self, draft: &Draft) {
        self.streams.extend(&draft.ports);
        self.stream_hosts.extend(draft.hosts.keys().cloned());
        self.lists.extend(draft.lists());
    }
}

impl Gateways {
    /// Reads a route of streams again.
    pub(super) fn take_stream(&mut self, id: &RouteId, around: &Around<'_>, work: &mut Work) {
        if let Some(before) = self.streams.routes.remove(id) {
            self.links.take_out(id, &before.named(), work);
            self.streams.take_out(id, &before, work);
        }
        let told = &mut self.statuses.stream_routes;
        let Some(route) = around.new.stream_routes.get(id) else {
            return tell_route((id, None), Vec::new(), told, work);
        };
        let raw = around.options.raw.then(|| unserved("routes of Gateways"));
        let waits = raw.or_else(|| Some(self.streams.places.refused(id)?.0));
        let draft = Draft::read(route, waits, &self.gateways, (around.new, &self.policies));
        let mut notes = missing::of_route(id, &route.parents, around.new, around.options);
        if draft.status.is_some() {
            notes.extend(vain::of_stream(route));
        }
        tell_route((id, draft.status.as_ref()), notes, told, work);
        self.links.put(id, &draft.named(), work);
        self.streams.put(id, draft, work);
    }

    /// Writes where the touched ports and hosts lead into the configuration.
    pub(super) fn make_streams(
        &mut self,
        around: &Around<'_>,
        configuration: &mut Configuration,
        work: &mut Work,
    ) {
        self.streams.list(around, work);
        for port in std::mem::take(&mut work.streams) {
            let made = self.streams.stream(&port);
            let known = configuration.streams.get(&port).map(|known| &**known);
            if known != made.as_ref() {
                match made {
                    Some(made) => configuration.streams.insert(port, Arc::new(made)),
                    None => configuration.streams.remove(&port),
                };
            }
        }
        for at in std::mem::take(&mut work.stream_hosts) {
            let made = self.streams.tls_route(&at);
            if configuration.tls_routes.get(&at) != made {
                match made {
                    Some(made) => configuration.tls_routes.insert(at, made.clone()),
                    None => configuration.tls_routes.remove(&at),
                };
            }
        }
    }
}
