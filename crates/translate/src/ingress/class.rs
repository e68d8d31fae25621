//! Which Ingresses are ours (compat/behaviour.md section 2).

use crate::Options;
use kubernetes::Snapshot;
use kubernetes::objects::Ingress;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The annotation that names a class where `spec.ingressClassName` does not.
const ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Names of the IngressClasses whose Ingresses are ours; none if IngressClasses cannot be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(Option<BTreeSet<Arc<str>>>);

impl Classes {
    /// The classes that count at this moment.
    pub(crate) fn accepted(snapshot: &Snapshot, options: &Options) -> Self {
        Self(snapshot.classes.as_ref().map(|classes| {
            let ours = classes.values().filter(|class| {
                let by_name =
                    options.ingress_class_by_name && *class.meta.key.name == *options.ingress_class;
                by_name || class.controller == options.controller_class
            });
            ours.map(|class| Arc::clone(&class.meta.key.name)).collect()
        }))
    }
}

/// Whether an Ingress is to be served.
pub(crate) fn is_ours(ingress: &Ingress, classes: &Classes, options: &Options) -> bool {
    let is_refused = options.disable_catch_all && ingress.default_backend.is_some();
    !is_refused && is_watched(ingress, options) && has_our_class(ingress, classes, options)
}

/// Whether an Ingress is in a namespace that is watched. A cluster sends no others; a folder holds what it holds.
pub(crate) fn is_watched(ingress: &Ingress, options: &Options) -> bool {
    let namespace = &*ingress.meta.key.namespace;
    options.watch_namespace.as_deref().is_none_or(|watched| watched == namespace)
}

/// Whether an Ingress is meant for this controller.
pub(crate) fn has_our_class(ingress: &Ingress, classes: &Classes, options: &Options) -> bool {
    let annotation = ingress.meta.annotations.get(ANNOTATION);
    match (&ingress.class, &classes.0, annotation) {
        (Some(class), Some(accepted), _) => accepted.contains(class.as_str()),
        // IngressClasses are not ours to see: the annotation alone counts.
        (Some(_), None, None) => false,
        (_, _, Some(name)) => *name == options.ingress_class,
        (None, _, None) => options.watch_ingress_without_class,
    }
}
