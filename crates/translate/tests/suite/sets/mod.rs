//! Ingresses of two tenants out of bytes, and what must hold of them: what `a` has does not depend on what `b` does.
//! Used by the property test and by the fuzz target, so it needs nothing but the crates under test.

use model::{Alias, Backend, Configuration, Location, Server, ServerName, Steps};
use objects::{
    ConfigMap, Ingress, IngressBackend, IngressClass, IngressPath, IngressRule, IngressTls, Meta,
    ObjectKey, PathType, PortRef, Secret, Service, Snapshot,
};
use route::{Found, Locations};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use translate::{Options, translate};

const HOSTS: &[&str] = &[
    "a.test",
    "a.test",
    "a.test",
    "b.test",
    "*.a.test",
    "www.a.test",
    "www.b.test",
    "x.a.test",
    "",
];
const PATHS: &[&str] = &[
    "/",
    "/",
    "/app",
    "/app/",
    "/App",
    "/app/x",
    "/b",
    "/b(/|$)(.*)",
    "/(.*)",
    "/app.*",
    "/app(/|$)(.*)",
    "/(app|zzzzzzzzz)",
    "/a[p]p/x",
    "/.well-known/x",
    ODD,
];
const REQUESTS: &[&str] = &[
    "/",
    "/app",
    "/app/",
    "/app/x",
    "/app/y",
    "/App",
    "/apple",
    "/b",
    "/b/",
    "/b/c",
    "/zzzzzzzzz",
    "/zzzzzzzzz/x",
    "/foo",
    "/.well-known/x",
];
const ANNOTATIONS: &[(&str, &str)] = &[
    ("use-regex", "true"),
    ("use-regex", "true"),
    ("rewrite-target", "/$1"),
    ("rewrite-target", "/"),
    ("canary", "true"),
    ("canary-weight", "100"),
    ("canary-by-header", "X-Canary"),
    ("ssl-passthrough", "true"),
    ("ssl-passthrough", "true"),
    ("server-alias", "alias.test, x.a.test"),
    ("server-alias", "*.test"),
    ("server-alias", "~.*"),
    ("server-alias", r"~^x\d+\.a\.test$"),
    ("server-alias", "b.test"),
    ("from-to-www-redirect", "true"),
    ("app-root", "/welcome"),
    ("ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("ssl-prefer-server-ciphers", "true"),
    ("auth-tls-secret", "a/ca"),
    ("auth-tls-secret", "b/ca"),
    ("auth-tls-verify-client", "optional"),
    ("auth-tls-match-cn", "CN=x"),
    ("backend-protocol", "HTTPS"),
    ("proxy-ssl-secret", "a/ca"),
    ("proxy-ssl-secret", "b/ca"),
    ("proxy-ssl-verify", "on"),
    ("allowlist-source-range", "10.0.0.0/8"),
    ("auth-url", "http://auth.test/"),
    ("affinity", "cookie"),
    ("default-backend", "s"),
    ("custom-headers", "a/headers"),
    ("custom-http-errors", "503"),
    ("server-snippet", "# of the server"),
    ("configuration-snippet", "# of the location"),
    ("force-ssl-redirect", "true"),
    // Takes the Ingress out.
    ("client-body-buffer-size", "much"),
    ("enable-access-log", "false"),
];

/// A path that is not taken.
const ODD: &str = "/etc/nginx";

/// An authority, so that references to Secrets can be kept.
const AUTHORITY: &str = include_str!("authority.pem");

/// The two tenants, and whether every Ingress of `a` is older than those of `b`.
#[derive(Clone)]
pub(crate) struct Sets {
    a: Vec<Ingress>,
    b: Vec<Ingress>,
    a_is_older: bool,
}

impl fmt::Debug for Sets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ingress in self.a.iter().chain(&self.b) {
            let Meta { key, created, annotations, .. } = &ingress.meta;
            write!(f, "{}/{} created {created}", key.namespace, key.name)?;
            for (name, value) in annotations {
                write!(f, " {}={value}", name.rsplit('/').next().unwrap_or(name))?;
            }
            for rule in &ingress.rules {
                write!(f, " host {:?}", rule.host)?;
                for path in rule.paths.iter().flatten() {
                    write!(f, " {:?} {}", path.kind, path.path)?;
                }
            }
            let (default, tls) = (ingress.default_backend.is_some(), !ingress.tls.is_empty());
            writeln!(f, " default {default} tls {tls}")?;
        }
        Ok(())
    }
}

struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.next()) % all.len()]
    }
}

