//! What is said where a ReferenceGrant is missing: which one nearly fits.

use crate::settings::quote;
use objects::Snapshot;
use objects::gateway::{GROUP, ObjectRef, ReferenceGrant};

/// Grants that are looked at for one that nearly fits, and how many of its fields may differ.
const LOOKED_AT: usize = 8;
const DIFFERENCES: usize = 2;

/// The remedy where an object of `kind` in the namespace `from` may not refer to another one. Only grants that name
/// this namespace are looked at: whoever changes one of them touches the object.
pub(super) fn remedy(kind: &str, from: &str, to: &ObjectRef, snapshot: &Snapshot) -> String {
    let namespace = to.namespace.as_deref().unwrap_or(from);
    let grants = snapshot.grants.between(from, namespace).take(LOOKED_AT);
    let misfits = grants.map(|grant| (misfits(grant, (kind, from), to), grant));
    let near = misfits.filter(|(misfits, _)| misfits.len() <= DIFFERENCES);
    match near.min_by_key(|(misfits, _)| misfits.len()) {
        None => "add a ReferenceGrant there".to_owned(),
        Some((misfits, grant)) => {
            let name = &grant.meta.key.name;
            let misfits = misfits.join(" and ");
            format!("add a ReferenceGrant there; {name} does not fit: its {misfits}")
        }
    }
}

/// Which fields of a grant keep it from fitting: of those that it lists, what fits best counts.
fn misfits(grant: &ReferenceGrant, (kind, own): (&str, &str), to: &ObjectRef) -> Vec<String> {
    let differ = |field: &str, found: &str, wanted: &str| {
        (found != wanted).then(|| format!("{field} is {}, not {}", quote(found), quote(wanted)))
    };
    let froms = grant.from.iter().filter(|from| from.namespace == own).map(|from| {
        let group = differ("from.group", &from.group, GROUP);
        group.into_iter().chain(differ("from.kind", &from.kind, kind)).collect::<Vec<_>>()
    });
    let tos = grant.to.iter().map(|found| {
        let group = differ("to.group", &found.group, &to.group);
        let kind = differ("to.kind", &found.kind, &to.kind);
        let name = found.name.as_deref().and_then(|name| differ("to.name", name, &to.name));
        [group, kind, name].into_iter().flatten().collect::<Vec<_>>()
    });
    let nothing = || vec![String::new(); DIFFERENCES + 1];
    let best = froms.min_by_key(Vec::len).unwrap_or_else(nothing);
    best.into_iter().chain(tos.min_by_key(Vec::len).unwrap_or_else(nothing)).collect()
}
