//! Which hosts' TLS connections end at their Service (compat/behaviour.md section 19).

use super::Host;
use super::owners::is_foreign;
use crate::ingress::{Draft, Drafts, Standing, origin};
use crate::tenancy::{Item, remedy};
use model::{Backend, Location, Message, Origin, PathKind, Severity, UpstreamId, Why};
use std::sync::Arc;

/// The annotation.
const KEY: &str = "ssl-passthrough";

impl Host<'_> {
    /// Of which kind the path `/` is to whose Service they go: that which an Ingress wrote, if that Ingress asks for
    /// it. A host whose connections are not looked into has no paths of others: older ones of another namespace
    /// forbid it, younger ones are left out, which is why this is asked before the host gets its implicit `/`.
    pub(super) fn passed_through(&mut self, drafts: &Drafts) -> Option<PathKind> {
        let kind = self.passed_through_by_who_is_taken(drafts);
        if kind.is_none() {
            self.keep_passed_through(drafts);
        }
        kind
    }

    /// A host whose connections ended at its Service is nobody else's while the Ingress that asks for it waits for room
    /// or is not taken: what only that Service saw would be seen here, and by strangers. It is closed.
    fn keep_passed_through(&mut self, drafts: &Drafts) {
        let anybody = self.ground.permissions.cross_namespace.allows(Item::Passthrough);
        let name = self.name.as_str();
        if anybody || !self.ground.passthrough || name == "_" || name.starts_with('*') {
            return;
        }
        let kinds = [PathKind::Prefix, PathKind::Exact].into_iter();
        let roots: Vec<_> = kinds.filter_map(|kind| self.path_root(kind)?.origin.clone()).collect();
        let asks = |draft: &&Arc<Draft>| {
            draft.passthrough
                && draft.standing == Standing::Rejected
                && roots.contains(&draft.origin)
                && !self.has_older_strangers(draft, drafts)
        };
        if let Some(asker) = drafts.values().find(asks) {
            self.leave_out_strangers(asker, drafts);
        }
    }

    /// Whether an older Ingress of another namespace names the host.
    fn has_older_strangers(&self, asker: &Draft, drafts: &Drafts) -> bool {
        let is_older = |draft: &Arc<Draft>| {
            draft.claims(self.name) && is_foreign(draft, asker) && draft.age() < asker.age()
        };
        drafts.values().any(is_older)
    }

    fn passed_through_by_who_is_taken(&mut self, drafts: &Drafts) -> Option<PathKind> {
        let asks = |draft: &&Arc<Draft>| draft.passthrough && draft.standing == Standing::Taken;
        let anybody = self.ground.permissions.cross_namespace.allows(Item::Passthrough);
        let kinds = [PathKind::Prefix, PathKind::Exact].into_iter();
        let root = |kind: PathKind| self.path_root(kind);
        let mut asking = drafts.values().filter(asks);
        let first = asking.clone().next()?;
        // A stranger's path / of the other kind is not in the way of who asked first.
        let roots: Vec<_> = kinds.filter_map(root).collect();
        let own = &first.ingress.meta.key.namespace;
        let is_own = |root: &&&Arc<Location>| is_in(root, own);
        let root = roots.iter().find(is_own).or(roots.first()).map(|root| Arc::clone(root));
        let owns = |draft: &&Arc<Draft>| {
            let owner = root.as_ref().and_then(|root| root.origin.as_deref());
            anybody || owner == Some(&origin(&draft.ingress.meta.key))
        };
        let asker = asking.find(owns);
        let name = self.name.as_str();
        let has_older = || self.has_older_strangers(asker.unwrap_or(first), drafts);
        let remedy = remedy(Item::Passthrough);
        let foreign = |why: String| Why::OtherNamespace.says(why);
        let why: Option<Message> = match &root {
            _ if !self.ground.passthrough => {
                Some("start Fairway with --enable-ssl-passthrough".into())
            }
            _ if name == "_" || name.starts_with('*') => {
                Some("it is for hosts without a wildcard, write each host out".into())
            }
            None => Some("the host needs a path / that names the Service".into()),
            Some(_) if asker.is_none() => Some(foreign(format!(
                "another Ingress has its path /: ask for it there, or {remedy}"
            ))),
            Some(_) if !anybody && has_older() => {
                Some(foreign(format!("another namespace has a part in the host; {remedy}")))
            }
            Some(_) => None,
        };
        if let Some(why) = why {
            let ingress = asker.unwrap_or(first).ingress.meta.key.clone();
            let message = why.within(format!("has no effect for host {name}: {why}"));
            self.problem(&ingress, KEY, Severity::Warning, message);
            return None;
        }
        if !anybody {
            self.leave_out_strangers(asker?, drafts);
        }
        Some(root?.kind)
    }

    /// Where they go, once everything that may close the path has been asked.
    pub(super) fn passthrough(&self, kind: PathKind) -> Option<UpstreamId> {
        match &self.path_root(kind)?.backend {
            Backend::Upstream(id) => Some(id.clone()),
            Backend::NotFound | Backend::Denied(_) | Backend::Broken(_) => None,
        }
    }

    fn path_root(&self, kind: PathKind) -> Option<&Arc<Location>> {
        self.locations.iter().find(|location| location.path == "/" && location.kind == kind)
    }

    fn leave_out_strangers(&mut self, asker: &Draft, drafts: &Drafts) {
        let strangers = drafts.values().filter(|draft| draft.claims(self.name));
        let strangers: Vec<_> = strangers.filter(|draft| is_foreign(draft, asker)).collect();
        let own = &asker.ingress.meta.key.namespace;
        let is_own = |origin: &Origin| origin.namespace == *own;
        self.locations.retain(|location| location.origin.as_deref().is_none_or(is_own));
        for stranger in strangers {
            let message = format!(
                "host {} is passed through as a whole by an Ingress of another namespace, which is older: take a host \
                 of its own, or {}",
                self.name,
                remedy(Item::Passthrough)
            );
            let key = &stranger.ingress.meta.key;
            let message = Why::OtherNamespace.says(message);
            self.problem(key, "spec.rules", Severity::Error, message);
        }
    }
}

fn is_in(location: &Location, namespace: &Arc<str>) -> bool {
    location.origin.as_deref().is_some_and(|origin| origin.namespace == *namespace)
}