fn meta(namespace: &str, name: &str) -> Meta {
    Meta {
        key: ObjectKey::new(namespace, name),
        uid: "".into(),
        created: 0,
        generation: 0,
        resource_version: "".into(),
        annotations: BTreeMap::new(),
    }
}

impl Sets {
    /// Reads any bytes.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut bytes = Bytes(bytes.iter());
        let a_is_older = bytes.next().is_multiple_of(2);
        let mut of = |namespace: &str| {
            let count = 1 + bytes.next() % 3;
            let mut made = Vec::new();
            for number in 0..count {
                let mut ingress = ingress(&mut bytes, namespace, number);
                if a_is_older && namespace == "b" {
                    ingress.meta.created += 10;
                }
                made.push(ingress);
            }
            made
        };
        Self { a: of("a"), b: of("b"), a_is_older }
    }

    /// Panics where something of `a` depends on `b`.
    pub(crate) fn check(&self) {
        let alone = translated(self.a.iter());
        let both = translated(self.a.iter().chain(&self.b));
        for (name, server) in &alone.servers {
            let Some(now) = both.servers.get(name) else { panic!("host {name} of a is gone") };
            for location in server.locations.iter().filter(|location| is_of(location, "a")) {
                self.same_location(name, location, (&alone, &both), now);
            }
            if self.a_is_older && self.a.iter().any(|ingress| claims(ingress, name)) {
                self.same_host(server, now, (&alone, &both));
            }
        }
    }

    /// Whoever has a path, has it as before; one that closes is closed.
    fn same_location(
        &self,
        host: &ServerName,
        before: &Location,
        (alone, both): (&Configuration, &Configuration),
        now: &Server,
    ) {
        let same = |other: &&Arc<Location>| other.path == before.path && other.kind == before.kind;
        let found = now.locations.iter().find(same).filter(|location| is_of(location, "a"));
        let place = format!("{host} {} {:?}\n{self:?}", before.path, before.kind);
        let Some(found) = found else {
            // A root that nobody wrote is for others to add.
            assert!(!self.a_is_older || before.service.is_none(), "a lost {place}");
            return;
        };
        // Another Ingress of a's may have the path where b's is older than the one that has it alone.
        let moved = found.origin != before.origin || self.stands_in(host, found);
        if (moved || matches!(found.backend, Backend::Denied(_))) && !self.a_is_older {
            return;
        }
        // A snippet of the server is that of its owner.
        let policy = |location: &Location| {
            let mut policy = model::policy::Policy::clone(&location.policy);
            if let Some(raw) = policy.raw.as_mut().filter(|_| !self.a_is_older) {
                raw.server = None;
            }
            policy
        };
        assert!(
            policy(found) == policy(before),
            "{:?} {:?} {place}",
            policy(found),
            policy(before)
        );
        assert_eq!(found.canary, before.canary, "{place}");
        assert_eq!(behind(both, &found.backend), behind(alone, &before.backend), "{place}");
    }

    /// Whether a root is not the path `/` of its Ingress, which is not served where b's is older, but what the Ingress
    /// says for everything else, or the root that nobody wrote.
    fn stands_in(&self, host: &ServerName, found: &Location) -> bool {
        let writes_root = |ingress: &Ingress| {
            let rules = ingress.rules.iter().filter(|rule| is_for(rule, host));
            rules.flat_map(|rule| rule.paths.iter().flatten()).any(|path| path.path == "/")
        };
        let mut own = self.a.iter().filter(|ingress| {
            let key = &ingress.meta.key;
            found.origin.as_ref().is_some_and(|origin| origin.name == key.name)
        });
        found.path == "/"
            && own.any(|own| {
                let default = match own.default_backend.as_deref() {
                    Some(IngressBackend::Service { name, .. }) => Some(name),
                    _ => None,
                };
                let leads_to = found.service.as_ref().map(|service| &*service.name);
                let mut others =
                    self.b.iter().filter(|other| other.meta.created <= own.meta.created);
                let is_written = leads_to.is_some() && default.map(|name| &**name) != leads_to;
                !is_written && others.any(writes_root)
            })
    }

    /// What concerns a whole host that is a's.
    fn same_host(
        &self,
        before: &Server,
        now: &Server,
        (alone, both): (&Configuration, &Configuration),
    ) {
        let place = || format!("{}\n{self:?}", before.name);
        assert_eq!(now.regex, before.regex, "{}", place());
        self.same_routes(before, now);
        assert_eq!(now.certificate, before.certificate, "{}", place());
        assert_eq!(now.client_certificate, before.client_certificate, "{}", place());
        assert_eq!(now.ciphers, before.ciphers, "{}", place());
        let passthrough = |all, server: &Server| {
            server.passthrough.clone().map(|id| behind(all, &Backend::Upstream(id)))
        };
        assert_eq!(passthrough(both, now), passthrough(alone, before), "{}", place());
        let root = now.locations.iter().find(|location| location.path == "/");
        if before.app_root.is_some() || root.is_some_and(|root| is_of(root, "a")) {
            assert_eq!(now.app_root, before.app_root, "{}", place());
        }
        let hosts: BTreeSet<&str> = self
            .b
            .iter()
            .flat_map(|ingress| &ingress.rules)
            .filter_map(|rule| rule.host.as_deref())
            .collect();
        let wildcards =
            hosts.iter().any(|host| host.starts_with('*') || host.is_empty() || *host == "_")
                || self.b.iter().any(|ingress| {
                    ingress.rules.is_empty() || ingress.rules.iter().any(|rule| rule.host.is_none())
                });
        for alias in &now.aliases {
            assert!(before.aliases.contains(alias), "{alias} is b's wish: {}", place());
        }
        for alias in before.aliases.iter().filter(|alias| !now.aliases.contains(alias)) {
            let is_host = match alias {
                Alias::Name(name) => hosts.contains(name.as_str()),
                _ => wildcards,
            };
            assert!(is_host, "{alias} is lost: {}", place());
        }
        if now.www != before.www {
            let lost = before.www.as_ref().is_some_and(|www| hosts.contains(www.as_str()));
            assert!(lost && now.www.is_none(), "www: {}", place());
        }
    }

    /// Requests go where they went, or to something of `b` that is deeper.
    fn same_routes(&self, before: &Server, now: &Server) {
        let find = |locations: &Locations, server: &Server, path: &str| {
            let canonical = route::path::canonical(path.as_bytes()).expect("a valid path");
            match locations.find(&canonical, &Steps::default()) {
                Found::Location { index } => Some((Arc::clone(&server.locations[index]), false)),
                Found::AddSlash { index } => Some((Arc::clone(&server.locations[index]), true)),
                Found::TooHard { .. } => panic!("{path} takes more steps than a request has"),
                Found::None => None,
            }
        };
        let (old, new) = (Locations::compile(before), Locations::compile(now));
        for path in REQUESTS {
            let Some((was, _)) = find(&old, before, path) else { continue };
            // A root that nobody wrote.
            let is_nobodys = was.service.is_none();
            let is = find(&new, now, path)
                .filter(|(is, _)| is_of(is, "b") || is.path != was.path || is.kind != was.kind);
            let Some((is, adds_slash)) = is.filter(|_| !is_nobodys) else { continue };
            // The redirect to a folder is that of an Exact path there, even if what is below brings it.
            let below =
                |other: &&Arc<Location>| is_of(other, "b") && start(&other.path) == start(&is.path);
            let is_bs =
                is_of(&is, "b") || (adds_slash && now.locations.iter().any(|other| below(&other)));
            let is_deeper = is_bs && start(&is.path).len() > start(&was.path).len();
            assert!(
                is_deeper,
                "{path} of {} goes to {} {:?}, not {} {:?}\n{self:?}",
                now.name, is.path, is.kind, was.path, was.kind
            );
        }
    }
}

