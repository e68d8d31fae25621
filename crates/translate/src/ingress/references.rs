//! What an Ingress refers to, so that it is known which Secrets must be kept and which changes touch it.

use crate::Options;
use crate::settings::normalise;
use kubernetes::Reference;
use kubernetes::objects::{Ingress, IngressBackend, ObjectKey};

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
    let key = |name: &str| match name.split_once('/') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey::new(namespace.clone(), name),
    };
    let annotated = |names: &'static [&'static str]| {
        names.iter().filter_map(|name| {
            let value =
                ingress.meta.annotations.get(&format!("{}/{name}", options.annotations_prefix))?;
            let value = normalise(value);
            (!value.is_empty()).then(|| key(&value))
        })
    };
    let mut found: Vec<Reference> = annotated(SECRETS).map(Reference::Secret).collect();
    found.extend(annotated(CONFIG_MAPS).map(Reference::ConfigMap));
    found.extend(annotated(SERVICES).map(Reference::Service));
    let tls =
        ingress.tls.iter().filter_map(|tls| tls.secret.as_deref()).filter(|name| !name.is_empty());
    found.extend(tls.map(|name| Reference::Secret(ObjectKey::new(namespace.clone(), name))));
    let paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
    for backend in paths.map(|path| &path.backend).chain(&ingress.default_backend) {
        if let IngressBackend::Service { name, .. } = backend {
            found.push(Reference::Service(ObjectKey::new(namespace.clone(), name.as_str())));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
