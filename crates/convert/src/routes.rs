//! Hosts as routes: what each Ingress says of a host is a route of its own, with another one over HTTP where that
//! differs.

use crate::folders::Folders;
use crate::gateway::{self, CLASS, Listeners, Target};
use crate::keys::{GUARD_REMEDY, NO_ACTION};
use crate::lost::{Ledger, Weight};
use crate::made::{API, Made};
use crate::order;
use crate::rules::{self, Room, Said};
use crate::tls::Policies;
use crate::{backends, filters, redirects};
use imbl::OrdSet;
use model::{Alias, Configuration, Global, Location, PathKind, Server};
use objects::{ObjectKey, Snapshot};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Rules that a route may have, and hosts.
const MOST: usize = 16;

/// What a route is attached to.
#[derive(Clone, Copy)]
enum Over {
    Plain,
    Tls,
    Both,
}

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
    (configuration, served): (&Configuration, &OrdSet<ObjectKey>),
    (snapshot, target): (&Snapshot, &Target),
    listeners: &Listeners,
    ledger: &mut Ledger<'_>,
) -> Routes {
    let mut policies = Policies::default();
    let mut routes = Vec::new();
    let mut noted = BTreeSet::new();
    let several = several(configuration);
    for server in configuration.servers.values() {
        let Some(owner) = gateway::owner(server) else { continue };
        ledger.stand_at(Some((server, "")));
        of_host(server, &owner, ledger);
        let mut room = Room {
            configuration,
            snapshot,
            ledger: &mut *ledger,
            policies: &mut policies,
            is_ours: target.class == CLASS,
        };
        let mut groups: BTreeMap<ObjectKey, Vec<(&Location, Said)>> = BTreeMap::new();
        let all = all_said(&mut room, server);
        both_kinds(&mut room, server, &owner, &all);
        let is_open = !all.iter().any(|(_, location, said)| location.path == "/" && said.is_closed);
        for (of, location, said) in all {
            noted.extend(location.canary.as_ref().map(|canary| {
                ObjectKey::new(canary.origin.namespace.clone(), canary.origin.name.clone())
            }));
            groups.entry(of).or_default().push((location, said));
        }
        for (of, mut said) in groups {
            // Of two rules of a route that are as good the first one counts, as the host has asked them.
            if server.regex {
                said.sort_by(|(one, _), (other, _)| order::asked(one).cmp(&order::asked(other)));
            }
            noted.insert(of.clone());
            let place = Place {
                name: name(&of, server, several.contains(&of)),
                hosts: gateway::host_names(server),
                listeners,
                of,
            };
            routes.extend(place.routes(&mut room, server, &said));
            if place.of == owner {
                routes.extend(place.of_host(&mut room, server, is_open));
            }
        }
    }
    ledger.stand_at(None);
    noted.extend(served.iter().cloned());
    for of in snapshot.ingresses.keys().filter(|key| noted.contains(*key)) {
        ledger.annotations(of);
    }
    Routes { routes, tls: policies.objects() }
}