/// What a path begins with whatever it matches, without a final slash.
fn start(path: &str) -> &str {
    let end = path.find(|character: char| "\\+*?()[]{}|^$".contains(character));
    let fixed = end.map_or(path, |end| path[..end].strip_suffix('.').unwrap_or(&path[..end]));
    fixed.strip_suffix('/').unwrap_or(fixed)
}

fn is_of(location: &Location, namespace: &str) -> bool {
    location.origin.as_deref().is_some_and(|origin| &*origin.namespace == namespace)
}

fn is_canary(ingress: &Ingress) -> bool {
    ingress.meta.annotations.contains_key("nginx.ingress.kubernetes.io/canary")
}

fn is_for(rule: &IngressRule, host: &ServerName) -> bool {
    rule.host.as_deref().unwrap_or(ServerName::catch_all().as_str()) == host.as_str()
}

fn claims(ingress: &Ingress, host: &ServerName) -> bool {
    let all = ServerName::catch_all();
    let is_taken = |path: &IngressPath| path.path != ODD;
    let named = |rule: &&IngressRule| is_for(rule, host);
    let mut rules = ingress.rules.iter().filter(named).filter_map(|rule| rule.paths.as_ref());
    let by_rule = rules.any(|paths| paths.is_empty() || paths.iter().any(is_taken));
    let by_default = ingress.rules.is_empty() && ingress.default_backend.is_some() && *host == all;
    !is_canary(ingress) && (by_rule || by_default)
}

