//! Hosts as routes: what each Ingress says of a host is a route of its own, with another one over HTTP where that
//! differs.

use crate::gateway::{self, API, Listeners};
use crate::lost::{Ledger, Weight};
use crate::paths::Path;
use crate::rules::{self, Room, Said};
use crate::tls::Policies;
use crate::{Made, filters, redirects};
use model::{Alias, Configuration, Location, Server};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Rules that a route may have.
const MOST: usize = 16;

/// Everything that is said of Ingresses besides the Gateway.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) routes: Vec<Made>,
    pub(crate) tls: Vec<Made>,
}

/// Routes of one Ingress at one host.
struct Place<'a> {
    of: ObjectKey,
    name: String,
    hosts: Vec<String>,
    listeners: &'a Listeners,
}

/// Converts all hosts.
pub(crate) fn routes(
    configuration: &Configuration,
    snapshot: &Snapshot,
    listeners: &Listeners,
    ledger: &mut Ledger<'_>,
) -> Routes {
    let mut policies = Policies::default();
    let mut routes = Vec::new();
    let mut noted = BTreeSet::new();
    let several = several(configuration);
    for server in configuration.servers.values() {
        let Some(owner) = gateway::owner(server) else { continue };
        aliases(server, &owner, ledger);
        let mut groups: BTreeMap<ObjectKey, Vec<&Location>> = BTreeMap::new();
        for location in &server.locations {
            let Some(origin) = &location.origin else { continue };
            let of = ObjectKey::new(origin.namespace.clone(), origin.name.clone());
            groups.entry(of).or_default().push(location);
            noted.extend(location.canary.as_ref().map(|canary| {
                ObjectKey::new(canary.origin.namespace.clone(), canary.origin.name.clone())
            }));
        }
        for (of, locations) in groups {
            noted.insert(of.clone());
            let place = Place {
                name: name(&of, server, several.contains(&of)),
                hosts: gateway::host_names(server),
                listeners,
                of,
            };
            let mut room = Room { configuration, snapshot, ledger: &mut *ledger, policies: &mut policies };
            routes.extend(place.routes(&mut room, server, &locations));
            if place.of == owner {
                routes.extend(place.of_host(server, configuration));
            }
        }
    }
    for of in snapshot.ingresses.keys().filter(|key| noted.contains(*key)) {
        ledger.annotations(of);
    }
    Routes { routes, tls: policies.objects() }
}

/// Ingresses that stand on several hosts, whose routes are called by their hosts, too.
fn several(configuration: &Configuration) -> BTreeSet<ObjectKey> {
    let mut hosts: BTreeMap<ObjectKey, BTreeSet<&str>> = BTreeMap::new();
    for server in configuration.servers.values() {
        for origin in server.locations.iter().filter_map(|location| location.origin.as_ref()) {
            let of = ObjectKey::new(origin.namespace.clone(), origin.name.clone());
            hosts.entry(of).or_default().insert(server.name.as_str());
        }
    }
    hosts.into_iter().filter(|(_, hosts)| hosts.len() > 1).map(|(of, _)| of).collect()
}

fn name(of: &ObjectKey, server: &Server, is_one_of_several: bool) -> String {
    match server.name.as_str() {
        _ if !is_one_of_several => of.name.to_string(),
        "_" => format!("{}-any", of.name),
        host => format!("{}-{}", of.name, host.replace("*.", "any.")),
    }
}

fn aliases(server: &Server, owner: &ObjectKey, ledger: &mut Ledger<'_>) {
    for alias in &server.aliases {
        if matches!(alias, Alias::Beginning(_) | Alias::Pattern(_)) {
            let reason = format!("{alias} is no host name that a route could have");
            ledger.add(Some(owner), "server-alias", Weight::Lost, reason, "write the names that are meant");
        }
    }
}

