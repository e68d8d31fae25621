//! A Configuration compiled for serving. It is immutable and numbered; a request keeps the one it began with.

mod copies;
pub(crate) mod cors;
mod doors;
mod error_pages;
pub(crate) mod routed;

pub(crate) use copies::Copies;
pub(crate) use cors::Told;
pub(crate) use doors::{Carried, Onward};
pub(crate) use error_pages::{ErrorPages, StandIn};
pub(crate) use routed::{Asked, Routed};

use crate::answer::Watch;
use crate::authenticator::{Authenticator, Guard};
use crate::limits::Gate;
use crate::log::Format;
use crate::set_headers::SetHeaders;
use crate::snippet::{Effects, Heads, HeadsSaid, Level, OfSite, OwnServers};
use crate::telemetry::Tracer;
use model::{Configuration, Global, Location, Pattern, Server, ServerName, Spent, Steps};
use request_metrics::{Counted, Name};
use route::{Locations, RouteTable, Routes};
use snippet::run::Tables;
use std::net::SocketAddr;
use std::sync::Arc;
use tls::{Certificates, Clients, Hosts, Own, Profile, TlsFront, Verifier};
use upstream::{Alternative, Group, Reuse, Rule};
use wire::lane::Owner;

/// An address of a Gateway, with its listeners.
pub(crate) type Door = doors::Door<Routed>;
/// A listener of a Gateway with an address of its own.
pub(crate) type Inside = doors::Inside<Routed>;
/// The addresses of Gateways; nearly always none.
pub(crate) type Doors = imbl::OrdMap<SocketAddr, Arc<Door>>;

/// A Configuration compiled for serving.
#[derive(Debug)]
pub struct Generation {
    /// Its number, counted from 1.
    pub number: u64,
    /// What it was made of.
    pub configuration: Configuration,
    /// Hosts.
    pub sites: Routes<Site>,
    /// Hosts of Gateways; nearly always none.
    pub(crate) routes: RouteTable<Routed>,
    /// Where Gateways have addresses of their own; nearly always nowhere.
    pub(crate) doors: Doors,
    /// Certificates by host.
    pub certificates: Certificates,
    /// TLS towards clients.
    pub front: TlsFront,
    /// `add-headers`.
    pub answer_headers: SetHeaders,
    /// `proxy-set-headers`.
    pub request_headers: SetHeaders,
    /// Header sections of answers that variables ask for, whatever the location.
    pub watch: Watch,
    /// Lines of the access log.
    pub(crate) log_format: Format,
    /// Begins and sends spans, where locations ask for them.
    pub tracer: Arc<Tracer>,
    /// The servers of `http-snippet`; nearly always none.
    pub own_servers: Option<Arc<OwnServers>>,
    /// The tables of `http-snippet`.
    pub tables: Arc<Tables>,
    /// Whether snippets or other texts ask for numbers of connections.
    pub(crate) counts: bool,
    /// All upstreams, for what looks at them from outside.
    pub groups: imbl::OrdMap<model::UpstreamId, Arc<Group>>,
    /// Where TLS connections to a host go as they are; nearly always empty.
    pub(crate) passthrough: imbl::OrdMap<ServerName, Onward>,
    /// What of a server could not be served and is denied instead; nearly always empty.
    pub left_out: imbl::OrdMap<ServerName, Vec<model::Problem>>,
    /// What only few servers ask for.
    pub(crate) few: Few,
    /// What heads are read by.
    pub(crate) heads: Heads,
}

/// What snippets of servers ask of the whole process; nearly always nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Few {
    /// What they say of heads.
    pub heads: imbl::OrdMap<ServerName, HeadsSaid>,
    /// Those that ask for numbers of connections.
    pub counting: imbl::OrdMap<ServerName, ()>,
}

impl Few {
    /// A server is this one now, or none.
    pub(crate) fn note(&mut self, name: &ServerName, site: Option<&Site>) {
        match site.and_then(Site::own_heads) {
            Some(said) => drop(self.heads.insert(name.clone(), said)),
            None => drop(self.heads.remove(name)),
        }
        if site.is_some_and(Site::counts) {
            self.counting.insert(name.clone(), ());
        } else {
            self.counting.remove(name);
        }
    }
}

