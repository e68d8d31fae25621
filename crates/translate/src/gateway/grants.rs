//! Who is touched by ReferenceGrants that changed.

use crate::translator::differing;
use objects::Snapshot;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The namespaces whose objects a ReferenceGrant that changed lets, or let, refer to others.
pub(super) fn touched(old: &Snapshot, new: &Snapshot) -> BTreeSet<Arc<str>> {
    changed(old, new).into_iter().map(|(from, _)| from).collect()
}

/// The same, each with the namespace of the others.
pub(super) fn changed(old: &Snapshot, new: &Snapshot) -> BTreeSet<(Arc<str>, Arc<str>)> {
    let changed = differing(&old.grants, &new.grants);
    let versions = changed.flat_map(|key| [old.grants.get(key), new.grants.get(key)]).flatten();
    let pairs = versions.flat_map(|grant| {
        let to = &grant.meta.key.namespace;
        grant.from.iter().map(|from| (from.namespace.as_str().into(), to.clone()))
    });
    pairs.collect()
}