impl Place<'_> {
    fn routes(&self, room: &mut Room<'_, '_>, server: &Server, locations: &[&Location]) -> Vec<Made> {
        let said: Vec<(&Location, Said)> = locations
            .iter()
            .map(|location| (*location, rules::said(room, server, location, &self.of)))
            .collect();
        self.order(room, &said);
        let global = &room.configuration.global;
        let is_secure = self.listeners.is_secure(&self.hosts);
        let mut out = Vec::new();
        for is_grpc in [false, true] {
            let own = || said.iter().filter(move |(_, said)| said.is_grpc == is_grpc);
            let over_tls: Vec<Value> =
                own().flat_map(|(_, said)| with_hsts(&said.rules, global.hsts.as_deref())).collect();
            let plain: Vec<Value> = own().flat_map(|(location, said)| {
                let is_sent = redirects::is_to_tls(server, &location.policy) && !is_redirect(said);
                if is_sent { sent(said, room.configuration) } else { said.rules.clone() }
            }).collect();
            let kind = if is_grpc { "GRPCRoute" } else { "HTTPRoute" };
            let name = if is_grpc && own().count() != said.len() { format!("{}-grpc", self.name) } else { self.name.clone() };
            // A call cannot be redirected: over HTTP it is an HTTPRoute that sends it on.
            let sends = is_grpc && plain.iter().any(|rule| rule.to_string().contains("RequestRedirect"));
            let plain_kind = if sends { "HTTPRoute" } else { kind };
            if !is_secure {
                out.extend(self.route(plain_kind, &name, &self.listeners.plain(), &plain));
            } else if plain == over_tls {
                let both = [self.listeners.plain(), self.listeners.secure(&self.hosts)].concat();
                out.extend(self.route(kind, &name, &both, &plain));
            } else {
                out.extend(self.route(kind, &name, &self.listeners.secure(&self.hosts), &over_tls));
                let name = format!("{name}-http");
                out.extend(self.route(plain_kind, &name, &self.listeners.plain(), &plain));
            }
        }
        out
    }

    /// Expressions go before prefixes; where the longer path was the prefix, it is the other one's now.
    fn order(&self, room: &mut Room<'_, '_>, said: &[(&Location, Said)]) {
        for (location, one) in said {
            let Some(Path::Prefix(prefix)) = &one.path else { continue };
            let goes_before = |(other, also): &&(&Location, Said)| {
                let start = other.path.split(['(', '[', '.', '*', '+', '?', '\\', '^', '$', '|']).next();
                let start = start.unwrap_or_default();
                matches!(also.path, Some(Path::Regex(_)))
                    && other.path.len() < location.path.len()
                    && (start.starts_with(prefix.as_str()) || prefix.starts_with(start))
            };
            if let Some((other, _)) = said.iter().find(goes_before) {
                let reason = format!("{} goes before {}, which was asked first", other.path, location.path);
                room.ledger.add(Some(&self.of), "use-regex", Weight::Lost, reason, "write both as expressions");
            }
        }
    }

    /// What is the host's: where `/` leads to, the other name with or without www, TLS that is passed on.
    fn of_host(&self, server: &Server, configuration: &Configuration) -> Vec<Made> {
        let mut out = Vec::new();
        let is_secure = self.listeners.is_secure(&self.hosts);
        let mut all = self.listeners.plain();
        if is_secure {
            all.extend(self.listeners.secure(&self.hosts));
        }
        let root = server.app_root.as_ref().and_then(|target| redirects::to(target, 302).ok());
        if let Some(filter) = root {
            let rule = json!({"matches": [{"path": {"type": "Exact", "value": "/"}}], "filters": [filter]});
            let is_sent = server.locations.iter().any(|location| redirects::is_to_tls(server, &location.policy));
            let parents = if is_secure && is_sent { self.listeners.secure(&self.hosts) } else { all.clone() };
            out.extend(self.route("HTTPRoute", &format!("{}-root", self.name), &parents, &[rule]));
        }
        if let Some(www) = &server.www {
            let hosts = vec![www.to_string()];
            let mut parents = self.listeners.plain();
            parents.extend(self.listeners.secure(&hosts));
            let filter = redirects::to_host(server.name.as_str(), configuration.global.redirect_status);
            let rule = json!({"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "filters": [filter]});
            let place = Place { hosts, name: self.name.clone(), of: self.of.clone(), listeners: self.listeners };
            out.extend(place.route("HTTPRoute", &format!("{}-www", self.name), &parents, &[rule]));
        }
        if server.passthrough.is_some() {
            let root = server.locations.iter().find(|location| location.path == "/");
            let service = root.and_then(|location| location.service.as_ref());
            if let Some(service) = service.filter(|service| service.port.parse::<u16>().is_ok()) {
                let port: Option<u16> = service.port.parse().ok();
                let rule = json!({"backendRefs": [{"name": &*service.name, "port": port}]});
                let parents = self.listeners.secure(&self.hosts);
                out.extend(self.route("TLSRoute", &format!("{}-tls", self.name), &parents, &[rule]));
            }
        }
        out
    }

    /// A route, or as many as its rules need.
    fn route(&self, kind: &str, name: &str, parents: &[Value], rules: &[Value]) -> Vec<Made> {
        let parts = rules.chunks(MOST).enumerate().map(|(number, rules)| {
            let name = if number == 0 { name.to_owned() } else { format!("{name}-{}", number + 1) };
            let mut spec = json!({"parentRefs": parents, "rules": rules});
            if !self.hosts.is_empty() {
                spec["hostnames"] = json!(self.hosts);
            }
            let value = json!({
                "apiVersion": API, "kind": kind,
                "metadata": {"name": name, "namespace": &*self.of.namespace}, "spec": spec,
            });
            Made { value, of: Some(self.of.clone()) }
        });
        parts.collect()
    }
}

/// Rules over HTTPS: answers say that the host is to be asked over HTTPS alone.
fn with_hsts(rules: &[Value], hsts: Option<&str>) -> Vec<Value> {
    let Some(hsts) = hsts else { return rules.to_vec() };
    let with = |rule: &Value| {
        let mut rule = rule.clone();
        let mut all = rule["filters"].as_array().cloned().unwrap_or_default();
        match all.iter_mut().find(|filter| filter["type"] == "ResponseHeaderModifier") {
            Some(filter) => {
                let set = &mut filter["responseHeaderModifier"]["set"];
                let field = json!({"name": "Strict-Transport-Security", "value": hsts});
                match set.as_array_mut() {
                    Some(set) => set.push(field),
                    None => *set = json!([field]),
                }
            }
            None => all.extend(filters::answer(&[], Some(hsts)).0),
        }
        rule["filters"] = json!(all);
        rule
    };
    rules.iter().map(with).collect()
}

fn is_redirect(said: &Said) -> bool {
    let has = |rule: &Value| {
        let filters = rule["filters"].as_array();
        filters.is_some_and(|all| all.iter().any(|filter| filter["type"] == "RequestRedirect"))
    };
    said.rules.iter().any(has)
}

/// The rule over HTTP that sends requests to HTTPS, with the paths that are never sent there.
fn sent(said: &Said, configuration: &Configuration) -> Vec<Value> {
    let Some(path) = &said.path else { return Vec::new() };
    let filter = redirects::to_tls(configuration.global.redirect_status);
    let rule = json!({"matches": [{"path": path.value()}], "filters": [filter]});
    let is_all = *path == Path::Prefix("/".to_owned()) && !said.is_grpc;
    let spared = configuration.global.no_tls_redirect.iter().filter(|_| is_all);
    let spared = spared.flat_map(|prefix| {
        said.rules.iter().map(move |rule| {
            let mut rule = rule.clone();
            rule["matches"][0]["path"] = Path::Prefix(prefix.clone()).value();
            rule
        })
    });
    std::iter::once(rule).chain(spared).collect()
}