/// What all locations of a host say, with the Ingress that each is of; nothing is open whose guard another path was.
fn all_said<'s>(
    room: &mut Room<'_, '_>,
    server: &'s Server,
) -> Vec<(ObjectKey, &'s Location, Said)> {
    let mut all = Vec::new();
    let folders = Folders::of(server);
    for location in &server.locations {
        let Some(origin) = &location.origin else { continue };
        let of = ObjectKey::new(origin.namespace.clone(), origin.name.clone());
        room.ledger.stand_at(Some((server, location.path.as_str())));
        if never_has_a_request(server, location) {
            let reason = "an Exact / on a host of regular expressions never has a request: the Prefix / goes first";
            room.ledger.add(Some(&of), "path /", Weight::Note, reason.to_owned(), "leave it out");
            continue;
        }
        let Some(own) = folders.left_to(room.ledger, location, &of) else { continue };
        let said = rules::said(room, server, &own, &of);
        all.push((of, &**location, said));
    }
    order::keep(room, server, &mut all);
    // Requests for a path that cannot be said go to a shorter one, which must not let them in.
    let unsaid = all
        .iter()
        .find(|(_, _, said)| said.is_closed && said.path.is_some() && said.rules.is_empty());
    if let Some((_, location, _)) = unsaid {
        let reason = format!(
            "{} is guarded and cannot be said: its requests would go to another path",
            location.path
        );
        for (of, location, said) in all.iter_mut().filter(|(_, _, said)| !said.is_closed) {
            let key = format!("path {}", location.path);
            room.ledger.stand_at(Some((server, location.path.as_str())));
            room.ledger.add(Some(of), &key, Weight::Closed, reason.clone(), GUARD_REMEDY);
            said.close();
        }
    }
    room.ledger.stand_at(Some((server, "")));
    let mut taken = server.locations.iter().map(|location| location.path.as_str()).collect();
    for kind in [PathKind::Prefix, PathKind::Exact] {
        for (_, location, said) in all.iter_mut().filter(|(_, location, _)| location.kind == kind) {
            said.slash = rules::to_slash(&taken, location, said);
            let given = said.slash.as_ref().and_then(|_| location.path.strip_suffix('/'));
            taken.extend(given);
        }
    }
    all
}

/// Notes that a host has calls and other requests, which are two kinds of routes.
fn both_kinds(
    room: &mut Room<'_, '_>,
    server: &Server,
    owner: &ObjectKey,
    all: &[(ObjectKey, &Location, Said)],
) {
    let has =
        |is_grpc| all.iter().any(|(_, _, said)| said.is_grpc == is_grpc && !said.rules.is_empty());
    if has(true) && (has(false) || server.app_root.is_some()) {
        let reason = "the host has an HTTPRoute and a GRPCRoute: the specification has implementations take one of the two, and \
                      Fairway takes both of one namespace";
        let weight = if room.is_ours { Weight::Note } else { Weight::Lost };
        let remedy = "have the calls at a host of their own where the class is another one";
        room.ledger.stand_at(Some((server, "")));
        room.ledger.add(Some(owner), "backend-protocol", weight, reason, remedy);
    }
}

/// Whether a location is there in vain. As a route it would be as good as the Prefix `/`, and might lack its guard.
fn never_has_a_request(server: &Server, location: &Location) -> bool {
    let is_root = |other: &Location, kind| other.path == "/" && other.kind == kind;
    server.regex
        && is_root(location, PathKind::Exact)
        && server.locations.iter().any(|other| is_root(other, PathKind::Prefix))
}

