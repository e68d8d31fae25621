//! Whether an object may refer to one of another namespace.

use crate::translator::differing;
use objects::Snapshot;
use objects::gateway::{GROUP, ObjectRef};
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

/// Whether an object of `kind` in a namespace may refer to another object: in its own namespace, or where a
/// ReferenceGrant of the other one says so.
pub(super) fn permits(snapshot: &Snapshot, kind: &str, from: &str, to: &ObjectRef) -> bool {
    let namespace = to.namespace.as_deref().unwrap_or(from);
    if namespace == from {
        return true;
    }
    let first = objects::ObjectKey::new(namespace, "");
    let grants = snapshot.grants.range(first..).map(|(_, grant)| grant);
    let mut grants = grants.take_while(|grant| &*grant.meta.key.namespace == namespace);
    grants.any(|grant| {
        let is_from = grant.from.iter().any(|granted| {
            granted.group == GROUP && granted.kind == kind && granted.namespace == from
        });
        is_from
            && grant.to.iter().any(|granted| {
                let is_it = granted.name.as_ref().is_none_or(|name| *name == to.name);
                granted.group == to.group && granted.kind == to.kind && is_it
            })
    })
}
