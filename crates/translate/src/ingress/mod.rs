//! What one Ingress asks for, before it meets the others: hosts, paths, backends, policy.

mod beside;
mod class;
mod drafts;
mod host_guards;
mod host_name;
mod identity;
mod inspect;
mod references;
mod target;
mod waiting;

pub(crate) use beside::BesideOthers;
use beside::guard;
pub(crate) use class::{
    CLASS_ANNOTATION, Classes, has_our_class, is_meant_alike, is_our_class, is_ours, is_watched,
    is_watched_namespace, why_not_ours,
};
pub(crate) use drafts::Drafts;
use host_guards::HostGuards;
pub(crate) use host_name::is_host;
pub(crate) use identity::{Age, origin};
pub(crate) use inspect::{Place, find as find_suspicious};
pub use references::references;
pub(crate) use references::{annotation_of, named, names_by_annotation};
pub(crate) use target::{Role, Target};
pub(crate) use waiting::Waits;

use crate::annotations::{self, Asked, CanaryAsked, Names, Rewriting, RewritingOfPath};
use crate::config_map::Permissions;
use crate::pattern_budget::{PatternBudget, Refused, stand_in};
use crate::settings::{Scope, Settings};
use crate::snippets::{ForAll, OfIngress};
use litemap::LiteMap;
use model::policy::{Policy, TlsRedirect, UpstreamTls};
use model::{
    Backend, Global, Location, Message, Origin, PathKind, Pattern, Problem, RESERVED_PATHS,
    ServerName, ServiceRef, Severity, Template, UpstreamId, Why,
};
use objects::{Ingress, IngressBackend, IngressPath, IngressRule, ObjectKey, PathType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the ConfigMap makes of everything.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ground {
    /// Settings of the process.
    pub(crate) global: Arc<Global>,
    /// Policy of what no Ingress owns.
    pub(crate) policy: Arc<Policy>,
    /// What the ConfigMap's snippets mean.
    pub(crate) snippets: Arc<ForAll>,
    /// What annotations may be.
    pub(crate) permissions: Permissions,
    /// Why every location is denied.
    pub(crate) denied: Option<String>,
    /// Why every location is denied that is not exempt from global authentication.
    pub(crate) auth_denied: Option<String>,
    /// `metadata.uid` of the ConfigMap; none where there is none.
    pub(crate) made_of: Option<Arc<str>>,
    /// The ConfigMaps that the ConfigMap names.
    pub(crate) config_maps: BTreeSet<ObjectKey>,
    /// `--enable-ssl-passthrough`.
    pub(crate) passthrough: bool,
    /// `--annotations-prefix`.
    pub(crate) annotations_prefix: String,
}

/// What becomes of an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is served.
    Taken,
    /// It is not; its own paths answer 503 unless somebody else has them.
    Rejected,
    /// It stands beside others: a canary.
    Canary,
    /// It creates nothing.
    Nothing,
}

/// A path of an Ingress.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Where its requests go; shared by paths that follow one another.
    pub(crate) target: Arc<Target>,
    /// Whether it makes the whole host match by regular expressions.
    pub(crate) regex: bool,
    /// What it is when no other Ingress takes the path.
    pub(crate) location: Arc<Location>,
    /// The path, compiled, where it is a regular expression.
    #[expect(dead_code, reason = "as long as it is kept, whoever compiles the path gets this one")]
    pub(crate) pattern: Option<Pattern>,
}

/// Hosts with what is of them in the order written. Most Ingresses have one, of which a tree keeps room for eleven.
pub(crate) type Hosts = LiteMap<ServerName, Vec<Route>>;

