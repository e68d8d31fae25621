//! One server from all Ingresses that have a word in it: who owns which path, which certificate, which backend.

mod canary;
mod passthrough;
mod tls;

pub(crate) use canary::beside_nobody;

use crate::ingress::{Draft, Ground, Rank, Route, Standing, Target, origin};
use crate::pattern_budget::{PatternBudget, Refused, stand_in};
use kubernetes::objects::{Ingress, ObjectKey};
use model::policy::{Access, Policy, Protocol, TlsRedirect, UpstreamTls};
use model::{
    Backend, Certificate, CertificateId, Location, Origin, PathKind, Pattern, Problem, Server,
    ServerName, Severity, UpstreamId,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// What a server needs to know of the rest of the cluster.
pub(crate) trait Surroundings {
    /// The upstream's name of a target.
    fn upstream(&self, target: &Target) -> UpstreamId;
    /// The certificate in a Secret, or what is wrong with it.
    fn certificate(&mut self, secret: &ObjectKey) -> Result<Arc<Certificate>, String>;
}

/// The server of a host.
pub(crate) fn server(
    name: &ServerName,
    drafts: &BTreeMap<Rank, Arc<Draft>>,
    ground: &Ground,
    default: &Backend,
    surroundings: &mut impl Surroundings,
) -> (Server, Vec<Problem>) {
    let mut host = Host {
        name,
        ground,
        claims: HashMap::new(),
        locations: Vec::new(),
        regex: false,
        problems: Vec::new(),
    };
    let is_catch_all = *name == ServerName::catch_all();
    if is_catch_all {
        host.catch_all(drafts, Standing::Taken, surroundings);
    }
    for draft in drafts.values() {
        for route in draft.hosts.get(name).into_iter().flatten() {
            host.route(draft, route, surroundings);
        }
    }
    if is_catch_all {
        host.catch_all(drafts, Standing::Rejected, surroundings);
    }
    host.root(drafts, default, surroundings);
    host.overlaps();
    let patterns = host.patterns();
    host.of_the_host(drafts);
    host.locations = canary::attach(name, drafts, host.locations, surroundings, &mut host.problems);
    let certificate = host.certificate(drafts, surroundings);
    let client_certificate = tls::client_certificate(name, drafts, &mut host.problems);
    let ciphers = tls::ciphers(drafts);
    let passthrough = host.passthrough(drafts);
    let Host { locations, regex, problems, .. } = host;
    let own = Server { passthrough, ..Server::new(name.clone()) };
    let server =
        Server { certificate, client_certificate, ciphers, regex, patterns, locations, ..own };
    (server, problems)
}

struct Host<'a> {
    name: &'a ServerName,
    ground: &'a Ground,
    /// Who has which path.
    claims: HashMap<(PathKind, String), ObjectKey>,
    locations: Vec<Arc<Location>>,
    regex: bool,
    problems: Vec<Problem>,
}

