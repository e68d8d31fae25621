//! One server from all Ingresses that have a word in it: who owns which path, which certificate, which backend.

pub(crate) mod canary;
mod halves;
mod owners;
mod pages;
mod passthrough;
mod roots;
mod sections;
mod shut;
mod snippets;
mod starts;
mod tls;
mod unguarded;

pub(crate) use canary::beside_nobody;
pub(crate) use owners::{heard, heard_or_not, not_heard, owner, unheard};
pub(crate) use sections::Sections;

use objects::ObjectKey;
use owners::{Owners, with_a_word};
use roots::{of_the_catch_all, towards_the_default};
use shut::{Shut, Waived};

use crate::certificate::Judged;
use crate::ingress::{Draft, Drafts, Ground, Route, Standing, Target, origin};
use crate::pattern_budget::{HostBudgets, Refused};
use crate::tenancy::Item;
use model::policy::{Policy, Protocol, TlsRedirect, UpstreamTls};
use model::{
    Backend, Location, Message, Origin, PathKind, Pattern, PatternError, Problem, Server,
    ServerName, Severity, UpstreamId, Why,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a server needs to know of the rest of the cluster.
pub(crate) trait Surroundings {
    /// The upstream's name of a target.
    fn upstream(&self, target: &Target) -> UpstreamId;
    /// The certificate in a Secret, or what is wrong with it.
    fn certificate(&mut self, secret: &ObjectKey) -> Result<Arc<Judged>, Message>;
    /// The TLS sections of an Ingress with many hosts, as they were put aside for the next one of these.
    fn take_sections(&mut self, ingress: &ObjectKey) -> Option<Sections>;
    /// Puts them aside.
    fn put_sections(&mut self, ingress: &ObjectKey, sections: Sections);
}

/// The server of a host.
pub(crate) fn server(
    name: &ServerName,
    drafts: &Drafts,
    ground: &Ground,
    default: &Backend,
    surroundings: &mut impl Surroundings,
) -> (Server, Vec<Problem>) {
    let mut host = Host {
        name,
        ground,
        owner: owner(name, drafts).cloned(),
        claims: HashMap::new(),
        locations: Vec::new(),
        regex: false,
        waived: Vec::new(),
        shut: Vec::new(),
        bare: Vec::new(),
        problems: Vec::new(),
    };
    let allowed = ground.permissions.cross_namespace;
    let mut owners = Owners::of(name, drafts, allowed);
    let won = host.won(&owners, drafts);
    let won = host.leave_to_owners(&mut owners, won);
    host.locations =
        won.into_iter().map(|(draft, route)| with_upstreams(draft, route, surroundings)).collect();
    let passed_through = host.passed_through(drafts);
    host.root(drafts, default, surroundings);
    host.overlaps();
    let patterns = host.patterns(drafts);
    host.of_nobody();
    host.close(drafts);
    host.locations_within(drafts);
    host.of_the_host(drafts);
    let raw = host.server_snippets(drafts);
    let snippet = host.snippet(drafts, surroundings);
    host.locations =
        canary::attach(name, drafts, host.locations, allowed, surroundings, &mut host.problems);
    let certificate = host.certificate(drafts, surroundings);
    let client_certificate = host.client_certificate(drafts);
    host.lost_guards(drafts, client_certificate.as_ref());
    host.close_bare();
    host.cut();
    host.pages(client_certificate.as_ref());
    let ciphers = host.ciphers(drafts);
    let passthrough = passed_through.and_then(|kind| host.passthrough(kind));
    let owner = host.owner.take().filter(|_| !allowed.allows(Item::Certificate));
    let Host { mut locations, regex, problems, .. } = host;
    locations.shrink_to_fit();
    let own = Server { owner, passthrough, snippet, raw, ..Server::new(name.clone()) };
    let server =
        Server { certificate, client_certificate, ciphers, regex, patterns, locations, ..own };
    (server, problems)
}

/// A path and its Ingress.
type Won<'a> = (&'a Draft, &'a Route);

struct Host<'a> {
    name: &'a ServerName,
    ground: &'a Ground,
    /// The namespace that owns it.
    owner: Option<Arc<str>>,
    /// Who has which path.
    claims: HashMap<(PathKind, String), ObjectKey>,
    locations: Vec<Arc<Location>>,
    regex: bool,
    /// Paths that are those of an older Ingress of another namespace.
    waived: Vec<Waived>,
    /// Paths that are not served, and of which nobody else is to have the requests.
    shut: Vec<Shut>,
    /// What such paths without a final slash are where whoever has it with one is closed.
    bare: Vec<Arc<Location>>,
    problems: Vec<Problem>,
}

