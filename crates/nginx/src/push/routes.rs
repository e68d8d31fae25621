//! What is asked for where locations lead to upstreams: how requests are spread, canaries, who stands in. Whatever may
//! be long is a part with a name of its own, which routes of a namespace share: it is there once, not for each path.

use super::known::{Text, Things, keep};
use super::room::{Item, ROUTES, room};
use super::route::route_key;
use crate::conf::{ALIASES, Owner, fingerprint, text_of_key};
use model::policy::{
    Affinity, AffinityMode, Algorithm, Balance, Canary, CanaryRules, CanaryTest, Policy, SameSite,
};
use model::{Alias, Backend, Configuration, Location, Origin, Server, UpstreamId};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// What is said of routes, by key.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// What routes name: it is told before them.
    pub(super) parts: Things<Text>,
    /// Routes, and the names of hosts.
    pub(super) routes: Things<Text>,
    needs: Vec<Need>,
}

/// Who needs something that is said.
#[derive(Debug)]
struct Need {
    owner: Owner,
    key: Arc<str>,
}

/// Where a location leads to an upstream. Keys are those of parts.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Route<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternative: Option<Alternative<'a>>,
    #[serde(rename = "stand-in", skip_serializing_if = "Option::is_none")]
    stand_in: Option<&'a UpstreamId>,
    /// The server whose names are those under which clients are told their session; all if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Alternative<'a> {
    backend: &'a UpstreamId,
    rules: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<Arc<str>>,
}

/// Which endpoint is next.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Spread {
    #[serde(rename = "load-balance", skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'static str>,
    #[serde(rename = "upstreamHashByConfig", skip_serializing_if = "Option::is_none")]
    hash: Option<Hash>,
    #[serde(rename = "sessionAffinityConfig", skip_serializing_if = "Option::is_none")]
    affinity: Option<Session>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Hash {
    upstream_hash_by: String,
    upstream_hash_by_subset: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_hash_by_subset_size: Option<u32>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    name: &'static str,
    mode: &'static str,
    cookie_session_affinity: Cookie,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
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
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
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

/// What a Configuration says of routes.
pub(crate) fn of(configuration: &Configuration) -> Routes {
    let mut writer = Writer::default();
    for server in configuration.servers.values() {
        let mut tells = false;
        for location in &server.locations {
            tells |= writer.route(server, location);
        }
        if tells && has_strangers(server) {
            writer.names(server);
        }
    }
    writer.routes
}

impl Routes {
    /// What takes room, and who needs it.
    pub(crate) fn items(&self) -> Vec<Item<'_, Owner>> {
        let length = |key: &Arc<str>| {
            let text = self.routes.get(key).or_else(|| self.parts.get(key));
            text.map_or(0, |text| text.text.len())
        };
        let item = |need: &'_ Need| room(need.key.len(), length(&need.key));
        let items = self.needs.iter().map(|need| Item {
            namespace: &need.owner.origin.namespace,
            object: need.owner.clone(),
            key: &need.key,
            bytes: item(need),
        });
        items.collect()
    }

    /// Leaves out of what is said only for workers that leave what there is no room for.
    pub(super) fn keep_older(&mut self, is_now: impl Fn(&str) -> bool) {
        let mut untold = Vec::new();
        // What is served now was seen to before (`routes_beyond`).
        keep(&mut self.parts, ROUTES, &is_now, &mut untold);
        keep(&mut self.routes, ROUTES, &is_now, &mut untold);
    }

    /// Notes who needs something; what nobody has written is nobody's.
    fn need(&mut self, owner: Option<Owner>, key: &Arc<str>) {
        self.needs.extend(owner.map(|owner| Need { owner, key: key.clone() }));
    }

    /// A text that many may share; its key.
    fn part(&mut self, origin: Option<&Arc<Origin>>, value: &impl Serialize) -> Arc<str> {
        let text = json(value);
        let namespace = origin.map_or("", |origin| &origin.namespace);
        // Namespaces share nothing, so that nobody has for free what another one pays for.
        let name = fingerprint(format!("{namespace} {text}").as_bytes());
        let key = Arc::<str>::from(format!("part {name}"));
        self.parts.entry(key.clone()).or_insert_with(|| Text::new(text, origin));
        key
    }
}

/// Whether clients come to a server under names that tell them no session, or only one label below them.
fn has_strangers(server: &Server) -> bool {
    server.aliases.iter().any(|alias| !matches!(alias, Alias::Name(_)))
}

/// What has been said so far. Paths of an Ingress share its policy, so that what it asks for is written once.
#[derive(Default)]
struct Writer<'a> {
    routes: Routes,
    spreads: HashMap<*const Policy, Option<Arc<str>>>,
    canaries: HashMap<(&'a Origin, *const Policy), Side<'a>>,
}