/// Ingresses that stand on several hosts, whose routes are called by their hosts, too.
fn several(configuration: &Configuration) -> BTreeSet<ObjectKey> {
    let mut hosts: BTreeMap<ObjectKey, BTreeSet<&str>> = BTreeMap::new();
    for server in configuration.servers.values() {
        for origin in server.locations.iter().filter_map(|location| location.origin.as_deref()) {
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

/// What the names of a host cannot mean to the letter.
fn of_host(server: &Server, owner: &ObjectKey, ledger: &mut Ledger<'_>) {
    for alias in &server.aliases {
        if matches!(alias, Alias::Beginning(_) | Alias::Pattern(_)) {
            let reason = format!("{alias} is no host name that a route could have");
            ledger.add(
                Some(owner),
                "server-alias",
                Weight::Lost,
                reason,
                "write the names that are meant",
            );
        }
    }
    if server.certificate.is_some() && !server.aliases.is_empty() {
        let reason = "all names of the host have its certificate, and its redirect to HTTPS, whether or not it is for them";
        ledger.add(
            Some(owner),
            "server-alias",
            Weight::Otherwise,
            reason,
            "have the certificate name them all",
        );
    }
    if server.name.as_str().starts_with("*.") {
        let reason = format!("{} is every name below it, those of more labels, too", server.name);
        ledger.add(
            Some(owner),
            "spec.rules.host",
            Weight::Note,
            reason,
            "name the hosts that are meant",
        );
    }
    if server.www.is_some() {
        let reason = "the new address names no port, and keeps a slash at its end";
        ledger.add(Some(owner), "from-to-www-redirect", Weight::Note, reason, NO_ACTION);
    }
    if server.app_root.is_some() {
        let reason = "the redirect keeps the query of the request";
        ledger.add(Some(owner), "app-root", Weight::Note, reason, NO_ACTION);
    }
}

impl Place<'_> {
    fn routes(
        &self,
        room: &mut Room<'_, '_>,
        server: &Server,
        said: &[(&Location, Said)],
    ) -> Vec<Made> {
        let global = &room.configuration.global;
        let is_secure = self.listeners.is_secure(&self.hosts);
        let mut out = Vec::new();
        for is_grpc in [false, true] {
            let own = || said.iter().filter(move |(_, said)| said.is_grpc == is_grpc);
            let over_tls: Vec<Value> = own()
                .flat_map(|(_, said)| {
                    let all: Vec<_> = said.slash.iter().chain(&said.rules).cloned().collect();
                    with_hsts(&all, global.hsts.as_deref())
                })
                .collect();
            let plain: Vec<Value> = own()
                .flat_map(|(location, said)| {
                    let is_sent =
                        is_sent(room.configuration, server, location) && !is_redirect(said);
                    let rules = if is_sent { sent(said, global) } else { said.rules.clone() };
                    said.slash.iter().cloned().chain(rules)
                })
                .collect();
            let kind = if is_grpc { "GRPCRoute" } else { "HTTPRoute" };
            let name = if is_grpc
                && own().count() != said.iter().filter(|(_, said)| !said.rules.is_empty()).count()
            {
                format!("{}-grpc", self.name)
            } else {
                self.name.clone()
            };
            // A call cannot be redirected: over HTTP it is an HTTPRoute that sends it on.
            let sends =
                is_grpc && plain.iter().any(|rule| rule.to_string().contains("RequestRedirect"));
            let plain_kind = if sends { "HTTPRoute" } else { kind };
            if !is_secure {
                out.extend(self.route(plain_kind, &name, Over::Plain, &plain));
            } else if plain == over_tls {
                out.extend(self.route(kind, &name, Over::Both, &plain));
            } else {
                out.extend(self.route(kind, &name, Over::Tls, &over_tls));
                let name = format!("{name}-http");
                out.extend(self.route(plain_kind, &name, Over::Plain, &plain));
            }
        }
        out
    }

    /// What is the host's: where `/` leads to, the other name with or without www, TLS that is passed on.
    fn of_host(&self, room: &mut Room<'_, '_>, server: &Server, is_open: bool) -> Vec<Made> {
        let configuration = room.configuration;
        let mut out = Vec::new();
        let is_secure = self.listeners.is_secure(&self.hosts);
        if let Some(filter) = self.app_root(room, server, is_open) {
            let rule = json!({"matches": [{"path": {"type": "Exact", "value": "/"}}], "filters": [filter]});
            let mut locations = server.locations.iter();
            let is_sent = locations.any(|location| is_sent(configuration, server, location));
            let over = match (is_secure, is_sent) {
                (true, true) => Over::Tls,
                (true, false) => Over::Both,
                (false, _) => Over::Plain,
            };
            out.extend(self.route("HTTPRoute", &format!("{}-root", self.name), over, &[rule]));
        }
        if let Some(www) = &server.www {
            let hosts = vec![www.to_string()];
            let filter =
                redirects::to_host(server.name.as_str(), configuration.global.redirect_status);
            let rule = json!({"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "filters": [filter]});
            let place = Place {
                hosts,
                name: self.name.clone(),
                of: self.of.clone(),
                listeners: self.listeners,
            };
            out.extend(place.route(
                "HTTPRoute",
                &format!("{}-www", self.name),
                Over::Both,
                &[rule],
            ));
        }
        if server.passthrough.is_some() {
            let root = server.locations.iter().find(|location| location.path == "/");
            let service = root.and_then(|location| location.service.as_deref());
            let backend =
                service.map(|service| backends::of(service, &self.of.namespace, room.snapshot));
            match backend {
                Some(Ok(backend)) => {
                    let rule = json!({"backendRefs": [backend]});
                    let name = format!("{}-tls", self.name);
                    out.extend(self.route("TLSRoute", &name, Over::Tls, &[rule]));
                }
                other => {
                    let why = other
                        .and_then(Result::err)
                        .unwrap_or_else(|| "the path / leads to no Service".to_owned());
                    room.ledger.add(
                        Some(&self.of),
                        "ssl-passthrough",
                        Weight::Lost,
                        why,
                        "name a port by its number",
                    );
                }
            }
        }
        out
    }

    /// Where `/` leads to, unless something guards it.
    fn app_root(&self, room: &mut Room<'_, '_>, server: &Server, is_open: bool) -> Option<Value> {
        let target = server.app_root.as_ref()?;
        let mut lost = |weight, why: &str| {
            room.ledger.add(Some(&self.of), "app-root", weight, why, "leave this Ingress as it is");
        };
        if !is_open {
            lost(Weight::Closed, "the path / is guarded, and so is where it leads to");
            return None;
        }
        redirects::to(target, 302).map_err(|why| lost(Weight::Lost, why)).ok()
    }

    /// A route, or as many as its hosts and rules need: a route has a listener for each of its hosts, too.
    fn route(&self, kind: &str, name: &str, over: Over, rules: &[Value]) -> Vec<Made> {
        let hosts: Vec<&[String]> = match self.hosts.as_slice() {
            [] => vec![&[]],
            hosts => hosts.chunks(MOST).collect(),
        };
        let parts = hosts
            .into_iter()
            .flat_map(|hosts| rules.chunks(MOST).map(move |rules| (hosts, rules)))
            .map(|(hosts, rules)| (self.parents(over, hosts), hosts, rules))
            .filter(|(parents, ..)| !parents.is_empty());
        let routes = parts.enumerate().map(|(number, (parents, hosts, rules))| {
            let name = if number == 0 { name.to_owned() } else { format!("{name}-{}", number + 1) };
            let mut spec = json!({"parentRefs": parents, "rules": rules});
            if !hosts.is_empty() {
                spec["hostnames"] = json!(hosts);
            }
            let value = json!({
                "apiVersion": API, "kind": kind,
                "metadata": {"name": name, "namespace": &*self.of.namespace}, "spec": spec,
            });
            Made { value, of: Some(self.of.clone()) }
        });
        routes.collect()
    }

    /// The listeners of hosts.
    fn parents(&self, over: Over, hosts: &[String]) -> Vec<Value> {
        match over {
            Over::Plain => self.listeners.plain(),
            Over::Tls => self.listeners.secure(hosts),
            Over::Both => [self.listeners.plain(), self.listeners.secure(hosts)].concat(),
        }
    }
}

/// Rules over HTTPS: answers say that the host is to be asked over HTTPS alone.
fn with_hsts(rules: &[Value], hsts: Option<&str>) -> Vec<Value> {
    let Some(hsts) = hsts else { return rules.to_vec() };
    let with = |rule: &Value| {
        let mut rule = rule.clone();
        let mut all = rule["filters"].as_array().cloned().unwrap_or_default();
        const NAME: &str = "Strict-Transport-Security";
        match all.iter_mut().find(|filter| filter["type"] == "ResponseHeaderModifier") {
            Some(filter) => filters::also_set(filter, NAME, hsts),
            None => {
                let mut filter =
                    json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {}});
                filters::also_set(&mut filter, NAME, hsts);
                all.push(filter);
            }
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

/// Whether requests over HTTP for a location are sent to HTTPS.
fn is_sent(configuration: &Configuration, server: &Server, location: &Location) -> bool {
    let spared = &configuration.global.no_tls_redirect;
    let is_spared = spared.iter().any(|prefix| location.path.starts_with(prefix));
    redirects::is_to_tls(configuration, server, &location.policy) && !is_spared
}

/// The rule over HTTP that sends requests to HTTPS.
fn sent(said: &Said, global: &Global) -> Vec<Value> {
    let is_any = said.is_nobodys || !said.rules.is_empty();
    let Some(path) = said.path.as_ref().filter(|_| is_any) else { return Vec::new() };
    let filter = redirects::to_tls(global.redirect_status);
    vec![json!({"matches": [{"path": path.value()}], "filters": [filter]})]
}
