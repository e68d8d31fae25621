//! Snippets of a host: whose counts for the server, and where locations may stand within those of Ingresses.

use super::{Host, Surroundings, heard, not_heard, unheard};
use crate::ingress::{Draft, Drafts, Role, Target, origin};
use crate::snippets::{self, Renamed};
use crate::tenancy::Item;
use model::policy::{Policy, RawServer};
use model::snippet::{AuthBasic, Inherit, Limits, LocationKind, RealIp, Satisfy, Scope, Settings};
use model::{Backend, Location, Origin, PathKind, Severity, Why};
use objects::ObjectKey;
use snippet::Needed;
use std::collections::HashMap;
use std::sync::Arc;

impl Host<'_> {
    /// `server-snippet` is the host's, so only its owner has one. The first counts, in nginx's own words.
    pub(super) fn server_snippets(&mut self, drafts: &Drafts) -> Option<Arc<RawServer>> {
        let allowed = self.ground.permissions.cross_namespace;
        let asks = |draft: &&Arc<Draft>| {
            let raw = draft.root.0.raw.as_ref();
            draft.snippets.has_server || raw.is_some_and(|raw| raw.server.is_some())
        };
        let unheard = unheard(self.name, drafts, allowed, Item::ServerSnippet).filter(asks);
        let unheard: Vec<&ObjectKey> = unheard.map(|draft| &draft.ingress.meta.key).collect();
        let closing = self.unheard_snippets(drafts);
        self.change(unheard.iter().copied(), |location| {
            let mut policy = Policy::clone(&location.policy);
            if let Some(raw) = &mut policy.raw {
                raw.server = None;
            }
            location.policy = Arc::new(policy);
        });
        for ingress in unheard {
            let message = not_heard(self.name, Item::ServerSnippet);
            if closing.contains(ingress) {
                let then = "it may guard paths; until then those of its namespace there answer 503";
                let message = message.within(format!("{message}; {then}"));
                self.problem(ingress, "server-snippet", Severity::Error, message);
            } else {
                self.annotation(ingress, "server-snippet", message);
            }
        }
        let mut heard = heard(self.name, drafts, allowed, Item::ServerSnippet);
        heard.find_map(|draft| {
            let text = draft.root.0.raw.as_ref()?.server.clone()?;
            Some(Arc::new(RawServer { origin: Arc::clone(&draft.origin), text }))
        })
    }

    /// What the first Ingress with a `server-snippet` says, and then the ConfigMap.
    pub(super) fn snippet(
        &mut self,
        drafts: &Drafts,
        surroundings: &impl Surroundings,
    ) -> Option<Arc<Scope>> {
        let allowed = self.ground.permissions.cross_namespace;
        let mut heard = heard(self.name, drafts, allowed, Item::ServerSnippet);
        // One that is wrong makes room for nobody.
        let first = heard.find(|draft| draft.snippets.has_server);
        if let Some(draft) = first {
            self.unguarded(draft);
        }
        let own = first.and_then(|draft| Some((draft, draft.snippets.server.as_ref()?)));
        if let Some((draft, scope)) = own {
            self.beside_paths(Some(draft), scope);
        }
        let own = own.map(|(draft, scope)| {
            let mut scope = Arc::clone(scope);
            rename(&mut scope, &renamed(draft, surroundings));
            let scope = self.without_others_guards(draft, &scope);
            if allowed.allows(Item::ServerSnippet) {
                scope
            } else {
                self.beside_others_guards(draft, scope)
            }
        });
        let behind = self.ground.snippets.server.clone();
        if let Some(behind) = &behind {
            self.beside_paths(None, behind);
        }
        match (own, behind) {
            (Some(own), Some(behind)) => {
                let mut all = Scope::clone(&own);
                all.join(&behind);
                Some(Arc::new(all))
            }
            (own, behind) => own.or(behind),
        }
    }

    /// A location of a snippet that is also a path of an Ingress is a mistake (nginx: duplicate location), and nobody
    /// knows which one is meant: the path is closed, unless it is another namespace's. `draft` has the snippet, none
    /// if it is the ConfigMap's.
    fn beside_paths(&mut self, draft: Option<&Draft>, scope: &Scope) {
        let owner = draft.map(|draft| origin(&draft.ingress.meta.key));
        let mut told = Vec::new();
        for own in &scope.locations {
            let regex = self.regex;
            for location in
                self.locations.iter_mut().filter(|path| is_twice(&own.kind, path, regex))
            {
                let Some(origin) = location.origin.as_deref().cloned() else { continue };
                let name = own.kind.name().to_owned();
                let others = owner.as_ref().is_some_and(|own| own.namespace != origin.namespace);
                if !others {
                    let location = Arc::make_mut(location);
                    let reason = format!("server-snippet has a location {name}, too");
                    (location.backend, location.canary) = (Backend::Denied(reason), None);
                }
                told.push((owner.clone().unwrap_or(origin.clone()), origin, name, others));
            }
        }
        for (whom, origin, name, others) in told {
            let then = if others { "the location has no effect" } else { "the path answers 503" };
            let remedy = "write it into configuration-snippet of that Ingress";
            let message = format!(
                "location {name} is also a path of {origin} for host {}: {then}; {remedy}",
                self.name
            );
            let whose = ObjectKey { namespace: whom.namespace, name: whom.name };
            let key = match draft {
                Some(_) => self.full_name("server-snippet"),
                None => "server-snippet".to_owned(),
            };
            // Nor does nginx take a configuration with it.
            self.problem(&whose, &key, Severity::Error, Why::NotTaken.says(message));
        }
    }

    /// The name of an annotation, with the prefix.
    pub(super) fn full_name(&self, annotation: &str) -> String {
        format!("{}/{annotation}", self.ground.annotations_prefix)
    }

    /// What could open a guard that others have counts for the locations of its own Ingress only: who a client is, and
    /// whether one guard will do. A guard that a server takes away is none of its locations' own.
    fn without_others_guards(&mut self, draft: &Draft, scope: &Arc<Scope>) -> Arc<Scope> {
        let Settings { access, real_ip, .. } = &scope.settings;
        let takes_away =
            access.auth_basic == Some(AuthBasic::Off) || access.auth_request_off.is_some();
        let opens = access.satisfy == Some(Satisfy::Any) || *real_ip != RealIp::default();
        let ingress = &draft.ingress.meta.key;
        let origin = Some(origin(ingress));
        let shares =
            self.locations.iter().any(|location| location.origin.as_deref() != origin.as_ref());
        let opens = opens && shares;
        if !takes_away && !opens {
            return Arc::clone(scope);
        }
        let mut server = Scope::clone(scope);
        server.settings.access.auth_basic = None;
        server.settings.access.auth_request_off = None;
        if opens {
            let mut own = Settings::default();
            own.access.satisfy = server.settings.access.satisfy.take();
            own.real_ip = std::mem::take(&mut server.settings.real_ip);
            for location in &mut server.locations {
                location.scope.settings.inherit(&own);
            }
            let mut made = Made::new();
            let is_own =
                |location: &&mut Arc<Location>| location.origin.as_deref() == origin.as_ref();
            // An annotation that says `satisfy` hides that of the server.
            let mut beside = own.clone();
            beside.access.satisfy = None;
            for location in self.locations.iter_mut().filter(is_own) {
                let what = match location.policy.access.satisfy {
                    Some(_) => &beside,
                    None => &own,
                };
                inherit(Arc::make_mut(location), what, &mut made);
            }
        }
        Arc::new(server)
    }

    /// Rules and limits that a server has take the place of the operator's at every location of the host that has none
    /// of its own; so they do for locations of their own namespace. For those of others, whom rules keep out stays out
    /// besides, and limits are the operator's.
    fn beside_others_guards(&mut self, draft: &Draft, scope: Arc<Scope>) -> Arc<Scope> {
        let namespace = &draft.ingress.meta.key.namespace;
        let is_others = |location: &Location| {
            location.origin.as_deref().is_some_and(|origin| origin.namespace != *namespace)
        };
        let Settings { access, limits, .. } = &scope.settings;
        let says = !access.rules.is_empty() || *limits != Limits::default();
        if !says || !self.locations.iter().any(|location| is_others(location)) {
            return scope;
        }
        let mut server = Scope::clone(&scope);
        let mut own = Settings::default();
        own.access.rules = std::mem::take(&mut server.settings.access.rules);
        own.limits = std::mem::take(&mut server.settings.limits);
        let mut others = Settings::default();
        others.access.besides.clone_from(&own.access.rules);
        if let Some(behind) = &self.ground.snippets.server {
            own.access.rules.join(&behind.settings.access.rules);
            own.limits.join(&behind.settings.limits);
        }
        for location in &mut server.locations {
            location.scope.settings.inherit(&own);
        }
        let limits = Settings { limits: own.limits.clone(), ..Settings::default() };
        let mut made = Made::new();
        for location in &mut self.locations {
            let Policy { access, snippet, .. } = &*location.policy;
            let has_rules = access.has_lists()
                || snippet.as_ref().is_some_and(|own| !own.settings.access.rules.is_empty());
            // As in nginx, its own rules stand in place of the server's.
            let what = match (is_others(location), has_rules) {
                (true, true) => continue,
                (true, false) => &others,
                (false, true) => &limits,
                (false, false) => &own,
            };
            inherit(Arc::make_mut(location), what, &mut made);
        }
        Arc::new(server)
    }

    /// A location in a `configuration-snippet` stands in each of the Ingress's: where it may not, those are closed. All
    /// locations of the host are gone through once, however many Ingresses have such a snippet.
    pub(super) fn locations_within(&mut self, drafts: &Drafts) {
        let asks = |draft: &&Arc<Draft>| !draft.snippets.within.is_empty();
        let asking: HashMap<&Origin, &Draft> =
            drafts.values().filter(asks).map(|draft| (&*draft.origin, &**draft)).collect();
        if asking.is_empty() {
            return;
        }
        let mut found: HashMap<&Origin, String> = HashMap::new();
        for location in &self.locations {
            let Some(origin) = location.origin.as_deref() else { continue };
            let Some((origin, draft)) = asking.get_key_value(origin) else { continue };
            if !found.contains_key(origin)
                && let Some(message) = self.misplaced(draft, location)
            {
                found.insert(origin, message);
            }
        }
        for location in &mut self.locations {
            let message = location.origin.as_deref().and_then(|origin| found.get(origin));
            if let Some(message) = message {
                let denied = format!("configuration-snippet: {message}");
                Arc::make_mut(location).backend = Backend::Denied(denied);
            }
        }
        for draft in drafts.values() {
            let Some(message) = found.get(&*draft.origin) else { continue };
            let message =
                format!("{message}; its paths of host {} answer 503 until it is mended", self.name);
            // Nor does nginx take a configuration with it.
            let (key, message) =
                (self.full_name("configuration-snippet"), Why::NotTaken.says(message));
            self.problem(&draft.ingress.meta.key, &key, Severity::Error, message);
        }
    }

    /// Why a location that a snippet has may not stand within one of its Ingress.
    fn misplaced(&self, draft: &Draft, location: &Location) -> Option<String> {
        let path = &location.path;
        let exact = LocationKind::Exact(path.clone());
        let prefix = LocationKind::Prefix { path: path.clone(), final_prefix: false };
        let is_bare = path == "/" || location.whole;
        let mut needs = draft.snippets.within.iter();
        needs.find_map(|need| {
            let Needed::Around(kind) = &need.what else { return None };
            let why = match location.kind {
                PathKind::Exact => kind.misplaced_in(&exact),
                // What begins like an expression is none of the paths that it matches.
                _ if self.regex && !matches!(kind, LocationKind::Regex(_)) => {
                    Some("no location but one with an expression may stand within one that is an expression")
                }
                PathKind::Prefix if self.regex || is_bare => kind.misplaced_in(&prefix),
                // A prefix /p is the locations `= /p` and `/p/`.
                PathKind::Prefix => kind.misplaced_in(&exact),
            };
            why.map(|why| format!("{}: location {} within path {path}: {why}", need.at, kind.name()))
        })
    }
}

