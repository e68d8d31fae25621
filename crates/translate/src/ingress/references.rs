//! What an Ingress refers to, so that it is known which Secrets must be kept and which changes touch it.

use crate::Options;
use crate::settings::normalise;
use objects::{Ingress, IngressBackend, ObjectKey, Reference};
use std::collections::BTreeSet;

/// Annotations that name a Secret.
const SECRETS: &[&str] = &["proxy-ssl-secret", "auth-tls-secret", "auth-secret"];
/// Annotations that name a ConfigMap.
const CONFIG_MAPS: &[&str] =
    &["auth-proxy-set-headers", "custom-headers", "fastcgi-params-configmap"];
/// Annotations that name a Service.
const SERVICES: &[&str] = &["default-backend"];

/// Everything that an Ingress refers to, in any class, sorted.
pub fn references(ingress: &Ingress, options: &Options) -> Vec<Reference> {
    let namespace = &ingress.meta.key.namespace;
    let mut found: Vec<Reference> = by_annotations(ingress, options).collect();
    let tls =
        ingress.tls.iter().filter_map(|tls| tls.secret.as_deref()).filter(|name| !name.is_empty());
    found.extend(tls.map(|name| Reference::Secret(ObjectKey::new(namespace.clone(), name))));
    let paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
    for backend in paths.map(|path| &path.backend).chain(ingress.default_backend.as_deref()) {
        if let IngressBackend::Service { name, .. } = backend {
            found.push(Reference::Service(ObjectKey::new(namespace.clone(), name.as_str())));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The text of an annotation, if it is there and not empty.
pub(crate) fn annotation_of(ingress: &Ingress, name: &str, options: &Options) -> Option<String> {
    let name = format!("{}/{name}", options.annotations_prefix);
    let value = normalise(ingress.meta.annotations.get(&name)?);
    (!value.is_empty()).then(|| value.into_owned())
}

/// Names of annotations, and what their values refer to.
type Kind = (&'static [&'static str], fn(ObjectKey) -> Reference);

/// Whether an annotation of an Ingress, in its current version, names a Secret.
pub(crate) fn names_by_annotation(
    ingress: &Ingress,
    secret: &ObjectKey,
    options: &Options,
) -> bool {
    let wanted = Reference::Secret(secret.clone());
    by_annotations(ingress, options).any(|reference| reference == wanted)
}

/// The Secrets and ConfigMaps of its own namespace that an Ingress names in annotations, each once.
pub(crate) fn named(ingress: &Ingress, options: &Options) -> BTreeSet<Reference> {
    let is_own = |reference: &Reference| match reference {
        Reference::Secret(key) | Reference::ConfigMap(key) => {
            key.namespace == ingress.meta.key.namespace
        }
        Reference::Service(_) => false,
    };
    by_annotations(ingress, options).filter(is_own).collect()
}

fn by_annotations(ingress: &Ingress, options: &Options) -> impl Iterator<Item = Reference> {
    let kinds: [Kind; 3] = [
        (SECRETS, Reference::Secret),
        (CONFIG_MAPS, Reference::ConfigMap),
        (SERVICES, Reference::Service),
    ];
    let key = |name: &str| match name.split_once('/') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey::new(ingress.meta.key.namespace.clone(), name),
    };
    kinds.into_iter().flat_map(move |(names, kind)| {
        names.iter().filter_map(move |name| {
            annotation_of(ingress, name, options).map(|value| kind(key(&value)))
        })
    })
}