/// What one Ingress asks for.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The Ingress that this was read from.
    pub(crate) ingress: Arc<Ingress>,
    /// What its locations call it.
    pub(crate) origin: Arc<Origin>,
    /// What becomes of it.
    pub(crate) standing: Standing,
    /// Its hosts with their paths, in the order written.
    pub(crate) hosts: Hosts,
    /// `spec.defaultBackend`, for the implicit `/` of its hosts.
    pub(crate) default: Option<Box<Target>>,
    /// `spec.defaultBackend` of an Ingress without rules: `/` of the catch-all server.
    pub(crate) catch_all: Option<Box<Route>>,
    /// That it is a canary, and of which hosts' paths.
    pub(crate) canary: Option<Box<BesideOthers>>,
    /// Policy of the implicit `/`, and whether that is a regular expression.
    pub(crate) root: (Arc<Policy>, bool),
    /// Where requests for exactly `/` of its hosts are redirected to.
    pub(crate) app_root: Option<Template>,
    /// What its snippets mean for its hosts.
    pub(crate) snippets: OfIngress,
    /// What it may guard its hosts by.
    pub(crate) host_guards: HostGuards,
    /// Other names of its hosts.
    pub(crate) names: Names,
    /// Whether TLS connections to its hosts shall end at their Services.
    pub(crate) passthrough: bool,
    /// Upstreams that its policies name.
    pub(crate) extra: Box<[Target]>,
    /// Why its locations answer 503.
    pub(crate) denied: Option<Box<str>>,
    /// TLS towards upstreams for every path of its hosts, where it names authorities.
    pub(crate) upstream_tls: Option<Box<UpstreamTls>>,
    /// That it waits for room in the budget of its namespace.
    pub(crate) waits: Option<Waits>,
    /// Whether it asks for something that is not accepted, so that its last valid version is better.
    pub(crate) refused: bool,
    /// What is wrong with it.
    pub(crate) problems: Vec<Problem>,
}

/// What is said of a path that ingress-nginx leaves out, too.
pub(crate) const NO_SERVICE: &str =
    "its backend is not a Service, the path is left out; name a Service";

/// Hosts to which none is added, nor a route.
fn exactly(mut hosts: BTreeMap<ServerName, Vec<Route>>) -> Hosts {
    hosts.values_mut().for_each(Vec::shrink_to_fit);
    let mut sorted: Vec<_> = hosts.into_iter().collect();
    sorted.shrink_to_fit();
    LiteMap::from_sorted_store_unchecked(sorted)
}

/// What an Ingress is read with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) deep_inspect: bool,
    pub(crate) scope: Scope<'a>,
    pub(crate) ground: &'a Ground,
}

impl Draft {
    /// Reads an Ingress.
    pub(crate) fn read(ingress: &Arc<Ingress>, context: Context<'_>) -> Self {
        let origin = origin(&ingress.meta.key);
        let mut settings =
            Settings::of_ingress(context.scope, origin.clone(), &ingress.meta.annotations);
        let Asked { policy, snippets, rewriting, canary, app_root, names } =
            annotations::read(&mut settings, &context.ground.permissions.limits);
        let mut hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
        if let Some(host) = hosts.find(|host| host.starts_with("*.")) {
            annotations::refuse_wildcard(&mut settings, &names, host);
        }
        let names = annotations::with_aliases(&mut settings, names);
        let by_cluster_ip = annotations::by_cluster_ip(&mut settings);
        let passthrough = annotations::is_passed_through(&mut settings);
        let exempt = annotations::exempt_from_global_auth(&settings);
        let verdict = std::mem::take(&mut settings.verdict);
        let snippets_count = context.ground.permissions.limits.snippets;
        let host_guards = HostGuards::of(|name| settings.raw(name), snippets_count);
        let suspicion = inspect::suspicion(ingress).filter(|_| context.deep_inspect);
        let refused = suspicion.is_some() || !verdict.rejections.is_empty();
        let (mut problems, extra, _) = settings.finish();
        let ground = context.ground;
        let by_config_map =
            ground.denied.clone().or_else(|| ground.auth_denied.clone().filter(|_| !exempt));
        let standing = match refused {
            true if canary.is_some() => Standing::Nothing,
            true => Standing::Rejected,
            false if canary.is_some() => Standing::Canary,
            false => Standing::Taken,
        };
        let suspicious = suspicion
            .as_ref()
            .map(|_| "it looks like an attack on nginx (--deep-inspect)".to_owned());
        problems.extend(suspicion.map(|message| Problem {
            origin: origin.clone(),
            key: None,
            severity: Severity::Error,
            message,
        }));
        let reader = Reader {
            inspects: suspicious.is_some(),
            open: (&ground.permissions.open_paths, Arc::new(policy.clone().unauthenticated())),
            denied: suspicious.or(verdict.rejected()).or(verdict.denied).or(by_config_map),
            // Whoever asks for nothing shares what counts for all.
            policy: if policy == *ground.policy { ground.policy.clone() } else { Arc::new(policy) },
            origin: Arc::new(origin),
            rewriting,
            role: if by_cluster_ip { Role::ClusterIp } else { Role::Backend },
            waits: false,
        };
        let mut draft = reader.draft(ingress, standing, problems);
        if draft.standing == Standing::Canary {
            draft.stand_beside(canary);
            return draft;
        }
        draft.app_root = app_root;
        draft.snippets = snippets;
        draft.host_guards = host_guards;
        draft.names = names;
        draft.passthrough = passthrough;
        draft.refused = refused;
        if draft.standing != Standing::Nothing {
            draft.extra = extra.into_iter().collect();
        }
        draft
    }

