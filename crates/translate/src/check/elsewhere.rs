//! Names that mean something in another namespace than they say. It takes a look at all objects, which nobody takes
//! while they change, and tells one namespace of another, which only whoever has all of them may know. Of namespaces
//! that are not watched nothing is said: a controller would not see what is there.

use super::left_out::of_route;
use super::remark::Remark;
use crate::Options;
use crate::ingress::is_watched_namespace as is_watched;
use crate::settings::nearest;
use objects::gateway::{BackendRef, GROUP, ParentRef};
use objects::{Kind, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// Gateways that routes name in a namespace that has none of the name, where another one has.
pub(super) fn parents(snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let mut by_name = BTreeMap::new();
    let gateways = snapshot.gateways.keys().filter(|key| is_watched(&key.namespace, options));
    for ObjectKey { namespace, name } in gateways {
        by_name.entry(&**name).or_insert(namespace);
    }
    let remarks = routes(snapshot, options).flat_map(|(kind, key, parents, _)| {
        let gateways = parents.iter().map(|parent| &parent.object);
        let gateways = gateways.filter(|object| object.group == GROUP && object.kind == "Gateway");
        let missing = gateways.filter(|object| {
            let namespace = object.namespace.as_deref().unwrap_or(&key.namespace);
            !snapshot.gateways.contains_key(&ObjectKey::new(namespace, object.name.as_str()))
        });
        let by_name = &by_name;
        missing.filter_map(move |object| {
            let (namespace, name) = (by_name.get(&*object.name)?, &object.name);
            Some(Remark {
                key: Some(format!("{} spec.parentRefs", of_route(kind, key))),
                message: format!("Gateway {namespace}/{name} has the name: write namespace: {namespace} if it is meant"),
            })
        })
    });
    remarks.collect()
}

/// ReferenceGrants that name a namespace which is nearly the one that asks for them.
pub(super) fn grants(snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let mut asking = BTreeMap::<(&str, &str), BTreeSet<&str>>::new();
    for (kind, key, _, backends) in routes(snapshot, options) {
        for object in backends.into_iter().map(|backend| &backend.object) {
            let Some(namespace) = object.namespace.as_deref() else { continue };
            if !snapshot.grants.permit(kind.name(), &key.namespace, object) {
                asking.entry((namespace, kind.name())).or_default().insert(&key.namespace);
            }
        }
    }
    let grants = snapshot.grants.iter().filter(|(key, _)| is_watched(&key.namespace, options));
    let remarks = grants.flat_map(|(key, grant)| {
        let asking = &asking;
        grant.from.iter().filter_map(move |from| {
            let asking = asking.get(&(&*key.namespace, &*from.kind))?;
            let meant = nearest(&from.namespace, asking.iter().copied())?;
            (meant != from.namespace).then(|| Remark {
                key: Some(format!("ReferenceGrant {}/{} spec.from", key.namespace, key.name)),
                message: format!(
                    "lets {}s of namespace {} in, and none of namespace {meant}, which asks for it; did you mean {meant}?",
                    from.kind, from.namespace
                ),
            })
        })
    });
    remarks.collect()
}

type Route<'s> = (Kind, &'s ObjectKey, &'s [ParentRef], Vec<&'s BackendRef>);

/// All routes of watched namespaces, with what they name as parents and as backends of rules.
fn routes<'s>(snapshot: &'s Snapshot, options: &Options) -> impl Iterator<Item = Route<'s>> {
    let http = snapshot.http_routes.iter().map(|((kind, key), route)| -> Route<'_> {
        let backends = route.rules.iter().flat_map(|rule| &rule.backends).collect();
        (*kind, key, &route.parents, backends)
    });
    let streams = snapshot.stream_routes.iter().map(|((kind, key), route)| -> Route<'_> {
        (*kind, key, &route.parents, route.backends.iter().collect())
    });
    http.chain(streams).filter(|(_, key, _, _)| is_watched(&key.namespace, options))
}