/// Names of upstreams may differ, what is behind them may not.
fn behind(configuration: &Configuration, backend: &Backend) -> String {
    match backend {
        Backend::Upstream(id) => {
            let upstream = configuration.upstreams.get(id).expect("every upstream exists");
            format!("{:?} {:?}", upstream.endpoints, upstream.external)
        }
        other => format!("{other:?}"),
    }
}

fn ingress(bytes: &mut Bytes<'_>, namespace: &str, number: u8) -> Ingress {
    let mut meta = meta(namespace, &format!("i{number}"));
    meta.created = i64::from(bytes.next() % 4);
    for _ in 0..bytes.next() % 5 {
        let (name, value) = bytes.of(ANNOTATIONS);
        // What is another namespace's is a mistake of its own.
        let value = value.replace("a/", &format!("{namespace}/"));
        meta.annotations.insert(format!("nginx.ingress.kubernetes.io/{name}"), value);
    }
    let service = |bytes: &mut Bytes<'_>| IngressBackend::Service {
        name: bytes.of(&["s", "t"]).to_owned(),
        port: Some(PortRef::Number(80)),
    };
    let mut rules = Vec::new();
    for _ in 0..bytes.next() % 3 {
        let host = bytes.of(HOSTS);
        let mut paths = Vec::new();
        for _ in 0..bytes.next() % 4 {
            let kind =
                bytes.of(&[PathType::Prefix, PathType::Exact, PathType::ImplementationSpecific]);
            let path = bytes.of(PATHS).to_owned();
            paths.push(IngressPath { path, kind, backend: service(bytes) });
        }
        rules.push(IngressRule {
            host: (!host.is_empty()).then(|| host.to_owned()),
            paths: Some(paths),
        });
    }
    let tls = match bytes.next() % 4 {
        0 => vec![IngressTls { hosts: vec!["a.test".to_owned()], secret: Some("ca".to_owned()) }],
        _ => Vec::new(),
    };
    let default_backend = bytes.next().is_multiple_of(4).then(|| Box::new(service(bytes)));
    Ingress {
        meta,
        class: Some("nginx".to_owned()),
        default_backend,
        rules,
        tls,
        addresses: Vec::new(),
    }
}

fn translated<'a>(ingresses: impl Iterator<Item = &'a Ingress>) -> Configuration {
    let mut snapshot = Snapshot::default();
    let class =
        IngressClass { meta: meta("", "nginx"), controller: "k8s.io/ingress-nginx".to_owned() };
    snapshot.classes.get_or_insert_default().insert(class.meta.key.clone(), Arc::new(class));
    for namespace in ["a", "b"] {
        for name in ["s", "t"] {
            let service = external(namespace, name);
            snapshot.services.insert(service.meta.key.clone(), Arc::new(service));
        }
        let data = [("ca.crt".to_owned(), AUTHORITY.as_bytes().to_vec())].into();
        let secret =
            Secret { meta: meta(namespace, "ca"), kind: "Opaque".to_owned(), data: Some(data) };
        snapshot.secrets.insert(secret.meta.key.clone(), Arc::new(secret));
        let data = [("X-One".to_owned(), namespace.to_owned())].into();
        let headers = ConfigMap { meta: meta(namespace, "headers"), data };
        snapshot.config_maps.insert(headers.meta.key.clone(), Arc::new(headers));
    }
    let data = [
        ("global-allowed-response-headers", "X-One"),
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Critical"),
    ];
    let data = data.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let settings = ConfigMap { meta: meta("system", "settings"), data };
    snapshot.config_maps.insert(settings.meta.key.clone(), Arc::new(settings));
    for ingress in ingresses {
        snapshot.ingresses.insert(ingress.meta.key.clone(), Arc::new(ingress.clone()));
    }
    let config_map = Some(ObjectKey::new("system", "settings"));
    let options = Options { config_map, passthrough: true, raw: true, ..Options::default() };
    translate(&snapshot, &options).configuration
}

/// Each Service is another name outside of the cluster, which tells them apart.
fn external(namespace: &str, name: &str) -> Service {
    Service {
        meta: meta(namespace, name),
        kind: "ExternalName".to_owned(),
        cluster_ip: None,
        external_name: Some(format!("{name}.{namespace}.example")),
        external_ips: Vec::new(),
        addresses: Vec::new(),
        traffic_distribution: None,
        made_for: None,
        ports: Vec::new(),
    }
}