impl Host<'_> {
    fn problem(&mut self, ingress: &ObjectKey, key: &str, severity: Severity, message: String) {
        let key = Some(key.to_owned());
        self.problems.push(Problem { origin: origin(ingress), key, severity, message });
    }

    /// `/` of the catch-all server belongs to the first Ingress that is nothing but a default backend.
    fn catch_all(
        &mut self,
        drafts: &BTreeMap<Rank, Arc<Draft>>,
        standing: Standing,
        surroundings: &impl Surroundings,
    ) {
        let claim = (PathKind::Prefix, "/".to_owned());
        for draft in drafts.values().filter(|draft| draft.standing == standing) {
            let Some(route) = &draft.catch_all else { continue };
            let ingress = &draft.ingress.meta.key;
            let Some(owner) = self.claims.get(&claim).cloned() else {
                self.claims.insert(claim.clone(), ingress.clone());
                self.locations.push(with_upstreams(draft, route, surroundings));
                continue;
            };
            if standing == Standing::Taken {
                let message = format!(
                    "Ingress {}/{} is the catch-all already, this one is not served; \
                     name hosts in it or remove it",
                    owner.namespace, owner.name
                );
                self.problem(ingress, "spec.defaultBackend", Severity::Warning, message);
            }
        }
    }

    fn route(&mut self, draft: &Draft, route: &Route, surroundings: &impl Surroundings) {
        let location = &route.location;
        let ingress = &draft.ingress.meta.key;
        let claim = (location.kind, location.path.clone());
        if let Some(owner) = self.claims.get(&claim).cloned() {
            if draft.standing == Standing::Taken {
                let who = match owner == *ingress {
                    true => "this Ingress itself, further up,".to_owned(),
                    false => {
                        format!("Ingress {}/{}, which comes first,", owner.namespace, owner.name)
                    }
                };
                let message = format!(
                    "{who} has path {} ({:?}) of host {}, here it is not served; remove it from one of them",
                    location.path, location.kind, self.name
                );
                self.problem(ingress, "spec.rules", Severity::Warning, message);
            }
            return;
        }
        self.claims.insert(claim, ingress.clone());
        // What is not taken must not change how the paths of others match.
        self.regex |=
            route.regex && (draft.standing == Standing::Taken || self.locations.is_empty());
        self.locations.push(with_upstreams(draft, route, surroundings));
    }

    /// The implicit `/`: it has all policy of the Ingress that created the host.
    fn root(
        &mut self,
        drafts: &BTreeMap<Rank, Arc<Draft>>,
        default: &Backend,
        surroundings: &impl Surroundings,
    ) {
        if self.claims.contains_key(&(PathKind::Prefix, "/".to_owned())) {
            return;
        }
        let is_catch_all = *self.name == ServerName::catch_all();
        let creator = drafts
            .values()
            .find(|draft| draft.standing != Standing::Canary)
            .filter(|draft| draft.standing == Standing::Taken && !is_catch_all);
        let target = creator.and_then(|draft| draft.default.as_ref());
        let denied = match creator {
            Some(draft) => draft.denied.as_ref(),
            None => self.ground.denied.as_ref().or(self.ground.auth_denied.as_ref()),
        };
        let backend = match (denied, target) {
            (Some(reason), _) => Backend::Denied(reason.clone()),
            (None, Some(target)) => Backend::Upstream(surroundings.upstream(target)),
            (None, None) => default.clone(),
        };
        let mut policy = match creator {
            Some(draft) => named(draft, &draft.root.0, surroundings),
            None => Arc::clone(&self.ground.policy),
        };
        if is_catch_all {
            policy = Arc::new(of_the_catch_all(&policy, &backend));
        }
        if target.is_none()
            && (policy.protocol != Protocol::Http || policy.upstream_tls != UpstreamTls::default())
        {
            // The global default backend speaks plain HTTP, whatever the Ingress says of its own.
            let plain = Policy::clone(&policy);
            policy = Arc::new(Policy {
                protocol: Protocol::Http,
                upstream_tls: UpstreamTls::default(),
                ..plain
            });
        }
        if creator.is_none() && policy.tls_redirect != TlsRedirect::NEVER {
            let open = Policy::clone(&policy);
            policy = Arc::new(Policy { tls_redirect: TlsRedirect::NEVER, ..open });
        }
        self.regex |= creator.is_some_and(|draft| draft.root.1);
        self.locations.push(Arc::new(Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend,
            canary: None,
            service: target.and_then(Target::service_ref),
            origin: creator.map(|draft| origin(&draft.ingress.meta.key)),
            policy,
        }));
    }

    /// `/p` and `/p/` share a location: the older one has it (compat/decisions.md row 3).
    fn overlaps(&mut self) {
        if self.regex {
            return;
        }
        let mut found = Vec::new();
        let mut seen: HashMap<&str, &Arc<Location>> = HashMap::new();
        for location in self
            .locations
            .iter()
            .filter(|location| location.kind == PathKind::Prefix && location.path != "/")
        {
            let bare = location.path.strip_suffix('/').unwrap_or(&location.path);
            let Some(first) = seen.get(bare) else {
                seen.insert(bare, location);
                continue;
            };
            if let (Some(owner), Some(origin)) = (&first.origin, &location.origin) {
                let message = format!(
                    "path {} of host {} shares {bare}/ with path {} of {owner}, which comes first and has it; \
                     write one of the two",
                    location.path, self.name, first.path
                );
                let key = Some("spec.rules".to_owned());
                found.push(Problem {
                    origin: origin.clone(),
                    key,
                    severity: Severity::Warning,
                    message,
                });
            }
        }
        self.problems.extend(found);
    }

    /// In regex mode a path that is no regular expression is left out; one that would take too much memory is closed,
    /// with everything that starts like it.
    fn patterns(&mut self) -> Vec<Pattern> {
        if !self.regex {
            return Vec::new();
        }
        let (mut patterns, mut closed) = (Vec::new(), HashSet::new());
        let mut budgets: HashMap<Option<Origin>, PatternBudget> = HashMap::new();
        for location in std::mem::take(&mut self.locations) {
            let (path, host) = (&location.path, self.name);
            if !budgets.contains_key(&location.origin) {
                let beside = PatternBudget::beside(budgets.values());
                budgets.insert(location.origin.clone(), beside);
            }
            let budget = budgets.get_mut(&location.origin).expect("it was just inserted");
            let refused = match budget.path(path) {
                Ok(pattern) => {
                    if pattern.as_ref().is_some_and(Pattern::is_catastrophic) {
                        let message = format!(
                            "path {path} of host {host} is a regular expression that backtracks without end on some \
                             paths, which are then answered 500; write it without nested repetition"
                        );
                        self.path_problem(&location, Severity::Warning, message);
                    }
                    patterns.extend(pattern);
                    self.locations.push(location);
                    continue;
                }
                Err(refused) => refused,
            };
            match refused {
                Refused::Invalid(reason) => {
                    let message = format!(
                        "path {path} of host {host} is left out: the paths of this host are regular expressions, and \
                         it is none ({reason})"
                    );
                    self.path_problem(&location, Severity::Error, message);
                }
                Refused::TooLarge(reason) => {
                    if budget.is_news() {
                        let message = format!(
                            "path {path} of host {host}, and others after it, are closed: {reason}"
                        );
                        self.path_problem(&location, Severity::Error, message);
                    }
                    if let Some(start) =
                        stand_in(path).filter(|start| closed.insert((*start).to_owned()))
                    {
                        let path = start.to_owned();
                        let backend = Backend::Denied(reason);
                        let closed =
                            Location { path, backend, canary: None, ..Location::clone(&location) };
                        self.locations.push(Arc::new(closed));
                    }
                }
            }
        }
        patterns
    }

    fn path_problem(&mut self, location: &Location, severity: Severity, message: String) {
        let key = Some("spec.rules".to_owned());
        let problem =
            location.origin.clone().map(|origin| Problem { origin, key, severity, message });
        self.problems.extend(problem);
    }

    /// What one Ingress asks for and the whole host gets.
    fn of_the_host(&mut self, drafts: &BTreeMap<Rank, Arc<Draft>>) {
        let taken = || drafts.values().filter(|draft| draft.standing == Standing::Taken);
        if self.ground.permissions.upstream_tls_by_location {
            return;
        }
        let Some(tls) = taken().find_map(|draft| draft.upstream_tls.as_ref()) else { return };
        for location in &mut self.locations {
            let policy = &location.policy;
            let speaks = matches!(policy.protocol, Protocol::Https | Protocol::AutoHttp);
            if speaks && policy.upstream_tls == UpstreamTls::default() {
                let policy = Policy { upstream_tls: tls.clone(), ..Policy::clone(policy) };
                Arc::make_mut(location).policy = Arc::new(policy);
            }
        }
    }

    /// The first Ingress of the host with a TLS section decides (compat/behaviour.md section 11).
    fn certificate(
        &mut self,
        drafts: &BTreeMap<Rank, Arc<Draft>>,
        surroundings: &mut impl Surroundings,
    ) -> Option<CertificateId> {
        if *self.name == ServerName::catch_all() {
            return None;
        }
        let mut taken = drafts.values().filter(|draft| draft.standing == Standing::Taken);
        let ingress = &taken.find(|draft| !draft.ingress.tls.is_empty())?.ingress;
        let Some(secret) = secret_for(self.name.as_str(), ingress, surroundings) else {
            let message = format!(
                "no Secret of the TLS sections is for host {}, which has the default certificate; list it beside its Secret",
                self.name
            );
            self.problem(&ingress.meta.key, "spec.tls", Severity::Notice, message);
            return Some(CertificateId::of_default());
        };
        let wrong = match surroundings.certificate(&secret) {
            Ok(certificate) if certificate.covers(self.name.as_str()) => {
                return Some(certificate.id.clone());
            }
            Ok(certificate) => {
                format!("is for {}, not for {}", certificate.names.join(", "), self.name)
            }
            Err(wrong) => wrong,
        };
        let message = format!(
            "Secret {}/{} {wrong}; host {} has the default certificate",
            secret.namespace, secret.name, self.name
        );
        self.problem(&ingress.meta.key, "spec.tls", Severity::Warning, message);
        Some(CertificateId::of_default())
    }
}

