//! The hosts of Gateways, and what locations of routes speak to besides their backends, and how: TLS
//! (BackendTLSPolicy), and guards (`ExternalAuth`).

use super::{Compiler, group};
use crate::answer::Watch;
use crate::authenticator::{Authenticator, Guard};
use crate::generation::{Copies, Extras, Generation, Routed, Site, routed};
use imbl::OrdMap;
use model::policy::{GuardAsked, Policy, Protocol, RouteGuard, UpstreamTls};
use model::{Backend, Changes, Configuration, Location, RouteHost, Server, UpstreamId};
use route::{Locations, RouteTable};
use std::sync::Arc;
use system::breaks::between_pieces;
use tls::{Profile, Profiles};
use upstream::{Group, Way};

/// Where a location leads besides its upstream, and how TLS is spoken there.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) upstream_tls: Option<Arc<Profile>>,
    pub(super) mirror: Option<Box<Copies>>,
    pub(super) authenticator: Option<Arc<Authenticator>>,
    pub(super) guard: Option<Arc<Guard>>,
}

/// The groups of a generation.
type Groups = OrdMap<UpstreamId, Arc<Group>>;

/// What a policy asks for, or why that cannot be.
type Made = Result<(Option<Arc<Profile>>, Option<Arc<Guard>>), String>;

/// What a host's policies ask for: that of many locations is one, and to look up a profile costs time by the
/// authorities that it has.
#[derive(Default)]
pub(super) struct RouteProfiles {
    known: Vec<(Arc<Policy>, Made)>,
    towards: Arc<Policy>,
}

impl RouteProfiles {
    /// A location as it is served, and where it leads. Where TLS cannot be spoken as it is asked for it is closed, and
    /// never spoken to in clear.
    pub(super) fn outgoing(
        &mut self,
        profiles: &Profiles,
        location: &Arc<Location>,
        groups: &mut Groups,
    ) -> (Arc<Location>, Outgoing) {
        let policy = &location.policy;
        let is_guarded = policy.route.as_ref().is_some_and(|filters| filters.guard.is_some());
        if http2(policy).is_none() && !is_guarded {
            return (location.clone(), Outgoing::default());
        }
        match self.made(profiles, policy, groups) {
            Ok((upstream_tls, guard)) => {
                let outgoing = Outgoing { upstream_tls, guard, ..Outgoing::default() };
                (location.clone(), outgoing)
            }
            Err(reason) => {
                let backend = Backend::Broken(reason);
                let closed = Arc::new(Location { backend, ..Location::clone(location) });
                (closed, Outgoing::default())
            }
        }
    }

    fn made(&mut self, profiles: &Profiles, policy: &Arc<Policy>, groups: &mut Groups) -> Made {
        if let Some((_, found)) = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, policy)) {
            return found.clone();
        }
        let tls = http2(policy).map(|http2| profile(profiles, &policy.upstream_tls, http2));
        let asked = policy.route.as_ref().and_then(|filters| filters.guard.as_ref());
        let guard = asked.map(|asked| self.guard(profiles, asked, groups));
        let both = || Ok((tls.transpose()?, guard.transpose()?));
        let made: Made = both();
        self.known.push((policy.clone(), made.clone()));
        made
    }

    fn guard(
        &self,
        profiles: &Profiles,
        asked: &Arc<RouteGuard>,
        groups: &mut Groups,
    ) -> Result<Arc<Guard>, String> {
        let http2 = match asked.asked {
            GuardAsked::Http { http2, .. } => http2,
            GuardAsked::Grpc => true,
        };
        let tls = asked.tls.as_ref().map(|tls| profile(profiles, tls, http2)).transpose()?;
        let way = Way { group: group(groups, &asked.upstream), tls };
        Ok(Arc::new(Guard { policy: asked.clone(), way, towards: self.towards.clone() }))
    }
}

/// Whether an upstream is spoken to in HTTP/2, where it is under TLS.
fn http2(policy: &Policy) -> Option<bool> {
    match policy.protocol {
        Protocol::Https | Protocol::AutoHttp => Some(false),
        Protocol::Grpcs => Some(true),
        Protocol::Http | Protocol::Grpc | Protocol::Fcgi => None,
    }
}

fn profile(profiles: &Profiles, tls: &UpstreamTls, http2: bool) -> Result<Arc<Profile>, String> {
    profiles.profile(tls, http2).map_err(|error| {
        tracing::error!(%error, "TLS towards a backend cannot be spoken as it is asked for; it is closed");
        format!("TLS towards the backend cannot be spoken as asked: {error}")
    })
}

impl Compiler {
    /// The hosts of Gateways, of which those that differ are compiled.
    pub(super) fn routes(
        &self,
        before: &Generation,
        configuration: &Configuration,
        changes: &Changes,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> RouteTable<Routed> {
        let mut routes = before.routes.clone();
        for key in changes.routes.iter().filter(|key| key.is_shared()) {
            between_pieces();
            let host = configuration.routes.get(key);
            routes.set(&key.host, host.map(|host| Arc::new(self.routed(host, groups))));
        }
        routes
    }

    /// A host of Gateways: nothing that stands around servers of Ingresses counts for it.
    pub(super) fn routed(
        &self,
        host: &Arc<RouteHost>,
        groups: &mut OrdMap<UpstreamId, Arc<Group>>,
    ) -> Routed {
        let bare = Server::new(host.name.clone());
        let (room, mut profiles) = (host.locations.len(), RouteProfiles::default());
        let (mut spots, mut locations) = (Vec::with_capacity(room), Vec::with_capacity(room));
        for location in &host.locations {
            let (location, outgoing) = profiles.outgoing(&self.profiles, location, groups);
            spots.push(self.spot(&location, Extras::NOTHING, outgoing, Watch::default(), groups));
            locations.push(location);
        }
        let site = Site {
            owner: Site::owner_of(&locations),
            clients: None,
            hosts: self.metrics.as_ref().map(|all| all.hosts(&bare)).unwrap_or_default(),
            locations: Locations::compile(&bare),
            spots,
            server: Arc::new(Server { locations, ..bare }),
            snippet: None,
        };
        let (paths, calls) = (routed::paths(host), routed::calls(host));
        Routed { host: host.clone(), site: Arc::new(site), paths, calls }
    }
}
