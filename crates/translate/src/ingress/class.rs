//! Which Ingresses are ours (compat/behaviour.md section 2).

use crate::Options;
use crate::settings::nearest;
use objects::{Ingress, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The annotation that names a class where `spec.ingressClassName` does not.
pub(crate) const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

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

    /// Their names; none if IngressClasses cannot be listed.
    pub(crate) fn names(&self) -> Option<&BTreeSet<Arc<str>>> {
        self.0.as_ref()
    }
}

/// Whether an Ingress is to be served.
pub(crate) fn is_ours(ingress: &Ingress, classes: &Classes, options: &Options) -> bool {
    let is_refused = options.disable_catch_all && ingress.default_backend.is_some();
    !is_refused && is_watched(ingress, options) && has_our_class(ingress, classes, options)
}

/// Whether an Ingress is in a namespace that is watched. A cluster sends no others; a folder holds what it holds.
pub(crate) fn is_watched(ingress: &Ingress, options: &Options) -> bool {
    is_watched_namespace(&ingress.meta.key.namespace, options)
}

/// Whether a namespace is watched.
pub(crate) fn is_watched_namespace(namespace: &str, options: &Options) -> bool {
    options.watch_namespace.as_deref().is_none_or(|watched| watched == namespace)
}

/// Whether an Ingress is meant for this controller.
pub(crate) fn has_our_class(ingress: &Ingress, classes: &Classes, options: &Options) -> bool {
    let annotation = ingress.meta.annotations.get(CLASS_ANNOTATION);
    is_our_class(ingress.class.as_deref(), annotation.map(String::as_str), classes, options)
}

/// Whether a later version of an Ingress that was ours is meant for us as well, be its class there or not.
pub(crate) fn is_meant_alike(before: &Ingress, now: &Ingress, options: &Options) -> bool {
    let annotation = |ingress: &Ingress| ingress.meta.annotations.get(CLASS_ANNOTATION).cloned();
    let is_refused = options.disable_catch_all && now.default_backend.is_some();
    !is_refused && before.class == now.class && annotation(before) == annotation(now)
}

/// Whether an Ingress with this `spec.ingressClassName` and annotation is.
pub(crate) fn is_our_class(
    class: Option<&str>,
    annotation: Option<&str>,
    classes: &Classes,
    options: &Options,
) -> bool {
    match (class, &classes.0, annotation) {
        (Some(class), Some(accepted), _) => accepted.contains(class),
        // IngressClasses are not ours to see: the annotation alone counts.
        (Some(_), None, None) => false,
        (_, _, Some(name)) => name == options.ingress_class,
        (None, _, None) => options.watch_ingress_without_class,
    }
}

/// Why an Ingress is not to be served, where [`is_ours`] says that it is not; and the remedy.
pub(crate) fn why_not_ours(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> String {
    if !is_watched(ingress, options) {
        return "its namespace is not the one of --watch-namespace".to_owned();
    }
    let classes = snapshot.classes.as_ref();
    let named = |name: &str| {
        classes.and_then(|classes| classes.values().find(|class| *class.meta.key.name == *name))
    };
    match (&ingress.class, ingress.meta.annotations.get(CLASS_ANNOTATION)) {
        (Some(name), annotation) => match named(name) {
            Some(class) if class.controller.is_empty() => {
                let ours = &options.controller_class;
                format!("its IngressClass {name} has no spec.controller: write {ours} there")
            }
            Some(class) if class.controller != options.controller_class => {
                format!("its class {name} belongs to {} (--controller-class)", class.controller)
            }
            Some(_) => "it has a default backend (--disable-catch-all)".to_owned(),
            None if classes.is_none() => match annotation {
                Some(name) => other_annotation(name, options),
                None => "IngressClasses cannot be listed, and it has no annotation".to_owned(),
            },
            None => {
                let names = classes.into_iter().flat_map(|classes| classes.values());
                let meant = nearest(name, names.map(|class| &*class.meta.key.name));
                let meant = meant.map(|meant| format!("; did you mean {meant}?"));
                format!("there is no IngressClass {name}{}", meant.unwrap_or_default())
            }
        },
        (None, Some(name)) if *name != options.ingress_class => other_annotation(name, options),
        (None, None) if !options.watch_ingress_without_class => {
            "it has no class: write spec.ingressClassName, or count it as ours by --watch-ingress-without-class"
                .to_owned()
        }
        (None, _) => "it has a default backend (--disable-catch-all)".to_owned(),
    }
}

fn other_annotation(name: &str, options: &Options) -> String {
    let ours = &options.ingress_class;
    format!("its annotation {CLASS_ANNOTATION} says {name}, ours is {ours} (--ingress-class)")
}