/// Policy of the catch-all without an Ingress: it never redirects, and what answers 404 by itself guards nothing
/// (compat/behaviour.md section 6).
fn of_the_catch_all(policy: &Policy, backend: &Backend) -> Policy {
    let tls_redirect = TlsRedirect { with_certificate: false, ..TlsRedirect::default() };
    let access = match backend {
        Backend::NotFound => Access::default(),
        Backend::Upstream(_) | Backend::Denied(_) => policy.access.clone(),
    };
    Policy { tls_redirect, access, ..policy.clone() }
}

/// The Secret of the first TLS section that lists the host, else of the first one whose certificate covers it.
fn secret_for(
    host: &str,
    ingress: &Ingress,
    surroundings: &mut impl Surroundings,
) -> Option<ObjectKey> {
    let key = |name: &String| {
        (!name.is_empty())
            .then(|| ObjectKey::new(Arc::clone(&ingress.meta.key.namespace), name.as_str()))
    };
    let lists = |hosts: &[String]| hosts.iter().any(|listed| listed.eq_ignore_ascii_case(host));
    if let Some(section) = ingress.tls.iter().find(|section| lists(&section.hosts)) {
        return section.secret.as_ref().and_then(key);
    }
    let secrets = ingress.tls.iter().filter_map(|section| section.secret.as_ref()).filter_map(key);
    let mut covering = secrets
        .filter(|secret| surroundings.certificate(secret).is_ok_and(|found| found.covers(host)));
    covering.next()
}