    /// Its age among all of a host, taken or not.
    pub(crate) fn age(&self) -> Age {
        Age::of(&self.ingress)
    }

    /// Whether a mistake keeps it from being served, which makes room for the next one of its namespace.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.standing == Standing::Rejected && self.waits.is_none()
    }

    /// Whether it names a host as its own, be it taken or not.
    pub(crate) fn claims(&self, host: &ServerName) -> bool {
        let is_all = || self.catch_all.is_some() && *host == ServerName::catch_all();
        matches!(self.standing, Standing::Taken | Standing::Rejected)
            && (self.hosts.contains_key(host) || is_all())
    }

    /// Every backend that it refers to; none while it waits.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        let beside = self.canary.iter().flat_map(|asked| asked.hosts.values().flatten());
        let routes = self.hosts.values().flatten().chain(self.catch_all.as_deref()).chain(beside);
        let all = routes.map(|route| &*route.target).chain(self.default.as_deref());
        all.chain(&self.extra).filter(|_| self.waits.is_none())
    }

    /// A canary creates nothing: its paths are those of others, its default backend is beside that of the catch-all.
    fn stand_beside(&mut self, canary: Option<CanaryAsked>) {
        let mut hosts = std::mem::take(&mut self.hosts);
        if let Some(route) = self.catch_all.take() {
            hosts.entry(ServerName::catch_all()).or_default().push(*route);
        }
        self.default = None;
        let guard = guard(&self.ingress).cloned();
        self.canary = canary.map(|asked| Box::new(BesideOthers { asked, hosts, guard }));
    }

    /// Every server that it has a word in.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerName> {
        let catch_all = self.catch_all.as_ref().map(|_| ServerName::catch_all());
        let beside = self.canary.iter().flat_map(|asked| asked.hosts.keys());
        self.hosts.keys().chain(beside).cloned().chain(catch_all)
    }
}

/// Why a path below [`RESERVED_PATHS`] is closed.
fn reserved() -> String {
    format!("paths below {RESERVED_PATHS} are Fairway's own; write another one")
}

/// Where paths lead: made once for those that follow one another and lead to the same port, as most do.
struct Leads {
    target: Arc<Target>,
    id: UpstreamId,
    service: Option<Arc<ServiceRef>>,
}

impl Leads {
    fn to(target: Target) -> Self {
        Self { id: target.id(), service: target.service_ref().map(Arc::new), target: target.into() }
    }
}

/// What all paths of an Ingress share.
struct Reader<'a> {
    origin: Arc<Origin>,
    policy: Arc<Policy>,
    /// Prefixes of paths that nobody authenticates for, and the policy of those.
    open: (&'a [String], Arc<Policy>),
    rewriting: Rewriting,
    role: Role,
    denied: Option<String>,
    /// Whether hosts and paths that look like an attack are left out.
    inspects: bool,
    /// Whether it waits, so that nothing is compiled.
    waits: bool,
}

