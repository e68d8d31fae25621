//! From the rules of an HTTPRoute or a GRPCRoute to those of a host: matches, shares, and what is wrong.

use super::backend_tls::Policies;
use super::backends::{Port, Wanted, port_of, upstream_id};
use super::expressions::Expressions;
use super::few::{Few, Set};
use super::paths::{characters, path_of};
use super::status::Sentence;
use super::weights::places;
use super::{closed, filters, guards, sessions, status, texts, times};
use crate::kinds::kind_of;
use crate::pattern_budget::Refused;
use model::policy::{Affinity, Body, Policy, Protocol, RouteFilters, RouteMirror, TlsRedirect};
use model::{Backend, Location, Origin, PathKind, RuleMatch, Scheme, ServiceRef};
use objects::gateway::{
    BackendRef, ExternalAuth, HttpRoute, PathMatch, RequestMirror, RouteFilter, RouteMatch,
    RouteRule,
};
use objects::{ObjectKey, Snapshot};
use std::sync::{Arc, LazyLock, OnceLock};

/// Matches times backends of a route at most: each becomes a place of its own.
pub(super) const PLACES: usize = 4096;

/// Mirrors of a place at most.
const MIRRORS: usize = 32;

/// What a route asks for, wherever it is attached.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// Its rules, one for each match.
    pub(super) rules: Vec<DraftRule>,
    /// Why it is not taken: the reason that was found first, and all that there is to say.
    pub(super) refused: Option<(&'static str, String)>,
    /// The references that lead nowhere: the reason of the first one, and all that there is to say.
    pub(super) unresolved: Option<(&'static str, String)>,
    /// The Service ports that it leads to.
    pub(super) ports: Few<Port>,
    /// The Services that it names, whether or not they are there.
    pub(super) services: Few<ObjectKey>,
    /// Other namespaces in which it names backends, whether or not it may.
    pub(super) abroad: Few<Arc<str>>,
    /// Matches that are left out, each with its reason.
    pub(super) dropped: Vec<String>,
    /// Why rules of a route are closed of which others are served: the first reason, and all that there is to say.
    pub(super) closed: Option<(&'static str, String)>,
}

/// A match with where it leads.
#[derive(Clone, Debug)]
pub(super) struct DraftRule {
    /// Which requests, in clear.
    pub(super) matches: Arc<RuleMatch>,
    /// Characters of the service and the method of gRPC.
    pub(super) called: (u32, u32),
    /// The same ones over TLS, once a listener has asked for them.
    secure: OnceLock<Arc<RuleMatch>>,
    /// Weights and places.
    pub(super) shares: Vec<(u32, Arc<Location>)>,
}

impl DraftRule {
    /// A match, as it was written and as it was read, with where it leads.
    pub(super) fn new(
        (found, matches): (&RouteMatch, RuleMatch),
        shares: Vec<(u32, Arc<Location>)>,
    ) -> Self {
        let (called, secure) = (characters(found), OnceLock::new());
        Self { matches: Arc::new(matches), called, secure, shares }
    }

    /// Which requests of a scheme.
    pub(super) fn matches_of(&self, scheme: Scheme) -> Arc<RuleMatch> {
        match scheme {
            Scheme::Http => self.matches.clone(),
            Scheme::Https => {
                let secure = || Arc::new(RuleMatch { scheme, ..RuleMatch::clone(&self.matches) });
                self.secure.get_or_init(secure).clone()
            }
        }
    }
}

impl Draft {
    /// Reads a route.
    pub(super) fn read(route: &HttpRoute, snapshot: &Snapshot, tls: &Policies) -> Self {
        let expressions = Expressions::default();
        let (draft, policies, ports) = (Self::default(), Vec::new(), Vec::new());
        let (session, wrong, serves) = (None, None, false);
        let mut reader = Reader {
            route,
            snapshot,
            tls,
            draft,
            policies,
            ports,
            session,
            wrong,
            expressions,
            serves,
        };
        if let Some(why) = &route.unread {
            reader.refuse("UnsupportedValue", why.clone());
        }
        if places(route).saturating_mul(route.hostnames.len().max(1)) > PLACES {
            let message = format!(
                "matches times backends times host names are more than {PLACES}: share them out among several routes"
            );
            return Self::closed(route, ("UnsupportedValue", message));
        }
        for (index, rule) in route.rules.iter().enumerate() {
            reader.rule(index, rule);
        }
        if !reader.serves || reader.draft.refused.is_some() {
            let closed = reader.draft.closed.take();
            closed.into_iter().for_each(|(reason, why)| reader.refuse(reason, why));
        }
        if !reader.serves && !reader.draft.dropped.is_empty() {
            reader.refuse("UnsupportedValue", reader.draft.dropped.join("; "));
        }
        let mut draft = reader.draft;
        if let Some((reason, _)) = &draft.refused {
            draft.rules = closed::rules(route, reason);
            draft.ports.clear();
        }
        draft.rules.shrink_to_fit();
        draft
    }

    /// A route that is not read any further than it takes to keep its places, closed.
    pub(super) fn closed(route: &HttpRoute, refused: (&'static str, String)) -> Self {
        let rules = closed::rules(route, refused.0);
        Self { rules, refused: Some(refused), ..Self::default() }
    }

    /// The condition about rules that are closed and matches that are left out, if there are any.
    pub(super) fn partial(&self) -> Option<status::Condition> {
        let closed = self
            .closed
            .as_ref()
            .map(|(_, why)| format!("{why} (all matches of such a rule answer 500)"));
        let said: Vec<&str> = closed.iter().chain(&self.dropped).map(String::as_str).collect();
        let message = || format!("Dropped Rule: {}", said.join("; ")).into();
        (!said.is_empty()).then(|| status::Condition {
            kind: "PartiallyInvalid",
            holds: true,
            reason: "UnsupportedValue",
            message: message(),
        })
    }

    /// The condition about its references.
    pub(super) fn resolved(&self) -> status::Condition {
        match &self.unresolved {
            Some((reason, message)) => {
                status::Condition::fails("ResolvedRefs", reason, message.clone())
            }
            None => status::Condition::holds("ResolvedRefs", "ResolvedRefs"),
        }
    }
}

/// Adds what is wrong to what was found before; a condition has one reason, and no more text than people read.
fn add(found: &mut Option<(&'static str, String)>, reason: &'static str, message: &str) {
    let Some((_, said)) = found else {
        *found = Some((reason, beginning(message)));
        return;
    };
    if said.len() + message.len() <= Sentence::MOST
        && !said.split("; and ").any(|one| one == message)
    {
        said.push_str("; and ");
        said.push_str(message);
    }
}

/// As much of a text as a condition says, and a byte more if it is too long: then it is told as cut.
fn beginning(text: &str) -> String {
    text[..text.ceil_char_boundary(Sentence::MOST + 1)].to_owned()
}

struct Reader<'a> {
    route: &'a HttpRoute,
    snapshot: &'a Snapshot,
    tls: &'a Policies,
    draft: Draft,
    /// What places of the rule at hand ask for: those that agree share it.
    policies: Vec<Arc<Policy>>,
    /// Where it leads.
    ports: Vec<Port>,
    /// What it says of sessions.
    session: Option<Arc<Affinity>>,
    /// Why it cannot be served, whatever the others ask for.
    wrong: Option<(&'static str, String)>,
    expressions: Expressions,
    /// Whether any match is served.
    serves: bool,
}

impl Reader<'_> {
    /// Refuses the route as a whole: of what cannot be read nobody knows which requests it is about.
    fn refuse(&mut self, reason: &'static str, message: String) {
        add(&mut self.draft.refused, reason, &message);
    }

    /// Closes the rule at hand, and no other one.
    fn close_rule(&mut self, reason: &'static str, message: String) {
        add(&mut self.wrong, reason, &message);
    }

    /// Notes that a match is left out, if people read that far.
    fn leave_out(&mut self, why: &str) {
        let dropped = &mut self.draft.dropped;
        if dropped.iter().map(String::len).sum::<usize>() <= Sentence::MOST {
            dropped.push(beginning(why));
        }
    }

    fn rule(&mut self, index: usize, rule: &RouteRule) {
        let first = self.draft.rules.len();
        self.policies.clear();
        self.session = None;
        let serves = self.read(index, rule);
        let ports = std::mem::take(&mut self.ports);
        if let Some((reason, why)) = self.wrong.take() {
            add(&mut self.draft.closed, reason, &why);
            closed::all_of(&mut self.draft.rules[first..], self.route, reason);
        } else {
            self.serves |= serves;
            ports.into_iter().for_each(|port| self.draft.ports.put(port));
        }
    }

    /// Reads a rule; whether it has any matches.
    fn read(&mut self, index: usize, rule: &RouteRule) -> bool {
        let at = format!("spec.rules[{index}]");
        if let Some(why) = &rule.unread {
            self.close_rule("UnsupportedValue", why.to_string());
        }
        match rule.session.as_ref().map(|said| sessions::read(said, self.route, index)) {
            Some(Ok(affinity)) => self.session = Some(affinity.into()),
            Some(Err(why)) => {
                self.close_rule("UnsupportedValue", format!("{at}.sessionPersistence.{why}"));
            }
            None => {}
        }
        let backends: Vec<_> = rule.backends.iter().map(|one| (one, self.backend(one))).collect();
        let matches = self.matches(&at, rule);
        if matches.is_empty() {
            return false;
        }
        // Sessions go on with a backend that gets no new ones any more.
        let counts = |one: &BackendRef| one.weight > 0 || self.session.is_some();
        let has_weight = backends.iter().any(|(one, _)| one.weight > 0);
        let weighty: Vec<_> = backends.iter().filter(|(one, _)| counts(one)).collect();
        let mut ways = Vec::with_capacity(weighty.len());
        for (one, backend) in &weighty {
            if one.filters.iter().any(|filter| matches!(filter, RouteFilter::Cors(_))) {
                let message = "CORS counts for a rule: move it from backendRefs to filters";
                self.close_rule("UnsupportedValue", format!("{at}.backendRefs: {message}"));
            }
            let filters = rule.filters.iter().chain(&one.filters);
            ways.push((one.weight, self.way((&at, rule), filters, backend.clone(), Some(one))));
        }
        if !has_weight || has_redirect(&rule.filters) {
            let backend = if has_redirect(&rule.filters) {
                ways.clear();
                Backend::NotFound
            } else {
                Backend::Broken("the rule has no backend with a weight".to_owned())
            };
            ways.push((1, self.way((&at, rule), rule.filters.iter(), backend, None)));
        }
        let mut all = weighty.iter().flat_map(|(one, _)| &one.filters).chain(&rule.filters);
        let needs_prefix = all.any(filters::needs_prefix);
        for (found, matches) in matches {
            if let Err(why) = texts::of_match(found) {
                self.refuse("UnsupportedValue", format!("{at}.matches: {why}"));
            }
            if needs_prefix && path_of(found).0 != PathKind::Prefix {
                let message = "ReplacePrefixMatch needs a match of type PathPrefix";
                self.close_rule("UnsupportedValue", format!("{at}.filters: {message}"));
            }
            let shares = ways.iter().map(|(weight, way)| (*weight, of(way, found))).collect();
            self.draft.rules.push(DraftRule::new((found, matches), shares));
        }
        true
    }

    /// The matches of a rule that can be read. Those that cannot are left out alone: requests of the others would go
    /// past what the rule asks of them. What they may match themselves is closed, if somebody is to be asked.
    fn matches<'r>(&mut self, at: &str, rule: &'r RouteRule) -> Vec<(&'r RouteMatch, RuleMatch)> {
        let mut read = Vec::with_capacity(rule.matches.len());
        for found in &rule.matches {
            match self.expressions.read(found) {
                Ok(matches) => read.push((found, matches)),
                Err(Refused::Invalid(why)) => {
                    let told = format!("{at}.matches: {why}");
                    if why.of_ours && (rule.unread.is_some() || closed::is_guarded(rule)) {
                        self.close(found, told);
                    } else {
                        self.leave_out(&told);
                    }
                }
                Err(Refused::TooLarge(why)) => self.refuse("UnsupportedValue", why),
            }
        }
        read
    }

    /// Closes what a match may have that Fairway does not know, so that nobody comes past its guard. Where that may be
    /// every path, the route is closed as a whole, and nobody else.
    fn close(&mut self, found: &RouteMatch, told: String) {
        let is_expression = matches!(found.path, PathMatch::Expression(_));
        match self.expressions.at_least(found) {
            // Which calls it is about is not known.
            Err(Refused::Invalid(_)) if matches!(found.path, PathMatch::Method(_)) => {
                self.refuse("UnsupportedValue", told);
            }
            Err(Refused::Invalid(_)) => self.leave_out(&told),
            Ok(matches) if matches.pattern.is_some() || !is_expression => {
                self.leave_out(&format!("{told}; what it may match answers 500"));
                self.draft.rules.push(closed::rule(self.route, (found, matches), told));
            }
            Ok(_) | Err(Refused::TooLarge(_)) => self.refuse("UnsupportedValue", told),
        }
    }

    /// Where a backend leads; what is wrong with it is noted.
    fn backend(&mut self, backend: &BackendRef) -> Backend {
        match self.port(backend) {
            Ok(port) => {
                let id = upstream_id(&port);
                self.ports.push(port);
                Backend::Upstream(id)
            }
            Err((reason, message)) => {
                add(&mut self.draft.unresolved, reason, &message);
                Backend::Broken(message)
            }
        }
    }

    fn port(&mut self, backend: &BackendRef) -> Result<Port, (&'static str, String)> {
        let namespace = &self.route.meta.key.namespace;
        let wanted = Wanted { kind: self.route.kind.name(), namespace, protocol: "TCP" };
        let Draft { services, abroad, .. } = &mut self.draft;
        wanted.port(backend, self.snapshot, services, abroad)
    }

    /// A backend as its BackendTLSPolicy wants it; one that is closed for want of it, or for what it says, is noted.
    fn secure(&mut self, backend: Backend, named: &BackendRef, policy: &mut Policy) -> Backend {
        let own = &self.route.meta.key.namespace;
        let made = self.tls.secure((backend, named), own, self.snapshot, policy);
        made.unwrap_or_else(|(reason, why)| {
            add(&mut self.draft.unresolved, reason, &why);
            Backend::Broken(why)
        })
    }

    /// Whether its calls are those of gRPC, whose backends speak HTTP/2 whatever their Services say.
    fn is_grpc(&self) -> bool {
        self.route.kind == objects::Kind::GrpcRoute
    }

    /// Whether the Service of a backend says that its port is spoken to in HTTP/2.
    fn speaks_http2(&self, backend: &BackendRef) -> bool {
        let key = backend.object.key(&self.route.meta.key.namespace);
        let service = self.snapshot.services.get(&key);
        let port =
            service.zip(backend.port).and_then(|(service, port)| port_of(service, port, "TCP"));
        port.is_some_and(|port| port.http2)
    }

    /// Where copies go; those that lead nowhere are left out, and what is wrong is noted.
    fn mirror(&mut self, mirror: &RequestMirror) -> Option<RouteMirror> {
        let mut policy = Policy::default();
        let backend = self.backend(&mirror.backend);
        let backend = self.secure(backend, &mirror.backend, &mut policy);
        let Backend::Upstream(upstream) = backend else { return None };
        if policy.protocol != Protocol::Http {
            let message =
                "copies are sent in clear: mirror to a Service port without a BackendTLSPolicy";
            add(&mut self.draft.unresolved, "UnsupportedProtocol", message);
            return None;
        }
        let RequestMirror { numerator, denominator, backend: _ } = *mirror;
        let http2 = self.is_grpc() || self.speaks_http2(&mirror.backend);
        (numerator > 0).then_some(RouteMirror { upstream, http2, numerator, denominator })
    }

    /// Adds who is asked whether requests may pass; why nobody can be.
    fn guard(
        &mut self,
        at: &str,
        auth: &ExternalAuth,
        does: &mut RouteFilters,
    ) -> Result<(), String> {
        let mut towards = Policy::default();
        let backend = self.backend(&auth.backend);
        match self.secure(backend, &auth.backend, &mut towards) {
            Backend::Upstream(upstream) => {
                let http2 = self.speaks_http2(&auth.backend);
                match guards::read(auth, (upstream, towards, http2)) {
                    Ok(_) if does.guard.is_some() => {
                        let message = "only one ExternalAuth filter can count; leave one";
                        self.close_rule("IncompatibleFilters", format!("{at}.filters: {message}"));
                    }
                    Ok(guard) => does.guard = Some(guard.into()),
                    Err(why) => {
                        let why = format!("{at}.filters: externalAuth.{why}");
                        self.close_rule("UnsupportedValue", why);
                    }
                }
                Ok(())
            }
            Backend::Broken(why) => Err(why),
            Backend::NotFound | Backend::Denied(_) => Err("nobody can be asked".to_owned()),
        }
    }

    /// What all places of a rule have in common that lead to a backend.
    fn way<'f>(
        &mut self,
        (at, rule): (&str, &RouteRule),
        filters: impl Iterator<Item = &'f RouteFilter>,
        backend: Backend,
        named: Option<&BackendRef>,
    ) -> Location {
        let mut policy = usual();
        let mut does = RouteFilters::default();
        times::bound(&mut does, &mut policy, rule);
        if self.is_grpc() || named.is_some_and(|one| self.speaks_http2(one)) {
            policy.protocol = Protocol::Grpc;
        }
        let mut fault = None;
        for filter in filters {
            match filter {
                RouteFilter::Mirror(mirror) => does.mirrors.extend(self.mirror(mirror)),
                RouteFilter::Auth(auth) => {
                    fault = self.guard(at, auth, &mut does).err().or(fault);
                    // Whoever is asked gets all of a body.
                    policy.body.max_size = Some(auth.max_body).filter(|most| *most > 0);
                }
                filter => {
                    if let Err(why) = filters::add(&mut does, &mut policy, filter) {
                        self.close_rule(why.0, format!("{at}.filters: {}", why.1));
                    }
                }
            }
        }
        if does.guard.is_some() && does.redirect.is_some() {
            let message = "a redirect answers before anybody is asked; leave ExternalAuth out";
            self.close_rule("IncompatibleFilters", format!("{at}.filters: {message}"));
        }
        if does.mirrors.len() > MIRRORS {
            let message = format!("{at}.filters: at most {MIRRORS} mirrors can count; leave fewer");
            self.close_rule("UnsupportedValue", message);
        }
        let backend = match named {
            Some(one) => self.secure(backend, one, &mut policy),
            None => backend,
        };
        let backend = guards::behind(backend, fault);
        policy.route = Some(Box::new(does));
        policy.balance.affinity.clone_from(&self.session);
        let policy = self.shared(policy);
        let service = named.map(|one| {
            let key = one.object.key(&self.route.meta.key.namespace);
            let port = one.port.map(|port| port.to_string()).unwrap_or_default();
            ServiceRef { namespace: key.namespace, name: key.name, port: port.into() }
        });
        Location { service: service.map(Arc::new), policy, ..leading(self.route, backend) }
    }

    fn shared(&mut self, policy: Policy) -> Arc<Policy> {
        if policy == **USUAL {
            return USUAL.clone();
        }
        if let Some(known) = self.policies.iter().find(|known| ***known == policy) {
            return known.clone();
        }
        let policy = Arc::new(policy);
        self.policies.push(policy.clone());
        policy
    }
}

/// What most routes ask for: all of them share it.
static USUAL: LazyLock<Arc<Policy>> = LazyLock::new(|| Arc::new(usual()));

/// What counts at a place of a route that asks for nothing.
pub(crate) fn usual() -> Policy {
    Policy {
        tls_redirect: TlsRedirect::NEVER,
        body: Body { max_size: None, ..Body::default() },
        route: Some(Box::default()),
        ..Policy::default()
    }
}

/// Where a route leads that asks for nothing besides.
pub(super) fn leading(route: &HttpRoute, backend: Backend) -> Location {
    let ObjectKey { namespace, name } = route.meta.key.clone();
    Location {
        path: String::new(),
        kind: PathKind::Prefix,
        whole: true,
        backend,
        canary: None,
        service: None,
        origin: Some(Arc::new(Origin::new(kind_of(route.kind), namespace, name))),
        policy: USUAL.clone(),
    }
}

/// The place of a match.
pub(super) fn of(way: &Location, found: &RouteMatch) -> Arc<Location> {
    let (kind, path) = path_of(found);
    Arc::new(Location { path: path.into_owned(), kind, ..way.clone() })
}

fn has_redirect(filters: &[RouteFilter]) -> bool {
    filters.iter().any(|filter| matches!(filter, RouteFilter::Redirect(_)))
}
