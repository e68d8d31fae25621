//! Snippets of a host: whose counts for the server, and where locations may stand within those of Ingresses.

use super::{Host, heard, not_heard, unheard};
use crate::ingress::{Draft, Rank, origin};
use crate::tenancy::Item;
use kubernetes::objects::ObjectKey;
use model::policy::Policy;
use model::snippet::{LocationKind, Scope};
use model::{Backend, Location, PathKind, Severity};
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
    pub(super) fn snippet(&self, drafts: &BTreeMap<Rank, Arc<Draft>>) -> Option<Arc<Scope>> {
        let allowed = self.ground.permissions.cross_namespace;
        let mut heard = heard(self.name, drafts, allowed, Item::ServerSnippet);
        // One that is wrong makes room for nobody.
        let own = heard.find(|draft| draft.snippets.has_server);
        let own = own.and_then(|draft| draft.snippets.server.as_ref());
        let behind = self.ground.snippets.server.as_ref();
        match (own, behind) {
            (Some(own), Some(behind)) => {
                let mut all = Scope::clone(own);
                all.join(behind);
                Some(Arc::new(all))
            }
            (own, behind) => own.or(behind).cloned(),
        }
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