/// The parts of a canary.
#[derive(Clone)]
struct Side<'a> {
    canary: &'a Canary,
    rules: Arc<str>,
    spread: Option<Arc<str>>,
}

impl<'a> Writer<'a> {
    /// Says where a location leads to; whether that tells clients a session.
    fn route(&mut self, server: &'a Server, location: &'a Location) -> bool {
        let Backend::Upstream(id) = &location.backend else { return false };
        let (policy, origin) = (&location.policy, location.origin.as_ref());
        let spread = match self.spreads.get(&Arc::as_ptr(policy)) {
            Some(known) => known.clone(),
            None => {
                let spread = self.spread(origin, &policy.balance);
                self.spreads.insert(Arc::as_ptr(policy), spread.clone());
                spread
            }
        };
        let canary = location.canary.as_deref();
        let alternative = canary.map(|canary| self.alternative(policy, canary));
        let balances = [Some(&policy.balance), canary.map(|canary| &canary.balance)];
        let tells = balances.into_iter().flatten().any(|balance| balance.affinity.is_some());
        let names = (tells && has_strangers(server)).then(|| server.name.as_str());
        let stand_in = policy.default_backend.as_ref();
        let route = Route { spread, alternative, stand_in, names };
        if route == Route::default() {
            return false;
        }
        let key = Arc::<str>::from(format!("route {id} {}", route_key(&server.name, location)));
        let owner = origin.map(|origin| Owner::from(&**origin));
        for key in [Some(&key), route.spread.as_ref()].into_iter().flatten() {
            self.routes.need(owner.clone(), key);
        }
        if let (Some(canary), Some(other)) = (canary, &route.alternative) {
            for key in [Some(&other.rules), other.spread.as_ref()].into_iter().flatten() {
                self.routes.need(Some(Owner::from(&canary.origin)), key);
            }
        }
        self.routes.routes.insert(key, Text::new(json(&route), origin));
        tells
    }

    fn spread(&mut self, origin: Option<&Arc<Origin>>, balance: &Balance) -> Option<Arc<str>> {
        let spread = Spread::new(balance);
        (spread != Spread::default()).then(|| self.routes.part(origin, &spread))
    }

    fn alternative(&mut self, policy: &Arc<Policy>, canary: &'a Canary) -> Alternative<'a> {
        let place = (&canary.origin, Arc::as_ptr(policy));
        let known = self.canaries.get(&place).filter(|known| {
            known.canary.rules == canary.rules && known.canary.balance == canary.balance
        });
        let side = match known {
            Some(known) => known.clone(),
            None => {
                let origin = Arc::new(canary.origin.clone());
                let rules = self.routes.part(Some(&origin), &Shaping::new(&canary.rules));
                let spread = self.spread(Some(&origin), &canary.balance);
                let side = Side { canary, rules, spread };
                self.canaries.insert(place, side.clone());
                side
            }
        };
        Alternative { backend: &canary.upstream, rules: side.rules, spread: side.spread }
    }

    /// Says under which names the clients of a server are told their session.
    fn names(&mut self, server: &Server) {
        let owner = Owner::of_host(server, ALIASES);
        let origin = owner.as_ref().map(|owner| Arc::new(owner.origin.clone()));
        for host in hosts(server) {
            let key = Arc::<str>::from(format!("name {} {host}", server.name));
            self.routes.need(owner.clone(), &key);
            self.routes.routes.insert(key, Text::new("1".to_owned(), origin.as_ref()));
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts, numbers and lists are JSON")
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

impl Spread {
    fn new(balance: &Balance) -> Self {
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
                upstream_hash_by: text_of_key(key),
                upstream_hash_by_subset: size.is_some(),
                upstream_hash_by_subset_size: size,
            }),
            affinity: affinity.as_deref().map(Session::new),
        }
    }
}

impl Session {
    fn new(affinity: &Affinity) -> Self {
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
        let cookie = Cookie {
            name: name.clone(),
            expires: expires.map(|seconds| seconds.to_string()),
            maxage: max_age.map(|seconds| seconds.to_string()),
            path: path.clone(),
            domain: domain.clone(),
            samesite: same_site.map(SameSite::as_str),
            secure: *secure,
            conditional_samesite_none: *conditional_same_site_none,
            change_on_failure: *change_on_failure,
        };
        let mode = match mode {
            AffinityMode::Balanced => "balanced",
            AffinityMode::Persistent => "persistent",
        };
        Self { name: "cookie", mode, cookie_session_affinity: cookie }
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
        Alias, Backend, Configuration, Kind, Location, Origin, PathKind, Server, ServerName,
        Template, UpstreamId,
    };
    use serde_json::{Value, json};
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

