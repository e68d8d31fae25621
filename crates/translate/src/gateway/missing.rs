//! Names of what is nowhere: routes of Gateways, and Gateways of classes, that do not exist, and classes of controllers
//! that are nearly this one. What exists and is another controller's is nobody's mistake.

use super::kinds::RouteId;
use super::parents::{Parent, parents};
use crate::Options;
use crate::kinds::kind_of;
use crate::settings::{nearest, quote};
use imbl::OrdMap;
use model::{Kind, Origin, Problem, Severity};
use objects::gateway::{GROUP, Gateway, GatewayClass, ListenerSet, ParentRef};
use objects::{ObjectKey, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names of an object that are compared with those that there are, how many of these, and bytes of each: comparing
/// takes the product of lengths, and whoever may write routes may write very many.
const NAMES: usize = 2;
const CANDIDATES: usize = 50;
const LONGEST: usize = 63;

/// How many letters of a group or of the name of a controller are taken for a slip.
const SLIP: usize = 2;

/// A note for each Gateway and ListenerSet that a route names and that is not there, or names by a kind or group that
/// is none. Of namespaces that are not watched nothing is known.
pub(super) fn of_route(
    (kind, own): &RouteId,
    named: &[ParentRef],
    snapshot: &Snapshot,
    options: &Options,
) -> Vec<Problem> {
    let (kind, field) = (kind_of(*kind), "spec.parentRefs");
    let misnamed =
        named.iter().filter_map(|parent| Some(note(kind, own, field, misnamed(parent)?)));
    let misnamed: BTreeSet<_> = misnamed.collect();
    let named = parents(named, &own.namespace);
    let missing = of_parents((kind, own, field), named, snapshot, options);
    misnamed.into_iter().chain(missing).collect()
}

/// What is wrong with the kind or the group of a parent that nobody has: others have parents of other groups.
fn misnamed(parent: &ParentRef) -> Option<String> {
    let (group, kind) = (&*parent.object.group, &*parent.object.kind);
    let known = ["Gateway", "ListenerSet"];
    if group == GROUP {
        let kind_of_it = quote(kind);
        let meant = meant(nearest(kind, known.into_iter()));
        return (!known.contains(&kind)).then(|| {
            format!("kind {kind_of_it} is none that routes attach to, as Gateways and ListenerSets are{meant}")
        });
    }
    let is_near = group.is_empty()
        || group == "networking.k8s.io"
        || group.starts_with(GROUP)
        || is_slip(group, GROUP);
    let is_meant = known.contains(&kind) && is_near;
    is_meant.then(|| {
        format!("there is no {kind} of group {}: leave group out, or write {GROUP}", quote(group))
    })
}

/// Whether a text is another one but for a slip or two.
fn is_slip(text: &str, meant: &str) -> bool {
    text.len().abs_diff(meant.len()) <= SLIP
        && (1..=SLIP).contains(&strsim::osa_distance(&text.to_lowercase(), &meant.to_lowercase()))
        || (text != meant && text.eq_ignore_ascii_case(meant))
}

/// A note if the controller of a class is called nearly as this one is. Several that work side by side have names that
/// differ in what stands at the end.
pub(super) fn of_class(class: &GatewayClass, options: &Options) -> Option<Problem> {
    let (named, own) = (&class.controller, &options.gateway_controller);
    let is_another = || {
        let (theirs, ours) = (named.split('/'), own.split('/'));
        let stem = |part: &str| part.char_indices().next_back().map_or(0, |(last, _)| last);
        theirs.clone().count() == ours.clone().count()
            && theirs.zip(ours).all(|(part, own)| {
                part.starts_with(own)
                    || part.len() == own.len() && part[..stem(part)] == own[..stem(own)]
            })
    };
    (is_slip(named, own) && !is_another()).then(|| {
        let message = format!(
            "{} is not this controller, which is {own}: write that if it is meant",
            quote(named)
        );
        note(Kind::GatewayClass, &class.meta.key, "spec.controllerName", message)
    })
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

/// A note if there is no class of the name that a Gateway gives, or one whose controller is nearly this one.
pub(super) fn of_gateway(
    gateway: &Gateway,
    snapshot: &Snapshot,
    options: &Options,
) -> Option<Problem> {
    let (name, classes) = (&gateway.class, &snapshot.gateway_classes);
    let message = match classes.get(&ObjectKey::new("", name.as_str())) {
        Some(class) => {
            of_class(class, options)?;
            format!(
                "GatewayClass {name} is not this controller's, though nearly: see its controllerName"
            )
        }
        None => {
            let meant = meant(nearest(name, classes.keys().map(|key| &*key.name)));
            let known = if classes.is_empty() { " that can be read" } else { "" };
            format!("there is no GatewayClass {name}{known}{meant}")
        }
    };
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