impl Host<'_> {
    fn problem(
        &mut self,
        ingress: &ObjectKey,
        key: &str,
        severity: Severity,
        message: impl Into<Message>,
    ) {
        let key = Some(key.to_owned());
        let message = message.into();
        self.problems.push(Problem { origin: origin(ingress), key, severity, message });
    }

    /// Who has which path, in the order of age: of the Ingresses of its owner the first that is taken, or waits for
    /// room and has it closed. `/` of the catch-all server belongs to the first of them that is nothing but a default
    /// backend.
    fn won<'a>(&mut self, owners: &Owners<'_>, drafts: &'a Drafts) -> Vec<Won<'a>> {
        let is_catch_all = *self.name == ServerName::catch_all();
        let all = |passed_over| {
            let creates = |draft: &&Arc<Draft>| {
                matches!(draft.standing, Standing::Taken | Standing::Rejected)
            };
            let drafts = drafts
                .values()
                .filter(creates)
                .filter(move |draft| is_catch_all && draft.is_passed_over() == passed_over);
            drafts.filter_map(|draft| Some((&**draft, draft.catch_all.as_ref()?)))
        };
        let mut won: Vec<Won<'a>> = Vec::new();
        for (draft, route) in all(false) {
            self.claim(owners, draft, route, true, &mut won);
        }
        for draft in drafts.values() {
            for route in draft.hosts.get(self.name).into_iter().flatten() {
                self.claim(owners, draft, route, false, &mut won);
            }
        }
        for (draft, route) in all(true) {
            self.claim(owners, draft, route, true, &mut won);
        }
        // The root that its owner did not write matches by regular expressions even if somebody else wrote one.
        let root = self.claims.get(&(PathKind::Prefix, "/".to_owned()));
        if root.is_none_or(|root| Some(&root.namespace) != self.owner.as_ref()) {
            self.regex |= self.before(drafts).is_some_and(|creator| creator.root.1);
        }
        won
    }

    fn claim<'a>(
        &mut self,
        owners: &Owners<'_>,
        draft: &'a Draft,
        route: &'a Route,
        is_default: bool,
        won: &mut Vec<Won<'a>>,
    ) {
        let location = &route.location;
        let ingress = &draft.ingress.meta.key;
        let stranger = owners.stranger(draft, location.kind, &location.path);
        let stranger = stranger.map(|other| other.ingress.meta.key.clone());
        let claim = (location.kind, location.path.clone());
        let is_first = stranger.is_some() || !self.claims.contains_key(&claim);
        // How the paths of the host match is its owner's to say, be the Ingress that says it taken or not, and whoever
        // has its path: else a mistake of his, or a path of somebody else, made mere texts of guarded expressions.
        self.regex |= is_first && route.regex && self.is_heard(draft, Item::Regex);
        let Some(owner) = stranger.or_else(|| self.claims.get(&claim).cloned()) else {
            self.claims.insert(claim, ingress.clone());
            won.push((draft, route));
            return;
        };
        if owner.namespace != ingress.namespace && draft.may_guard() {
            let (location, regex, first) = (Arc::clone(location), route.regex, owner.clone());
            self.waived.push(Waived { location, regex, first });
        }
        if draft.standing != Standing::Taken {
            return;
        }
        let (key, message) = if is_default {
            let message = format!(
                "Ingress {}/{} is the catch-all already, this one is not served; name hosts in it or remove it",
                owner.namespace, owner.name
            );
            ("spec.defaultBackend", message)
        } else {
            let who = if owner == *ingress {
                "this Ingress itself, further up,".to_owned()
            } else {
                format!("Ingress {}/{}, which comes first,", owner.namespace, owner.name)
            };
            let message = format!(
                "{who} has path {} ({:?}) of host {}, here it is not served; remove it from one of them",
                location.path, location.kind, self.name
            );
            ("spec.rules", message)
        };
        self.problem(ingress, key, Severity::Warning, message);
    }

    /// The first Ingress of the owner.
    fn first<'a>(&self, drafts: &'a Drafts) -> Option<&'a Arc<Draft>> {
        let mut heard = drafts.values().filter(|draft| self.is_heard(draft, Item::Paths));
        heard.find(|draft| draft.standing != Standing::Canary)
    }

    /// The Ingress whose policy the implicit `/` has.
    fn creator<'a>(&self, drafts: &'a Drafts) -> Option<&'a Arc<Draft>> {
        self.before(drafts).filter(|draft| draft.standing == Standing::Taken)
    }

    /// The Ingress whose policy the implicit `/` has where that does not wait for room.
    fn before<'a>(&self, drafts: &'a Drafts) -> Option<&'a Arc<Draft>> {
        let is_catch_all = *self.name == ServerName::catch_all();
        self.first(drafts).filter(|draft| !is_catch_all && !draft.is_passed_over())
    }

    /// Whether an Ingress has a word in something that concerns the whole host.
    fn is_heard(&self, draft: &Draft, item: Item) -> bool {
        let owner = self.owner.as_ref();
        self.ground.permissions.cross_namespace.allows(item)
            || owner.is_none_or(|owner| *owner == draft.ingress.meta.key.namespace)
    }

    /// The implicit `/`: it has all policy of the Ingress that created the host.
    fn root(&mut self, drafts: &Drafts, default: &Backend, surroundings: &impl Surroundings) {
        let is_root =
            |location: &Arc<Location>| location.path == "/" && location.kind == PathKind::Prefix;
        if self.locations.iter().any(is_root) {
            return;
        }
        let is_catch_all = *self.name == ServerName::catch_all();
        let first = self.first(drafts);
        let creator = self.creator(drafts);
        let closed =
            first.filter(|draft| draft.standing == Standing::Rejected && draft.default.is_some());
        let target = creator.and_then(|draft| draft.default.as_deref());
        let denied = match creator {
            Some(draft) => draft.denied.as_deref(),
            None if closed.is_some() => closed.and_then(|draft| draft.denied.as_deref()),
            None => self.ground.denied.as_deref().or(self.ground.auth_denied.as_deref()),
        };
        let backend = match (denied, target) {
            (Some(reason), _) => Backend::Denied(reason.to_owned()),
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
        if target.is_none() {
            policy = towards_the_default(policy, &self.ground.policy.balance);
        } else if policy.balance.affinity.is_some() {
            // Sessions belong to the paths of rules (compat/behaviour.md section 9).
            policy = Arc::new(Policy::clone(&policy).without_sessions());
        }
        if creator.is_none() && policy.tls_redirect != TlsRedirect::NEVER {
            let open = Policy::clone(&policy);
            policy = Arc::new(Policy { tls_redirect: TlsRedirect::NEVER, ..open });
        }
        self.regex |= self.before(drafts).is_some_and(|draft| draft.root.1);
        self.locations.push(Arc::new(Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend,
            canary: None,
            service: target.and_then(Target::service_ref).map(Arc::new),
            origin: creator.map(|draft| Arc::clone(&draft.origin)),
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
                    origin: Origin::clone(origin),
                    key,
                    severity: Severity::Warning,
                    message: message.into(),
                });
            }
        }
        self.problems.extend(found);
    }

    /// In regex mode a path that is no regular expression is left out; one that is too large is closed, with every path
    /// that starts like it.
    fn patterns(&mut self, drafts: &Drafts) -> Vec<Pattern> {
        if !self.regex {
            return Vec::new();
        }
        self.shut_waiting(drafts);
        let mut patterns = Vec::new();
        let mut budgets = HostBudgets::default();
        for location in std::mem::take(&mut self.locations) {
            let (path, host) = (&location.path, self.name);
            let namespace = location.origin.as_ref().map(|origin| &origin.namespace);
            let is_owners = namespace == self.owner.as_ref();
            let (compiled, budget) = budgets.path(&location.origin, is_owners, path);
            let refused = match compiled {
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
                Refused::Invalid(PatternError { reason, of_ours }) => {
                    let (is, why) = if of_ours {
                        ("it is one that Fairway does not know", Why::TookIt)
                    } else {
                        // Nor did nginx take a configuration with it.
                        ("it is none", Why::NotTaken)
                    };
                    self.shut(&location, true, &format!("{is}: {reason}"));
                    let message = format!(
                        "path {path} of host {host} is left out: the paths of this host are regular expressions, and \
                         {is} ({reason})"
                    );
                    self.path_problem(&location, Severity::Error, why.says(message));
                }
                Refused::TooLarge(reason) => {
                    if budget.is_news() {
                        let message = format!(
                            "path {path} of host {host}, and others after it, are closed: {reason}"
                        );
                        self.path_problem(&location, Severity::Error, message);
                    }
                    self.shut_start(&location, reason);
                }
            }
        }
        patterns
    }

    fn path_problem(
        &mut self,
        location: &Location,
        severity: Severity,
        message: impl Into<Message>,
    ) {
        let key = Some("spec.rules".to_owned());
        let message = message.into();
        let origin = location.origin.as_deref().cloned();
        self.problems.extend(origin.map(|origin| Problem { origin, key, severity, message }));
    }

    /// What one Ingress asks for and all paths of its namespace get.
    fn of_the_host(&mut self, drafts: &Drafts) {
        if self.ground.permissions.upstream_tls_by_location {
            return;
        }
        let mut first: HashMap<&Arc<str>, &UpstreamTls> = HashMap::new();
        for draft in with_a_word(self.name, drafts) {
            if let Some(tls) = &draft.upstream_tls {
                first.entry(&draft.ingress.meta.key.namespace).or_insert(tls);
            }
        }
        for location in &mut self.locations {
            let namespace = location.origin.as_deref().map(|origin| &origin.namespace);
            let Some(tls) = namespace.and_then(|namespace| first.get(namespace)) else { continue };
            let policy = &location.policy;
            let speaks = matches!(policy.protocol, Protocol::Https | Protocol::AutoHttp);
            let own = &policy.upstream_tls;
            if speaks && own.authorities.is_empty() && !own.system {
                // A name and whether it is sent are its own, where it says so; whom to believe is the server's.
                let mut all = UpstreamTls::clone(tls);
                if *own != UpstreamTls::default() {
                    all.name = own.name.clone().or(all.name);
                    all.server_name = own.server_name;
                }
                let policy = Policy { upstream_tls: all, ..Policy::clone(policy) };
                Arc::make_mut(location).policy = Arc::new(policy);
            }
        }
    }

    /// Changes the locations of some Ingresses.
    fn change<'a>(
        &mut self,
        ingresses: impl Iterator<Item = &'a ObjectKey>,
        change: impl Fn(&mut Location),
    ) {
        let origins: HashSet<Origin> = ingresses.map(origin).collect();
        let is_one = |location: &Location| {
            location.origin.as_deref().is_some_and(|origin| origins.contains(origin))
        };
        for location in self.locations.iter_mut().filter(|_| !origins.is_empty()) {
            if is_one(location) {
                change(Arc::make_mut(location));
            }
        }
    }

    /// A problem with an annotation that is not heard.
    fn annotation(&mut self, ingress: &ObjectKey, name: &str, message: impl Into<Message>) {
        self.problem(ingress, name, Severity::Warning, message);
    }
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
    let policy = &snippets::named(draft, policy, surroundings);
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
