//! Names of what is nowhere: routes of Gateways, and Gateways of classes, that do not exist. What exists and is another
//! controller's is nobody's mistake.

use super::kinds::RouteId;
use super::parents::{Parent, parents};
use crate::Options;
use crate::kinds::kind_of;
use crate::settings::nearest;
use imbl::OrdMap;
use model::{Kind, Origin, Problem, Severity};
use objects::gateway::{Gateway, ListenerSet, ParentRef};
use objects::{ObjectKey, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names of an object that are compared with those that there are, how many of these, and bytes of each: comparing
/// takes the product of lengths, and whoever may write routes may write very many.
const NAMES: usize = 2;
const CANDIDATES: usize = 50;
const LONGEST: usize = 63;

/// A note for each Gateway and ListenerSet that a route names and that is not there. Of namespaces that are not
/// watched nothing is known.
pub(super) fn of_route(
    (kind, own): &RouteId,
    named: &[ParentRef],
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Problem> {
    let named = parents(named, &own.namespace);
    of_parents((kind_of(*kind), own, "spec.parentRefs"), named, snapshot, options)
}

/// A note if a ListenerSet names a Gateway that is not there.
pub(super) fn of_set(set: &ListenerSet, snapshot: &Snapshot, options: &Options) -> Vec<Problem> {
    let named = set.gateway().map(Parent::Gateway).into_iter().collect();
    let own = (Kind::ListenerSet, &set.meta.key, "spec.parentRef");
    of_parents(own, named, snapshot, options)
}

fn of_parents(
    (kind, own, field): (Kind, &ObjectKey, &str),
    named: BTreeSet<Parent>,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Problem> {
    let is_watched =
        |parent: &ObjectKey| parent.namespace == own.namespace || options.watch_namespace.is_none();
    let mut compared = 0;
    let mut note =
        |called: &str, parent: &ObjectKey, here: &mut dyn Iterator<Item = &ObjectKey>| {
            let ObjectKey { namespace, name } = parent;
            let here = here.take_while(|key| key.namespace == *namespace);
            let here = here.filter(|key| key.name.len() <= LONGEST);
            compared += 1;
            let most = if compared > NAMES || name.len() > LONGEST { 0 } else { CANDIDATES };
            let meant = meant(nearest(name, here.map(|key| &*key.name).take(most)));
            note(kind, own, field, format!("there is no {called} {namespace}/{name}{meant}"))
        };
    let (gateways, sets) = (&snapshot.gateways, &snapshot.listener_sets);
    let notes = named.iter().filter_map(|parent| match parent {
        Parent::Gateway(key) if is_watched(key) && !gateways.contains_key(key) => {
            Some(note("Gateway", key, &mut beginning(gateways, &key.namespace)))
        }
        Parent::Set(key) if is_watched(key) && !sets.contains_key(key) => {
            Some(note("ListenerSet", key, &mut beginning(sets, &key.namespace)))
        }
        Parent::Gateway(_) | Parent::Set(_) => None,
    });
    notes.collect()
}

/// The objects from the first one of a namespace on.
fn beginning<'o, V>(
    all: &'o OrdMap<ObjectKey, V>,
    namespace: &Arc<str>,
) -> impl Iterator<Item = &'o ObjectKey> {
    all.range(ObjectKey::new(namespace.clone(), "")..).map(|(key, _)| key)
}

/// A note if there is no class of the name that a Gateway gives.
pub(super) fn of_gateway(gateway: &Gateway, snapshot: &Snapshot) -> Option<Problem> {
    let class = &gateway.class;
    let classes = &snapshot.gateway_classes;
    if classes.contains_key(&ObjectKey::new("", class.as_str())) {
        return None;
    }
    let meant = meant(nearest(class, classes.keys().map(|key| &*key.name)));
    let known = if classes.is_empty() { " that can be read" } else { "" };
    let message = format!("there is no GatewayClass {class}{known}{meant}");
    Some(note(Kind::Gateway, &gateway.meta.key, "spec.gatewayClassName", message))
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

pub(super) fn note(kind: Kind, key: &ObjectKey, field: &str, message: String) -> Problem {
    let origin = Origin::new(kind, key.namespace.clone(), key.name.clone());
    Problem {
        origin,
        key: Some(field.to_owned()),
        severity: Severity::Notice,
        message: message.into(),
    }
}