/// Whether nginx would have a location twice: paths are written as locations, of which expressions may be alike.
fn is_twice(kind: &LocationKind, location: &Location, regex: bool) -> bool {
    let (own, bare) = (&location.path, location.path == "/" || location.whole);
    match kind {
        _ if regex => false,
        LocationKind::Exact(path) => own == path && (location.kind == PathKind::Exact || !bare),
        LocationKind::Prefix { path, .. } if location.kind == PathKind::Prefix => {
            if bare {
                own == path
            } else {
                path.strip_suffix('/') == Some(own)
            }
        }
        LocationKind::Prefix { .. } | LocationKind::Regex(_) | LocationKind::Named(_) => false,
    }
}

/// Scopes that were made of others, by where those and what was added are: locations that shared one still do.
type Made = HashMap<(Option<*const Scope>, *const Settings), Arc<Scope>>;

/// Says at a location what a level around it would say.
fn inherit(location: &mut Location, outer: &Settings, made: &mut Made) {
    let mut policy = Policy::clone(&location.policy);
    let before = policy.snippet.take();
    let key = (before.as_ref().map(Arc::as_ptr), std::ptr::from_ref(outer));
    let scope = made.entry(key).or_insert_with(|| {
        let mut scope = before.as_deref().cloned().unwrap_or_default();
        scope.settings.inherit(outer);
        Arc::new(scope)
    });
    policy.snippet = Some(Arc::clone(scope));
    location.policy = Arc::new(policy);
}

