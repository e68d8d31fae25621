//! Names of what is nowhere: routes of Gateways, and Gateways of classes, that do not exist. What exists and is another
//! controller's is nobody's mistake.

use super::attach::{is_gateway, parents};
use super::kinds::kind_of;
use super::listeners::key_of;
use crate::Options;
use crate::settings::nearest;
use model::{Kind, Origin, Problem, Severity};
use objects::gateway::{Gateway, HttpRoute, StreamRoute};
use objects::{ObjectKey, Snapshot};
use std::collections::BTreeSet;

/// A note for each Gateway that a route names and that is not there. Of namespaces that are not watched nothing is
/// known.
pub(super) fn of_route(route: &HttpRoute, snapshot: &Snapshot, options: &Options) -> Vec<Problem> {
    of_parents((kind_of(route.kind), &route.meta.key), parents(route), snapshot, options)
}

/// The same of a route of streams.
pub(super) fn of_stream(
    kind: Kind,
    route: &StreamRoute,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Problem> {
    let own = &route.meta.key;
    let named = route.parents.iter().filter(|parent| is_gateway(parent));
    let named = named.map(|parent| key_of(&parent.object, &own.namespace)).collect();
    of_parents((kind, own), named, snapshot, options)
}

fn of_parents(
    (kind, own): (Kind, &ObjectKey),
    named: BTreeSet<ObjectKey>,
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Problem> {
    let is_watched =
        |parent: &ObjectKey| parent.namespace == own.namespace || options.watch_namespace.is_none();
    let absent = |parent: &ObjectKey| is_watched(parent) && !snapshot.gateways.contains_key(parent);
    let note = |parent: ObjectKey| {
        let ObjectKey { namespace, name } = &parent;
        let here = snapshot.gateways.keys().filter(|key| key.namespace == *namespace);
        let meant = meant(nearest(name, here.map(|key| &*key.name)));
        let message = format!("there is no Gateway {namespace}/{name}{meant}");
        note(kind, own, "spec.parentRefs", message)
    };
    named.into_iter().filter(absent).map(note).collect()
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
