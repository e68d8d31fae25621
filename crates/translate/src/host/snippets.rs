//! Snippets of a host: whose counts for the server, and where locations may stand within those of Ingresses.

use super::{Host, Surroundings, heard, not_heard, unheard};
use crate::ingress::{Draft, Rank, Role, Target, origin};
use crate::tenancy::Item;
use model::policy::Policy;
use model::snippet::{
    AuthBasic, Inherit, LocationKind, Piece, RealIp, Satisfy, Scope, Settings, Step, Task, Template,
};
use model::{Backend, Location, PathKind, Severity, UpstreamId};
use objects::ObjectKey;
use snippet::Needed;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Host<'_> {
    /// `server-snippet` is the host's, so only its owner has one.
    pub(super) fn server_snippets(&mut self, drafts: &BTreeMap<Rank, Arc<Draft>>) {
        let allowed = self.ground.permissions.cross_namespace;
        let asks = |draft: &&Arc<Draft>| {
            let raw = draft.root.0.raw.as_ref();
            draft.snippets.has_server || raw.is_some_and(|raw| raw.server.is_some())
        };
        let unheard = unheard(self.name, drafts, allowed, Item::ServerSnippet).filter(asks);
        let unheard: Vec<&ObjectKey> = unheard.map(|draft| &draft.ingress.meta.key).collect();
        self.change(unheard.iter().copied(), |location| {
            let mut policy = Policy::clone(&location.policy);
            if let Some(raw) = &mut policy.raw {
                raw.server = None;
            }
            location.policy = Arc::new(policy);
        });
        for ingress in unheard {
            self.annotation(ingress, "server-snippet", not_heard(self.name, Item::ServerSnippet));
        }
    }

    /// What the first Ingress with a `server-snippet` says, and then the ConfigMap.
    pub(super) fn snippet(
        &mut self,
        drafts: &BTreeMap<Rank, Arc<Draft>>,
        surroundings: &impl Surroundings,
    ) -> Option<Arc<Scope>> {
        let allowed = self.ground.permissions.cross_namespace;
        let mut heard = heard(self.name, drafts, allowed, Item::ServerSnippet);
        // One that is wrong makes room for nobody.
        let first = heard.find(|draft| draft.snippets.has_server);
        let own = first.and_then(|draft| Some((draft, draft.snippets.server.as_ref()?)));
        let own = own.map(|(draft, scope)| {
            let mut scope = Arc::clone(scope);
            rename(&mut scope, &renamed(draft, surroundings));
            self.without_others_guards(draft, &scope)
        });
        let behind = self.ground.snippets.server.clone();
        match (own, behind) {
            (Some(own), Some(behind)) => {
                let mut all = Scope::clone(&own);
                all.join(&behind);
                Some(Arc::new(all))
            }
            (own, behind) => own.or(behind),
        }
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
        let shares = self.locations.iter().any(|location| location.origin != origin);
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
            self.change(std::iter::once(ingress), |location| {
                let mut policy = Policy::clone(&location.policy);
                let mut scope = policy.snippet.as_deref().cloned().unwrap_or_default();
                scope.settings.inherit(&own);
                policy.snippet = Some(Arc::new(scope));
                location.policy = Arc::new(policy);
            });
        }
        Arc::new(server)
    }

    /// A location in a `configuration-snippet` stands in each of the Ingress's: where it may not, those are closed.
    pub(super) fn locations_within(&mut self, drafts: &BTreeMap<Rank, Arc<Draft>>) {
        for draft in drafts.values().filter(|draft| !draft.snippets.within.is_empty()) {
            let ingress = &draft.ingress.meta.key;
            let origin = Some(origin(ingress));
            let own = self.locations.iter().filter(|location| location.origin == origin);
            let Some(message) = own.filter_map(|location| self.misplaced(draft, location)).next()
            else {
                continue;
            };
            self.change(std::iter::once(ingress), |location| {
                location.backend = Backend::Denied(format!("configuration-snippet: {message}"));
            });
            let message =
                format!("{message}; its paths of host {} answer 503 until it is mended", self.name);
            self.problem(ingress, "configuration-snippet", Severity::Error, message);
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

/// Names of upstreams, and the others that they have in this cluster.
type Renamed = Vec<(UpstreamId, UpstreamId)>;

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
    let asked = policy.auth_external.as_mut().and_then(|asked| asked.snippet.as_mut());
    for scope in policy.snippet.as_mut().into_iter().chain(asked) {
        rename(scope, &renamed);
    }
    Arc::new(policy)
}

fn rename(scope: &mut Arc<Scope>, renamed: &Renamed) {
    if !renamed.is_empty() {
        rename_within(Arc::make_mut(scope), renamed);
    }
}

fn rename_within(scope: &mut Scope, renamed: &Renamed) {
    rename_steps(&mut scope.program.steps, renamed);
    for location in &mut scope.locations {
        rename_within(&mut location.scope, renamed);
    }
}

fn rename_steps(steps: &mut [Step], renamed: &Renamed) {
    for step in steps {
        match &mut step.task {
            Task::If(block) => rename_steps(&mut block.steps, renamed),
            Task::Set(name, value) if snippet::names_upstream(name.text()) => {
                let is_it = |(plain, _): &&(UpstreamId, UpstreamId)| {
                    value.literal() == Some(plain.as_str())
                };
                if let Some((_, id)) = renamed.iter().find(is_it) {
                    *value = Template { pieces: vec![Piece::Text(id.to_string())] };
                }
            }
            Task::Set(..) | Task::Return(_) | Task::Rewrite(_) | Task::Break => {}
        }
    }
}