/// A server compiled for serving.
#[derive(Debug)]
pub struct Site {
    /// What it was made of.
    pub server: Arc<Server>,
    /// Whose turns its requests take: those of the namespace that made the host, which its oldest location is of.
    pub owner: Owner,
    /// What it asks of all its clients; shared with the handshakes.
    pub clients: Option<Clients>,
    /// Which location answers a path.
    pub locations: Locations,
    /// The locations, in the order of `server.locations`; behind them what snippets have besides.
    pub spots: Vec<Arc<Spot>>,
    /// The names under which its requests count, where somebody counts.
    pub hosts: Vec<Arc<Name>>,
    /// What snippets say of it; none where none counts for it.
    pub snippet: Option<Box<OfSite>>,
}

impl Site {
    /// The owner of a host with these locations, the oldest one first.
    pub(crate) fn owner_of(locations: &[Arc<Location>]) -> Owner {
        let oldest = locations.iter().find_map(|location| location.origin.as_deref());
        oldest.map_or(Owner::NOBODY, |origin| Owner::named(&origin.namespace))
    }

    /// What its snippets say of heads, if they do.
    pub(crate) fn own_heads(&self) -> Option<HeadsSaid> {
        let level = self.spots[self.snippet.as_ref()?.server].extras().snippet.as_ref()?;
        HeadsSaid::of(&level.settings.client)
    }

    /// Whether its snippets ask for numbers of connections.
    pub(crate) fn counts(&self) -> bool {
        let mut levels = self.spots.iter().filter_map(|spot| spot.extras().snippet.as_ref());
        levels.any(|level| level.asks.counts || level.settings.stub_status)
    }

    /// How its handshakes differ from those of others.
    pub fn own_tls(&self) -> Own {
        let clients = match &self.clients {
            Some(Clients::Verified(verifier)) => Some(verifier.clone()),
            Some(Clients::Closed(_)) | None => None,
        };
        Own { ciphers: self.server.ciphers.clone(), clients, refuses: false }
    }
}

/// A location compiled for serving.
#[derive(Debug)]
pub struct Spot {
    /// What it was made of.
    pub location: Arc<Location>,
    /// Its upstream; none if it answers by itself.
    pub group: Option<Arc<Group>>,
    /// Header sections of answers that variables of the location ask for.
    pub watch: Watch,
    /// What its requests count under, where somebody counts.
    pub counted: Option<Counted>,
    /// None where it has nothing of it: most have nothing, and there may be ten thousands of them.
    pub(crate) extras: Option<Box<Extras>>,
}

/// What few locations have besides.
#[derive(Debug)]
pub struct Extras {
    /// What its Ingress asks of clients besides the host.
    pub clients: Option<Arc<Verifier>>,
    /// Which of its endpoints is next; none: they take turns.
    pub rule: Option<Box<Rule>>,
    /// Whether its upstream has another name in logs than here.
    pub renamed: bool,
    /// Another upstream for some of its requests.
    pub canary: Option<Box<Alternative>>,
    /// TLS towards its upstream.
    pub upstream_tls: Option<Arc<Profile>>,
    /// Who answers in place of errors.
    pub errors: Option<Box<ErrorPages>>,
    /// Who stands in while its upstream has no endpoints.
    pub stand_in: Option<Box<StandIn>>,
    /// Where copies of requests go.
    pub mirror: Option<Box<Copies>>,
    /// Who gets copies that filters of a route ask for, in their order; nearly always nobody.
    pub mirrors: Vec<Arc<Group>>,
    /// Who is asked before a request is let in.
    pub authenticator: Option<Arc<Authenticator>>,
    /// The same of a route.
    pub(crate) guard: Option<Arc<Guard>>,
    /// What its limits count with; none if it has none.
    pub gate: Option<Arc<Gate>>,
    /// What allowed origins are told.
    pub cors: Option<Arc<Told>>,
    /// `custom-headers`.
    pub custom_headers: Option<Arc<SetHeaders>>,
    /// The expression of its path, where texts name groups of it and no snippet keeps them.
    pub(crate) expression: Option<Pattern>,
    /// What snippets say there; none where none counts for the host.
    pub snippet: Option<Arc<Level>>,
    /// What their settings do there; none where they say nothing.
    pub(crate) effects: Option<Arc<Effects>>,
}

/// Those of a location that has none of it.
static NOTHING: Extras = Extras::NOTHING;

impl Spot {
    /// What it has besides.
    pub fn extras(&self) -> &Extras {
        self.extras.as_deref().unwrap_or(&NOTHING)
    }
}