/// The location of a route, with the names that its upstreams have in this cluster.
fn with_upstreams(draft: &Draft, route: &Route, surroundings: &impl Surroundings) -> Arc<Location> {
    let id = surroundings.upstream(&route.target);
    let policy = named(draft, &route.location.policy, surroundings);
    let backend = match &route.location.backend {
        Backend::Upstream(plain) if *plain != id => Backend::Upstream(id),
        _ if Arc::ptr_eq(&policy, &route.location.policy) => return Arc::clone(&route.location),
        backend => backend.clone(),
    };
    Arc::new(Location { backend, policy, ..Location::clone(&route.location) })
}

/// A policy with the name that its default backend has in this cluster. Those that URLs name are unique by themselves.
fn named(draft: &Draft, policy: &Arc<Policy>, surroundings: &impl Surroundings) -> Arc<Policy> {
    let Some(plain) = &policy.default_backend else { return Arc::clone(policy) };
    let target = draft.extra.iter().find(|target| target.id() == *plain);
    let id = target.map(|target| surroundings.upstream(target)).filter(|id| id != plain);
    let Some(id) = id else { return Arc::clone(policy) };
    let mut renamed = Policy::clone(policy);
    if let Some(own) = renamed.errors.as_mut().and_then(|errors| errors.backend.as_mut()) {
        *own = id.clone();
    }
    renamed.default_backend = Some(id);
    Arc::new(renamed)
}
