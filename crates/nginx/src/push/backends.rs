//! Upstreams and the routes that lead to them, in the JSON of ingress-nginx's `/configuration/backends`.

use super::route::route_key;
use model::policy::{Affinity, AffinityMode, Algorithm, Balance, Canary, CanaryRules, CanaryTest};
use model::{
    Alias, Backend as Behind, Configuration, Endpoints, Location, Server, Upstream, UpstreamId,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The upstreams by name.
pub(super) type Backends = BTreeMap<UpstreamId, Backend>;

/// An upstream, with what hangs on the routes that lead to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Backend {
    name: UpstreamId,
    #[serde(flatten)]
    peers: Peers,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    routes: BTreeMap<String, Route>,
}

/// Says that an upstream goes.
#[derive(Debug, Serialize)]
pub(super) struct Gone<'a> {
    name: &'a UpstreamId,
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

/// What is asked for where a location leads to an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Route {
    #[serde(flatten)]
    spread: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternative: Option<Alternative>,
    #[serde(rename = "stand-in", skip_serializing_if = "Option::is_none")]
    stand_in: Option<UpstreamId>,
}

/// Which endpoint is next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Spread {
    #[serde(rename = "load-balance", skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'static str>,
    #[serde(rename = "upstreamHashByConfig", skip_serializing_if = "Option::is_none")]
    hash: Option<Hash>,
    #[serde(rename = "sessionAffinityConfig", skip_serializing_if = "Option::is_none")]
    affinity: Option<Session>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Hash {
    upstream_hash_by: String,
    upstream_hash_by_subset: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_hash_by_subset_size: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    name: &'static str,
    mode: &'static str,
    cookie_session_affinity: Cookie,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Cookie {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maxage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samesite: Option<&'static str>,
    secure: bool,
    conditional_samesite_none: bool,
    change_on_failure: bool,
    /// The hosts that tell clients their session, with the path that the cookie has.
    locations: BTreeMap<String, [String; 1]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Alternative {
    backend: UpstreamId,
    traffic_shaping_policy: Shaping,
    #[serde(flatten)]
    spread: Spread,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shaping {
    weight: u32,
    weight_total: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header_pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header_pattern_broken: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cookie: Option<String>,
}

/// The upstreams of a Configuration. `resolved` has the endpoints of those that stand for a name.
pub(super) fn of(
    configuration: &Configuration,
    resolved: &BTreeMap<UpstreamId, Arc<Endpoints>>,
) -> Backends {
    let mut backends: Backends = configuration
        .upstreams
        .iter()
        .map(|(id, upstream)| (id.clone(), Backend::new(upstream, resolved)))
        .collect();
    for server in configuration.servers.values() {
        for location in &server.locations {
            let Behind::Upstream(id) = &location.backend else { continue };
            let route = Route::new(server, location);
            if let Some(backend) = backends.get_mut(id)
                && route != Route::default()
            {
                backend.routes.insert(route_key(&server.name, location), route);
            }
        }
    }
    backends
}

impl<'a> Gone<'a> {
    pub(super) fn new(name: &'a UpstreamId) -> Self {
        Self { name, gone: true }
    }
}

impl Backend {
    fn new(upstream: &Upstream, resolved: &BTreeMap<UpstreamId, Arc<Endpoints>>) -> Self {
        let endpoints = resolved.get(&upstream.id).unwrap_or(&upstream.endpoints);
        Self { name: upstream.id.clone(), peers: Peers::new(endpoints), routes: BTreeMap::new() }
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

impl Route {
    fn new(server: &Server, location: &Location) -> Self {
        let policy = &location.policy;
        Self {
            spread: Spread::new(&policy.balance, server, location),
            alternative: location
                .canary
                .as_ref()
                .map(|canary| Alternative::new(canary, server, location)),
            stand_in: policy.default_backend.clone(),
        }
    }
}

impl Spread {
    fn new(balance: &Balance, server: &Server, location: &Location) -> Self {
        let Balance { algorithm, affinity } = balance;
        let (name, hash) = match algorithm {
            Algorithm::RoundRobin => (None, None),
            Algorithm::Ewma => (Some("ewma"), None),
            Algorithm::Random => (Some("random"), None),
            Algorithm::Hash(key) => (None, Some((key, None))),
            Algorithm::HashSubset(key, size) => (None, Some((key, Some(size.get())))),
        };
        Self {
            algorithm: name,
            hash: hash.map(|(key, size)| Hash {
                upstream_hash_by: key.to_string(),
                upstream_hash_by_subset: size.is_some(),
                upstream_hash_by_subset_size: size,
            }),
            affinity: affinity.as_ref().map(|affinity| Session::new(affinity, server, location)),
        }
    }
}

impl Session {
    fn new(affinity: &Affinity, server: &Server, location: &Location) -> Self {
        let Affinity {
            mode,
            name,
            secure,
            expires,
            max_age,
            path,
            domain,
            same_site,
            conditional_same_site_none,
            change_on_failure,
            // It serves no Gateways.
            of_rule: _,
        } = affinity;
        let hosts = hosts(server).map(|host| (host, [location.path.clone()]));
        let cookie = Cookie {
            name: name.clone(),
            expires: expires.map(|seconds| seconds.to_string()),
            maxage: max_age.map(|seconds| seconds.to_string()),
            path: path.clone(),
            domain: domain.clone(),
            samesite: same_site.map(model::policy::SameSite::as_str),
            secure: *secure,
            conditional_samesite_none: *conditional_same_site_none,
            change_on_failure: *change_on_failure,
            locations: hosts.collect(),
        };
        let mode = match mode {
            AffinityMode::Balanced => "balanced",
            AffinityMode::Persistent => "persistent",
        };
        Self { name: "cookie", mode, cookie_session_affinity: cookie }
    }
}

/// The names of a server under which its clients are told their session, as ingress-nginx.
fn hosts(server: &Server) -> impl Iterator<Item = String> {
    let aliases = server.aliases.iter().filter_map(|alias| match alias {
        Alias::Name(name) => Some(name.to_string()),
        Alias::Below(parent) => Some(format!("*.{parent}")),
        Alias::Beginning(_) | Alias::Pattern(_) => None,
    });
    std::iter::once(server.name.to_string()).chain(aliases)
}

impl Alternative {
    fn new(canary: &Canary, server: &Server, location: &Location) -> Self {
        Self {
            backend: canary.upstream.clone(),
            traffic_shaping_policy: Shaping::new(&canary.rules),
            spread: Spread::new(&canary.balance, server, location),
        }
    }
}

impl Shaping {
    fn new(rules: &CanaryRules) -> Self {
        let CanaryRules { header, cookie, weight, weight_total } = rules;
        let mut shaping = Self {
            weight: *weight,
            weight_total: *weight_total,
            header: header.as_ref().map(|header| header.name.clone()),
            cookie: cookie.clone(),
            ..Self::default()
        };
        match header.as_ref().map(|header| &header.test) {
            None | Some(CanaryTest::Word) => {}
            Some(CanaryTest::Value(value)) => shaping.header_value = Some(value.to_string()),
            Some(CanaryTest::Pattern(pattern)) => {
                shaping.header_pattern = Some(pattern.source().to_owned());
            }
            Some(CanaryTest::Never) => shaping.header_pattern_broken = Some(true),
        }
        shaping
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use model::policy::{
        Affinity, AffinityMode, Algorithm, Balance, Canary, CanaryHeader, CanaryRules, CanaryTest,
        Policy, SameSite,
    };
    use model::{
        Backend, Configuration, Endpoints, Kind, Location, Origin, PathKind, Server, ServerName,
        Template, Upstream, UpstreamId,
    };
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;
    use std::sync::Arc;

    fn affinity() -> Affinity {
        Affinity {
            mode: AffinityMode::Persistent,
            name: "S".to_owned(),
            secure: false,
            expires: Some(-1),
            max_age: Some(60),
            path: None,
            domain: None,
            same_site: Some(SameSite::None),
            conditional_same_site_none: true,
            change_on_failure: false,
            of_rule: None,
        }
    }

    fn location(policy: Policy, canary: Option<Canary>) -> Arc<Location> {
        Arc::new(Location {
            path: "/cart".to_owned(),
            kind: PathKind::Exact,
            whole: false,
            backend: Backend::Upstream(UpstreamId::new("demo-cart-80")),
            canary: canary.map(Box::new),
            service: None,
            origin: None,
            policy: Arc::new(policy),
        })
    }

    #[test]
    fn an_upstream_has_the_names_of_the_original_and_its_routes() {
        let mut configuration = Configuration::default();
        let id = UpstreamId::new("demo-cart-80");
        let ready = vec![
            "10.0.0.1:80".parse().expect("an address"),
            "[2001:db8::1]:80".parse().expect("an address"),
        ];
        let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
        let upstream = Upstream { id: id.clone(), endpoints, external: None, namespace: "".into() };
        configuration.upstreams.insert(id.clone(), Arc::new(upstream));
        let key = Template::parse("$request_uri").expect("a variable");
        let size = NonZeroU32::new(2).expect("not zero");
        let balance = Balance {
            algorithm: Algorithm::HashSubset(key, size),
            affinity: Some(affinity().into()),
        };
        let test = CanaryTest::Value("yes".to_owned().into());
        let canary = Canary {
            upstream: UpstreamId::new("demo-new-80"),
            origin: Origin::new(Kind::Ingress, "demo", "new"),
            rules: CanaryRules {
                header: Some(CanaryHeader { name: "x_new".to_owned(), test }),
                cookie: Some("new".to_owned()),
                weight: 10,
                weight_total: 100,
            },
            balance: Balance { algorithm: Algorithm::Ewma, affinity: None },
        };
        let mut server = Server::new(ServerName::new("shop.example"));
        server.locations.push(location(Policy { balance, ..Policy::default() }, Some(canary)));
        configuration.servers.insert(server.name.clone(), Arc::new(server));
        let backends = of(&configuration, &BTreeMap::new());
        let written = serde_json::to_value(&backends[&id]).expect("JSON");
        assert_eq!(
            written,
            json!({
                "name": "demo-cart-80",
                "endpoints": [
                    {"address": "10.0.0.1", "port": "80"}, {"address": "2001:db8::1", "port": "80"},
                ],
                "routes": {"exact:shop.example/cart": {
                    "upstreamHashByConfig": {
                        "upstream-hash-by": "${request_uri}",
                        "upstream-hash-by-subset": true,
                        "upstream-hash-by-subset-size": 2,
                    },
                    "sessionAffinityConfig": {"name": "cookie", "mode": "persistent", "cookieSessionAffinity": {
                        "name": "S", "expires": "-1", "maxage": "60", "samesite": "None", "secure": false,
                        "conditional_samesite_none": true, "change_on_failure": false,
                        "locations": {"shop.example": ["/cart"]},
                    }},
                    "alternative": {
                        "backend": "demo-new-80",
                        "load-balance": "ewma",
                        "trafficShapingPolicy": {
                            "weight": 10, "weightTotal": 100, "header": "x_new", "headerValue": "yes", "cookie": "new",
                        },
                    },
                }},
            })
        );
    }

    #[test]
    fn a_location_that_asks_for_nothing_has_no_route_and_names_have_the_endpoints_they_were_resolved_to()
     {
        let mut configuration = Configuration::default();
        let id = UpstreamId::new("demo-cart-80");
        let external = Some(("db.example".to_owned(), 80));
        let upstream =
            Upstream { id: id.clone(), endpoints: Arc::default(), external, namespace: "".into() };
        configuration.upstreams.insert(id.clone(), Arc::new(upstream));
        let mut server = Server::new(ServerName::new("shop.example"));
        server.locations.push(location(Policy::default(), None));
        configuration.servers.insert(server.name.clone(), Arc::new(server));
        let found = vec!["192.0.2.1:80".parse().expect("an address")];
        let found = Arc::new(Endpoints { ready: found, draining: Vec::new() });
        let backends = of(&configuration, &BTreeMap::from([(id.clone(), found)]));
        assert_eq!(
            serde_json::to_value(&backends[&id]).expect("JSON"),
            json!({"name": "demo-cart-80", "endpoints": [{"address": "192.0.2.1", "port": "80"}]})
        );
    }
}
