//! Upstreams with their endpoints, in the JSON of ingress-nginx's `/configuration/backends`.

use model::{Backend as Behind, Configuration, Endpoints, Location, Origin, Upstream, UpstreamId};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

/// An upstream.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Backend {
    name: UpstreamId,
    #[serde(flatten)]
    peers: Peers,
    /// Whose it is: its Service's, or of whoever names its host first.
    #[serde(skip)]
    pub(super) namespace: Arc<str>,
    /// Who names it first.
    #[serde(skip)]
    pub(super) origin: Option<Arc<Origin>>,
}

/// Says that an upstream goes.
#[derive(Debug, Serialize)]
pub(super) struct Gone<'a> {
    name: &'a str,
    gone: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Peers {
    endpoints: Vec<Peer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    draining: Vec<Peer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Peer {
    address: String,
    port: String,
}

/// What JSON has around an upstream, and around each endpoint.
const AROUND: usize = 48;
const AROUND_PEER: usize = 26;

/// The upstreams of a Configuration. `resolved` has the endpoints of those that stand for a name.
pub(super) fn of(
    configuration: &Configuration,
    resolved: &BTreeMap<UpstreamId, Arc<Endpoints>>,
) -> BTreeMap<Arc<str>, Backend> {
    let mut origins: HashMap<&UpstreamId, &Arc<Origin>> = HashMap::new();
    for location in configuration.servers.values().flat_map(|server| &server.locations) {
        let Some(origin) = &location.origin else { continue };
        for id in named(location) {
            origins.entry(id).or_insert(origin);
        }
    }
    let all = configuration.upstreams.iter();
    let backend = |(id, upstream): (&UpstreamId, &Arc<Upstream>)| {
        (id.as_str().into(), Backend::new(upstream, origins.get(id).copied(), resolved))
    };
    all.map(backend).collect()
}

/// The upstreams that a location names.
fn named(location: &Location) -> impl Iterator<Item = &UpstreamId> {
    let policy = &location.policy;
    let own = match &location.backend {
        Behind::Upstream(id) => Some(id),
        _ => None,
    };
    let named = [
        own,
        location.canary.as_ref().map(|canary| &canary.upstream),
        policy.default_backend.as_ref(),
        policy.errors.as_ref().and_then(|errors| errors.backend.as_ref()),
        policy.auth_external.as_ref().and_then(|auth| auth.url.upstream.as_ref()),
        policy.mirror.as_ref().and_then(|mirror| mirror.url.upstream.as_ref()),
    ];
    named.into_iter().flatten()
}

impl PartialEq for Backend {
    fn eq(&self, other: &Self) -> bool {
        // Who names it is told to nobody.
        (&self.name, &self.peers) == (&other.name, &other.peers)
    }
}

impl<'a> Gone<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        Self { name, gone: true }
    }
}

impl Backend {
    fn new(
        upstream: &Upstream,
        origin: Option<&Arc<Origin>>,
        resolved: &BTreeMap<UpstreamId, Arc<Endpoints>>,
    ) -> Self {
        let endpoints = resolved.get(&upstream.id).unwrap_or(&upstream.endpoints);
        let of_host = origin.filter(|_| upstream.namespace.is_empty());
        let namespace = of_host.map_or(&upstream.namespace, |origin| &origin.namespace).clone();
        let (name, peers) = (upstream.id.clone(), Peers::new(endpoints));
        Self { name, peers, namespace, origin: origin.cloned() }
    }

    /// Bytes of its JSON, as Lua writes it, or a few more.
    pub(super) fn length(&self) -> usize {
        let peers = self.peers.endpoints.iter().chain(&self.peers.draining);
        let peers = peers.map(|peer| AROUND_PEER + peer.address.len() + peer.port.len());
        // A slash has two bytes there.
        AROUND + self.name.as_str().len() * 2 + peers.sum::<usize>()
    }
}

impl Peers {
    fn new(endpoints: &Endpoints) -> Self {
        let peers = |addresses: &[SocketAddr]| addresses.iter().map(Peer::new).collect();
        Self { endpoints: peers(&endpoints.ready), draining: peers(&endpoints.draining) }
    }
}

impl Peer {
    fn new(address: &SocketAddr) -> Self {
        Self { address: address.ip().to_string(), port: address.port().to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use model::{Configuration, Endpoints, Upstream, UpstreamId};
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[test]
    fn an_upstream_has_the_names_of_the_original_and_no_more_bytes_than_are_counted() {
        let mut configuration = Configuration::default();
        let id = UpstreamId::new("demo-cart-80");
        let addresses = ["10.0.0.1:80", "[2001:db8::1]:80"];
        let ready = addresses.map(|address| address.parse().expect("an address")).to_vec();
        let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
        let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
        configuration.upstreams.insert(id, Arc::new(upstream));
        let backend = &of(&configuration, &BTreeMap::new())["demo-cart-80"];
        let written = serde_json::to_value(backend).expect("JSON");
        assert_eq!(
            written,
            json!({
                "name": "demo-cart-80",
                "endpoints": [
                    {"address": "10.0.0.1", "port": "80"}, {"address": "2001:db8::1", "port": "80"},
                ],
            })
        );
        assert!(written.to_string().len() <= backend.length());
    }

    #[test]
    fn names_have_the_endpoints_they_were_resolved_to() {
        let mut configuration = Configuration::default();
        let id = UpstreamId::new("demo-cart-80");
        let external = Some(("db.example".to_owned(), 80));
        let upstream =
            Upstream { id: id.clone(), endpoints: Arc::default(), external, namespace: "".into() };
        configuration.upstreams.insert(id.clone(), Arc::new(upstream));
        let found = vec!["192.0.2.1:80".parse().expect("an address")];
        let found = Arc::new(Endpoints { ready: found, draining: Vec::new() });
        let backends = of(&configuration, &BTreeMap::from([(id, found)]));
        assert_eq!(
            serde_json::to_value(&backends["demo-cart-80"]).expect("JSON"),
            json!({"name": "demo-cart-80", "endpoints": [{"address": "192.0.2.1", "port": "80"}]})
        );
    }
}