impl Reader<'_> {
    /// The policy of a path, but for its rewriting (`no-auth-locations`).
    fn policy_of(&self, path: &str) -> &Arc<Policy> {
        let (prefixes, open) = &self.open;
        if prefixes.iter().any(|prefix| path.starts_with(prefix)) { open } else { &self.policy }
    }

    fn draft(
        self,
        ingress: &Arc<Ingress>,
        standing: Standing,
        mut problems: Vec<Problem>,
    ) -> Draft {
        let mut hosts = BTreeMap::new();
        let mut catch_all = None;
        let mut default = None;
        if standing != Standing::Nothing {
            let mut budget = PatternBudget::of_ingress();
            for (index, rule) in ingress.rules.iter().enumerate() {
                self.rule(rule, index, &mut budget, &mut hosts, &mut problems);
            }
            default = ingress.default_backend.as_ref().and_then(|backend| self.target(backend));
            catch_all = default
                .as_ref()
                .filter(|_| ingress.rules.is_empty() || standing == Standing::Canary)
                .map(|target| self.catch_all(target));
        }
        let root = self.rewriting.of_path("/", PathKind::Prefix);
        let own = self.policy_of("/");
        let policy = match root.rewrite {
            Some(Ok(rewrite)) => Arc::new(Policy { rewrite: Some(rewrite), ..Policy::clone(own) }),
            _ => Arc::clone(own),
        };
        let authorities = &self.policy.upstream_tls.authorities;
        let upstream_tls =
            (!authorities.is_empty()).then(|| Box::new(self.policy.upstream_tls.clone()));
        Draft {
            passthrough: false,
            ingress: Arc::clone(ingress),
            origin: self.origin,
            standing,
            hosts: exactly(hosts),
            default: default.map(Box::new),
            catch_all: catch_all.map(Box::new),
            canary: None,
            root: (policy, root.regex),
            app_root: None,
            snippets: OfIngress::default(),
            host_guards: HostGuards::default(),
            names: Names::default(),
            extra: Box::default(),
            denied: self.denied.map(String::into_boxed_str),
            upstream_tls,
            waits: None,
            refused: false,
            problems,
        }
    }

    fn rule(
        &self,
        rule: &IngressRule,
        index: usize,
        budget: &mut PatternBudget,
        hosts: &mut BTreeMap<ServerName, Vec<Route>>,
        problems: &mut Vec<Problem>,
    ) {
        let mut wrong = |field: String, message: Message| {
            problems.push(Problem {
                origin: Origin::clone(&self.origin),
                key: Some(field),
                severity: Severity::Error,
                message,
            });
        };
        let left_out = |message: String| Why::LeftOut.says(message);
        let host = rule.host.as_deref().unwrap_or_default();
        let mut paths = rule.paths.iter().flatten().map(|path| path.path.as_str()).peekable();
        let all_odd = paths.peek().is_some() && paths.all(inspect::is_suspicious);
        if self.inspects && (all_odd || inspect::is_suspicious(host)) {
            return;
        }
        let name = match rule.host.as_deref().filter(|host| !host.is_empty()) {
            None => ServerName::catch_all(),
            Some(host) if is_host(host) => ServerName::new(host.to_ascii_lowercase()),
            Some(host) => {
                let field = format!("spec.rules[{index}].host");
                return wrong(field, left_out(host_name::fault(host)));
            }
        };
        let Some(paths) = &rule.paths else {
            hosts.entry(name).or_default();
            return;
        };
        let routes = hosts.entry(name).or_default();
        let mut leads = None;
        for (at, path) in paths.iter().enumerate() {
            if self.inspects && inspect::is_suspicious(&path.path) {
                continue;
            }
            let field = || format!("spec.rules[{index}].http.paths[{at}]");
            if !path.path.is_empty() && !path.path.starts_with('/') {
                let message = format!("{:?} is left out: a path starts with /", path.path);
                wrong(field(), left_out(message));
                continue;
            }
            if path.path.starts_with(RESERVED_PATHS) {
                let message = format!("{:?} answers 503: {}", path.path, reserved());
                wrong(field(), message.into());
            }
            leads = self.leads(&path.backend, leads.take());
            let Some((_, leads)) = &leads else {
                wrong(field(), left_out(NO_SERVICE.to_owned()));
                continue;
            };
            let (route, closed) = self.bounded(path, leads, index, budget);
            routes.extend(route);
            closed.into_iter().for_each(|message| wrong(field(), message.into()));
        }
        routes.shrink_to_fit();
    }

    /// The route of a path of a rule, and what its owner is told if it is closed for want of memory.
    fn bounded(
        &self,
        path: &IngressPath,
        leads: &Leads,
        rule: usize,
        budget: &mut PatternBudget,
    ) -> (Option<Route>, Option<String>) {
        let (route, too_large) = self.route(path, leads, budget);
        let is_open = too_large.is_none();
        let route = route.filter(|route| is_open || budget.closes(rule, &route.location.path));
        let told = too_large.filter(|_| budget.is_news());
        let message =
            |reason| format!("path {}, and others after it, are closed: {reason}", path.path);
        (route, told.map(message))
    }

    /// Where a path leads, which may be where the one before it does.
    fn leads<'a>(
        &self,
        backend: &'a IngressBackend,
        last: Option<(&'a IngressBackend, Leads)>,
    ) -> Option<(&'a IngressBackend, Leads)> {
        let again = last.filter(|(before, _)| *before == backend);
        again.or_else(|| Some((backend, Leads::to(self.target(backend)?))))
    }

    fn target(&self, backend: &IngressBackend) -> Option<Target> {
        match backend {
            IngressBackend::Service { name, port } => {
                Some(Target::new(&self.origin.namespace, name, port.as_ref(), self.role))
            }
            IngressBackend::Other => None,
        }
    }

    /// The route of a path. If its patterns would take too much memory: a route that closes everything which starts
    /// like it, and the reason.
    fn route(
        &self,
        path: &IngressPath,
        leads: &Leads,
        budget: &mut PatternBudget,
    ) -> (Option<Route>, Option<String>) {
        let text = if path.path.is_empty() { "/" } else { &path.path };
        let kind = path_kind(path);
        let full = budget.full().filter(|_| self.rewriting.makes_pattern_of(text)).cloned();
        let rewriting = if full.is_some() {
            RewritingOfPath { whole: true, regex: true, rewrite: None }
        } else if self.waits {
            self.rewriting.matching(text, kind).0
        } else {
            self.rewriting.of_path(text, kind)
        };
        let compiled = match full {
            Some(reason) => Err(Refused::TooLarge(reason)),
            None if self.waits => Ok(None),
            None => compiled(text, &rewriting, budget),
        };
        let (pattern, too_large) = match compiled {
            Ok(pattern) => (pattern, None),
            Err(Refused::Invalid(_)) => (None, None),
            Err(Refused::TooLarge(reason)) => (None, Some(reason)),
        };
        let own = self.policy_of(text);
        let (policy, denied) = match rewriting.rewrite {
            _ if too_large.is_some() => (Arc::clone(own), too_large.clone()),
            Some(Ok(rewrite)) => {
                (Arc::new(Policy { rewrite: Some(rewrite), ..Policy::clone(own) }), None)
            }
            Some(Err(reason)) => (Arc::clone(own), Some(reason)),
            None => (Arc::clone(own), None),
        };
        let denied = denied.or_else(|| text.starts_with(RESERVED_PATHS).then(reserved));
        let backend = match self.denied.clone().or(denied) {
            Some(reason) => Backend::Denied(reason),
            None => Backend::Upstream(leads.id.clone()),
        };
        // What is guarded is the host's to close, with what comes behind it.
        let stays = too_large.is_none() || policy.is_guarded();
        let path = if stays { Some(text) } else { stand_in(text) };
        let location = path.map(|path| Location {
            path: path.to_owned(),
            kind,
            whole: rewriting.whole,
            backend,
            canary: None,
            service: leads.service.clone(),
            origin: Some(self.origin.clone()),
            policy,
        });
        let regex = rewriting.regex;
        let target = Arc::clone(&leads.target);
        let route =
            location.map(Arc::new).map(|location| Route { target, regex, location, pattern });
        (route, too_large)
    }

    /// The catch-all takes everything of its Ingress but redirects, rewriting and sessions (compat/behaviour.md
    /// sections 6 and 9).
    fn catch_all(&self, target: &Target) -> Route {
        let backend = match &self.denied {
            Some(reason) => Backend::Denied(reason.clone()),
            None => Backend::Upstream(target.id()),
        };
        let location = Arc::new(Location {
            path: "/".to_owned(),
            kind: PathKind::Prefix,
            whole: false,
            backend,
            canary: None,
            service: target.service_ref().map(Arc::new),
            origin: Some(self.origin.clone()),
            policy: Arc::new(Policy {
                tls_redirect: TlsRedirect::NEVER,
                redirect: None,
                relative_redirects: false,
                ..Policy::clone(self.policy_of("/")).without_sessions()
            }),
        });
        Route { target: Arc::new(target.clone()), regex: false, location, pattern: None }
    }
}

/// How a path of a rule matches.
pub(crate) fn path_kind(path: &IngressPath) -> PathKind {
    match path.kind {
        PathType::Exact => PathKind::Exact,
        PathType::Prefix | PathType::ImplementationSpecific => PathKind::Prefix,
    }
}

/// The pattern of a path that is a regular expression; that of its rewriting is counted, too.
fn compiled(
    path: &str,
    rewriting: &RewritingOfPath,
    budget: &mut PatternBudget,
) -> Result<Option<Pattern>, Refused> {
    if let Some(Ok(rewrite)) = &rewriting.rewrite {
        budget.take(&rewrite.pattern)?;
    }
    if rewriting.regex { budget.path(path) } else { Ok(None) }
}