impl Extras {
    pub(crate) const NOTHING: Self = Self {
        clients: None,
        rule: None,
        renamed: false,
        canary: None,
        upstream_tls: None,
        errors: None,
        stand_in: None,
        mirror: None,
        mirrors: Vec::new(),
        authenticator: None,
        guard: None,
        gate: None,
        cors: None,
        custom_headers: None,
        expression: None,
        snippet: None,
        effects: None,
    };

    /// In memory of their own, if there is any.
    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        let is_nothing = matches!(
            &self,
            Self {
                clients: None,
                rule: None,
                renamed: false,
                canary: None,
                upstream_tls: None,
                errors: None,
                stand_in: None,
                mirror: None,
                mirrors,
                authenticator: None,
                guard: None,
                gate: None,
                cors: None,
                custom_headers: None,
                expression: None,
                snippet: None,
                effects: None,
            } if mirrors.is_empty()
        );
        (!is_nothing).then(|| Box::new(self))
    }
}

impl Generation {
    /// Settings of the process as a whole.
    pub fn global(&self) -> &Global {
        &self.configuration.global
    }

    /// Who answers on a port to a host; `main` are the controller's own ports.
    pub fn site(
        &self,
        port: u16,
        main: [u16; 2],
        host: &str,
        steps: &Steps,
    ) -> Result<Option<&Arc<Site>>, Spent> {
        if let Some(own) = &self.own_servers
            && let Some(site) = own.find(port, host, main.contains(&port), steps)?
        {
            return Ok(Some(site));
        }
        if self.sites.has_patterns() && !self.routes.is_empty() {
            return self.site_beside_routes(host, steps);
        }
        self.sites.find(host, steps)
    }

    /// The same where there are Gateways. Requests to a host that these name have steps of their own for patterns of
    /// Ingresses, whoever wrote those: where these do not last, rules that go before any pattern may still have it.
    #[cold]
    fn site_beside_routes(&self, host: &str, steps: &Steps) -> Result<Option<&Arc<Site>>, Spent> {
        const PART: usize = 16;
        if !self.has_route(host) {
            return self.sites.find(host, steps);
        }
        self.sites.find(host, &Steps::new(Steps::OF_REQUEST / PART))
    }

    /// Whether a rule of this host of Gateways goes before whatever patterns of Ingresses say of a name: these go
    /// before rules without a host, and a wildcard host of Ingresses, which takes its turn among patterns, beside one
    /// of rules.
    pub(crate) fn goes_before_patterns(&self, of_rule: &str, host: &str) -> bool {
        match of_rule {
            "_" => false,
            name if name.starts_with('*') => !self.sites.has_wildcard(host),
            _ => true,
        }
    }

    /// What is not served, and why.
    pub fn problems(&self) -> impl Iterator<Item = &model::Problem> {
        let own = self.own_servers.as_deref().map(OwnServers::problems).unwrap_or_default();
        self.left_out.values().flatten().chain(own)
    }

    /// Whether connections to a port begin with a PROXY protocol header; `main` are the controller's own ports.
    pub fn is_announced(&self, port: u16, main: [u16; 2]) -> bool {
        let own = self.own_servers.as_ref().and_then(|own| own.is_announced(port, main));
        own.unwrap_or(self.global().proxy_protocol)
    }

    /// Whether some may.
    pub fn may_announce(&self) -> bool {
        self.global().proxy_protocol || self.own_servers.is_some()
    }

    /// Whether a server other than the catch-all answers for a host.
    pub fn has_host(&self, host: &str, steps: &Steps) -> Result<bool, Spent> {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let site = self.sites.find(&host, steps)?;
        Ok(site.is_some_and(|site| site.server.name.as_str() != "_"))
    }

    /// Whether a Gateway names a host.
    fn has_route(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.routes.find(&host).any(|routed| routed.host.name.as_str() != "_")
    }

    /// Requests that were sent over new and over kept connections, by upstream; none that had no request.
    pub fn reuse(&self) -> impl Iterator<Item = (&str, Reuse)> {
        let all = self.groups.iter().map(|(id, group)| (id.as_str(), group.reuse()));
        all.filter(|(_, reuse)| *reuse != Reuse::default())
    }
}

impl Hosts for Generation {
    fn server_of(&self, host: &str, steps: &Steps) -> Option<&ServerName> {
        self.sites.find(host, steps).ok().flatten().map(|site| &site.server.name)
    }

    fn has(&self, host: &str, steps: &Steps) -> bool {
        self.has_host(host, steps) == Ok(true) || self.has_route(host)
    }
}
