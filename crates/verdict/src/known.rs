//! What the objects say: who owns which upstream, what differs on purpose, and the Configuration that is asked.

use model::policy::{Limits as OfPolicy, Policy};
use model::snippet::{GlobalScope, Limits, Scope};
use model::{
    Backend, Block, Configuration, Endpoints, Location, Origin, Printable, Server, Upstream,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Stands for an endpoint where the objects have none (RFC 5737): nothing is ever sent to it.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);

/// What `fairway check` says about an Ingress that is not served as ingress-nginx served it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// That it is refused and by whom, or needs another engine: in the words of `fairway check`.
    pub closed: Option<&'static str>,
    /// Why.
    pub reasons: Vec<String>,
}

/// What the objects say.
#[derive(Debug, Default)]
pub struct Known {
    configuration: Configuration,
    /// By `namespace/name`; those that are served identically are not here.
    findings: BTreeMap<String, Finding>,
    /// The locations that lead to an upstream.
    owners: BTreeMap<String, Vec<(String, usize)>>,
    /// Upstreams without endpoints.
    vacant: BTreeSet<String>,
}

impl Known {
    /// What a Configuration says, and `findings` about its Ingresses.
    pub fn new(configuration: Configuration, findings: BTreeMap<String, Finding>) -> Self {
        let mut owners: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
        for (name, server) in &configuration.servers {
            for (index, location) in server.locations.iter().enumerate() {
                let canary = location.canary.as_ref().map(|canary| &canary.upstream);
                let main = match &location.backend {
                    Backend::Upstream(id) => Some(id),
                    Backend::NotFound | Backend::Denied(_) | Backend::Broken(_) => None,
                };
                for id in main.into_iter().chain(canary) {
                    let of_it = owners.entry(id.as_str().to_owned()).or_default();
                    of_it.push((name.as_str().to_owned(), index));
                }
            }
        }
        let vacant = configuration.upstreams.values().filter(|upstream| is_vacant(upstream));
        let vacant = vacant.map(|upstream| upstream.id.as_str().to_owned()).collect();
        Self { configuration, findings, owners, vacant }
    }

    /// What is asked instead of the Configuration itself: what a log cannot show (passwords, certificates of clients,
    /// rates) is taken as given, and where the objects have no endpoints there is one.
    pub fn asked(&self) -> Configuration {
        let mut asked = self.configuration.clone();
        let servers = self.configuration.servers.iter();
        asked.servers =
            servers.map(|(name, server)| (name.clone(), Arc::new(open(server)))).collect();
        let stood_in = self.stood_in();
        let upstreams = self.configuration.upstreams.iter();
        asked.upstreams = upstreams
            .map(|(id, upstream)| {
                let fill = is_vacant(upstream) && !stood_in.contains(id.as_str());
                (id.clone(), if fill { Arc::new(filled(upstream)) } else { upstream.clone() })
            })
            .collect();
        asked
    }

    /// Upstreams that somebody stands in for while they have no endpoints.
    fn stood_in(&self) -> BTreeSet<&str> {
        let locations = self.configuration.servers.values().flat_map(|server| &server.locations);
        let stood_in = locations.filter(|location| location.policy.default_backend.is_some());
        stood_in
            .filter_map(|location| match &location.backend {
                Backend::Upstream(id) => Some(id.as_str()),
                Backend::NotFound | Backend::Denied(_) | Backend::Broken(_) => None,
            })
            .collect()
    }

    /// A server by its name.
    pub(crate) fn server(&self, name: &str) -> Option<&Arc<Server>> {
        self.configuration.servers.get(name)
    }

    /// A location of an Ingress.
    pub(crate) fn location(&self, server: &str, index: usize) -> Option<&Arc<Location>> {
        self.server(server)?.locations.get(index)
    }

    /// Whether an upstream has no endpoints among the objects.
    pub(crate) fn is_vacant(&self, upstream: &str) -> bool {
        self.vacant.contains(upstream)
    }

    /// Whether the objects have an upstream.
    pub(crate) fn has_upstream(&self, name: &str) -> bool {
        self.configuration.upstreams.contains_key(name)
    }