    fn location(path: &str, policy: &Arc<Policy>, canary: Option<Canary>) -> Arc<Location> {
        Arc::new(Location {
            path: path.to_owned(),
            kind: PathKind::Exact,
            whole: false,
            backend: Backend::Upstream(UpstreamId::new("demo-cart-80")),
            canary: canary.map(Box::new),
            service: None,
            origin: Some(Origin::new(Kind::Ingress, "demo", "cart").into()),
            policy: policy.clone(),
        })
    }

    fn canary() -> Canary {
        let test = CanaryTest::Value("yes".to_owned().into());
        Canary {
            upstream: UpstreamId::new("demo-new-80"),
            origin: Origin::new(Kind::Ingress, "demo", "new"),
            rules: CanaryRules {
                header: Some(CanaryHeader { name: "x_new".to_owned(), test }),
                cookie: Some("new".to_owned()),
                weight: 10,
                weight_total: 100,
            }
            .into(),
            balance: Balance { algorithm: Algorithm::Ewma, affinity: None },
        }
    }

    fn configuration(server: Server) -> Configuration {
        let mut configuration = Configuration::default();
        configuration.servers.insert(server.name.clone(), Arc::new(server));
        configuration
    }

    #[test]
    fn a_route_has_the_names_of_the_original_and_its_parts_stand_apart() {
        let key = Template::parse("$request_uri").expect("a variable");
        let size = NonZeroU32::new(2).expect("not zero");
        let balance = Balance {
            algorithm: Algorithm::HashSubset(key, size),
            affinity: Some(affinity().into()),
        };
        let policy = Arc::new(Policy { balance, ..Policy::default() });
        let mut server = Server::new(ServerName::new("shop.example"));
        server.locations.push(location("/cart", &policy, Some(canary())));
        let routes = of(&configuration(server));
        let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let route = value(&routes.routes["route demo-cart-80 exact:shop.example/cart"].text);
        let part = |key: &Value| value(&routes.parts[key.as_str().expect("a key")].text);
        assert_eq!(
            part(&route["spread"]),
            json!({
                "upstreamHashByConfig": {
                    "upstream-hash-by": "${request_uri}",
                    "upstream-hash-by-subset": true,
                    "upstream-hash-by-subset-size": 2,
                },
                "sessionAffinityConfig": {"name": "cookie", "mode": "persistent", "cookieSessionAffinity": {
                    "name": "S", "expires": "-1", "maxage": "60", "samesite": "None", "secure": false,
                    "conditional_samesite_none": true, "change_on_failure": false,
                }},
            })
        );
        let other = &route["alternative"];
        assert_eq!(other["backend"], "demo-new-80");
        assert_eq!(part(&other["spread"]), json!({"load-balance": "ewma"}));
        assert_eq!(
            part(&other["rules"]),
            json!({"weight": 10, "weightTotal": 100, "header": "x_new", "headerValue": "yes", "cookie": "new"})
        );
        assert!(route.get("names").is_none(), "clients have no other names");
    }

    #[test]
    fn what_a_thousand_paths_have_in_common_is_said_once() {
        let long = Template::parse(&"$request_uri".repeat(200)).expect("variables");
        let balance =
            Balance { algorithm: Algorithm::Hash(long), affinity: Some(affinity().into()) };
        let policy = Arc::new(Policy { balance, ..Policy::default() });
        let mut server = Server::new(ServerName::new("shop.example"));
        let pattern = Alias::parse("~^shop[0-9]").expect("a pattern");
        let names =
            (0..1000).map(|number| Alias::Name(ServerName::new(format!("{number:060}.test"))));
        server.aliases = names.chain(pattern).collect();
        for number in 0..1000 {
            server.locations.push(location(&format!("/{number}"), &policy, Some(canary())));
        }
        let routes = of(&configuration(server));
        let texts = routes.parts.values().chain(routes.routes.values());
        let bytes: usize = texts.map(|text| text.text.len()).sum();
        assert!(bytes < 500_000, "{bytes} bytes");
        assert_eq!((routes.parts.len(), routes.routes.len()), (3, 1000 + 1001));
        assert!(routes.routes.contains_key("name shop.example shop.example"));
    }

    #[test]
    fn a_location_that_asks_for_nothing_has_no_route() {
        let mut server = Server::new(ServerName::new("shop.example"));
        server.locations.push(location("/", &Arc::default(), None));
        let routes = of(&configuration(server));
        assert!(routes.parts.is_empty() && routes.routes.is_empty());
    }
}
