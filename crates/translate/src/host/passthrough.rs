//! Which hosts' TLS connections end at their Service (compat/behaviour.md section 19).

use super::Host;
use crate::ingress::{Draft, Rank, Standing};
use model::{Backend, PathKind, Severity, UpstreamId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The annotation.
const KEY: &str = "ssl-passthrough";

impl Host<'_> {
    /// Where they go: to the Service that an Ingress names for `/`, if any Ingress of the host asks for it.
    pub(super) fn passthrough(
        &mut self,
        drafts: &BTreeMap<Rank, Arc<Draft>>,
    ) -> Option<UpstreamId> {
        let asks = |draft: &&Arc<Draft>| draft.passthrough && draft.standing == Standing::Taken;
        let ingress = &drafts.values().find(asks)?.ingress.meta.key;
        let name = self.name.as_str();
        let named = |kind: &PathKind| self.claims.contains_key(&(*kind, "/".to_owned()));
        let kind = [PathKind::Prefix, PathKind::Exact].into_iter().find(named);
        let why = match kind {
            _ if !self.ground.passthrough => "start Fairway with --enable-ssl-passthrough",
            _ if name == "_" || name.starts_with('*') => {
                "it is for hosts without a wildcard, write each host out"
            }
            None => "the host needs a path / that names the Service",
            Some(_) => "",
        };
        if !why.is_empty() {
            let message = format!("has no effect for host {name}: {why}");
            self.problem(ingress, KEY, Severity::Warning, message);
            return None;
        }
        let kind = kind?;
        let root = self.locations.iter().find(|root| root.path == "/" && root.kind == kind)?;
        match &root.backend {
            Backend::Upstream(id) => Some(id.clone()),
            Backend::NotFound | Backend::Denied(_) => None,
        }
    }
}