    /// Whether the port's scheme may be another one than the request's, since peers are believed about it.
    pub(crate) fn believes_peers(&self) -> bool {
        self.configuration.global.real_ip.forwarded_headers
    }

    /// Who is refused whatever is asked for.
    pub(crate) fn block(&self) -> &Block {
        &self.configuration.global.block
    }

    /// What `http-snippet` says.
    pub(crate) fn http_snippet(&self) -> Option<&GlobalScope> {
        self.configuration.global.http_snippet.as_deref()
    }

    /// Whether only some of them are.
    pub(crate) fn believes_some(&self) -> bool {
        self.believes_peers()
            && !self.configuration.global.real_ip.trusted.iter().any(|net| net.prefix_len() == 0)
    }

    /// The locations that lead to an upstream.
    pub(crate) fn owners(&self, upstream: &str) -> &[(String, usize)] {
        self.owners.get(upstream).map(Vec::as_slice).unwrap_or_default()
    }

    /// The only host from which requests lead to an upstream; a made-up name below a wildcard.
    pub(crate) fn host_of(&self, upstream: &str) -> Option<String> {
        let (first, rest) = self.owners(upstream).split_first()?;
        if rest.iter().any(|(server, _)| *server != first.0) {
            return None;
        }
        let host = match first.0.strip_prefix("*.") {
            Some(domain) => format!("fairway-check.{domain}"),
            None => first.0.clone(),
        };
        (host != "_").then_some(host)
    }

    /// What `check` says about the Ingress behind something.
    pub(crate) fn finding(&self, origin: &Origin) -> Option<&Finding> {
        // `check` writes names so that they can be shown.
        self.findings.get(&Printable(&format!("{}/{}", origin.namespace, origin.name)).to_string())
    }

    /// Every path that an Ingress has written: host, number, and the location.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, usize, &Arc<Location>)> {
        self.configuration.servers.iter().flat_map(|(name, server)| {
            let locations = server.locations.iter().enumerate();
            let of_ingress = locations
                .filter(|(_, location)| location.origin.is_some() && !location.is_of_host());
            of_ingress.map(move |(index, location)| (name.as_str(), index, location))
        })
    }
}

fn is_vacant(upstream: &Upstream) -> bool {
    upstream.external.is_some() || upstream.endpoints.usable().is_empty()
}

fn filled(upstream: &Upstream) -> Upstream {
    Upstream {
        id: upstream.id.clone(),
        endpoints: Arc::new(Endpoints { ready: vec![NOBODY], draining: Vec::new() }),
        external: None,
        namespace: upstream.namespace.clone(),
    }
}

/// A server without what a log cannot show. What is closed stays closed.
fn open(server: &Server) -> Server {
    let mut open = server.clone();
    if is_verified(open.client_certificate.as_ref()) {
        open.client_certificate = None;
    }
    open.snippet = open.snippet.as_deref().map(unlimited);
    for location in &mut open.locations {
        if let Some(policy) = opened(&location.policy) {
            *location = Arc::new(Location { policy: Arc::new(policy), ..(**location).clone() });
        }
    }
    open
}

fn is_verified(asked: Option<&model::policy::ClientCertificate>) -> bool {
    matches!(asked, Some(model::policy::ClientCertificate::Verified(_)))
}

fn opened(policy: &Policy) -> Option<Policy> {
    let asks = is_verified(policy.client_certificate.as_ref());
    let is_open = policy.auth_basic.is_none()
        && policy.limits.is_empty()
        && !asks
        && policy.snippet.as_ref().is_none_or(|scope| scope.settings.limits == Limits::default());
    if is_open {
        return None;
    }
    let mut open = policy.clone();
    open.auth_basic = None;
    open.limits = OfPolicy::default();
    if asks {
        open.client_certificate = None;
    }
    open.snippet = open.snippet.as_deref().map(unlimited);
    Some(open)
}

fn unlimited(scope: &Scope) -> Arc<Scope> {
    let mut scope = scope.clone();
    scope.settings.limits = Limits::default();
    for branch in &mut scope.branches {
        branch.limits = Limits::default();
    }
    Arc::new(scope)
}