/// The upstreams that the snippets of an Ingress name and that are called otherwise here: two targets would have the
/// same name, and the other one has it.
fn renamed(draft: &Draft, surroundings: &impl Surroundings) -> Renamed {
    let is_named = |target: &&Target| matches!(target, Target::Service { role: Role::Backend, .. });
    let pairs = draft.extra.iter().filter(is_named);
    let pairs = pairs.map(|target| (target.id(), surroundings.upstream(target)));
    pairs.filter(|(plain, id)| plain != id).collect()
}

/// A policy whose snippets lead to the upstreams by the names that they have in this cluster.
pub(super) fn named(
    draft: &Draft,
    policy: &Arc<Policy>,
    surroundings: &impl Surroundings,
) -> Arc<Policy> {
    let renamed = renamed(draft, surroundings);
    if renamed.is_empty() {
        return Arc::clone(policy);
    }
    let mut policy = Policy::clone(policy);
    let asked = policy.auth_external.as_mut().filter(|asked| asked.snippet.is_some());
    let asked = asked.and_then(|asked| Arc::make_mut(asked).snippet.as_mut());
    for scope in policy.snippet.as_mut().into_iter().chain(asked) {
        rename(scope, &renamed);
    }
    Arc::new(policy)
}

fn rename(scope: &mut Arc<Scope>, renamed: &Renamed) {
    if !renamed.is_empty() {
        snippets::rename(Arc::make_mut(scope), renamed);
    }
}
