//! Secrets with certificates that no Ingress names.

use super::remark::Remark;
use crate::{Options, references};
use objects::{Ingress, ObjectKey, Reference, Snapshot};
use std::collections::BTreeSet;

/// Certificates in the namespaces of our Ingresses that nobody uses.
pub(super) fn secrets(snapshot: &Snapshot, ours: &[&Ingress], options: &Options) -> Vec<Remark> {
    let namespaces: BTreeSet<&str> =
        ours.iter().map(|ingress| &*ingress.meta.key.namespace).collect();
    let mut used: BTreeSet<ObjectKey> = options.default_ssl_certificate.iter().cloned().collect();
    // Another controller's Ingresses use theirs.
    for ingress in snapshot.ingresses.values() {
        used.extend(references(ingress, options).into_iter().filter_map(|found| match found {
            Reference::Secret(key) => Some(key),
            Reference::ConfigMap(_) | Reference::Service(_) => None,
        }));
    }
    let unused = snapshot.secrets.values().filter(|secret| {
        let key = &secret.meta.key;
        secret.kind == "kubernetes.io/tls"
            && namespaces.contains(&*key.namespace)
            && !used.contains(key)
    });
    unused
        .map(|secret| Remark {
            key: Some(format!("Secret {}/{}", secret.meta.key.namespace, secret.meta.key.name)),
            message: "a certificate that no Ingress names; remove it if nothing else uses it"
                .to_owned(),
        })
        .collect()
}
