//! Certificates that will not be renewed: cert-manager answers challenges by Ingresses of the class that its Issuer
//! names, and after a host has moved to another class nobody asks the old one.

use super::remark::Remark;
use crate::Options;
use crate::ingress::{CLASS_ANNOTATION, Classes, is_our_class};
use objects::{Http01, Ingress, Issuer, ObjectKey, Snapshot, SolverIngress};
use std::collections::BTreeSet;
use std::sync::Arc;

const ISSUER: &str = "cert-manager.io/issuer";
const CLUSTER_ISSUER: &str = "cert-manager.io/cluster-issuer";
const KIND: &str = "cert-manager.io/issuer-kind";
/// Puts the challenge into the Ingress itself.
const IN_PLACE: &str = "acme.cert-manager.io/http01-edit-in-place";
/// Go before what the Issuer says of classes.
const CLASS: &str = "acme.cert-manager.io/http01-ingress-class";
const CLASS_NAME: &str = "acme.cert-manager.io/http01-ingress-ingressclassname";

/// Whether any Ingress names an Issuer of cert-manager, so that these have to be read.
pub fn name_issuers(snapshot: &Snapshot) -> bool {
    let names = |ingress: &Arc<Ingress>| {
        [ISSUER, CLUSTER_ISSUER].iter().any(|name| ingress.meta.annotations.contains_key(*name))
    };
    snapshot.ingresses.values().any(names)
}

/// What is to be known of an Ingress of ours whose challenges are somebody else's.
pub(super) fn elsewhere(
    ingress: &Ingress,
    snapshot: &Snapshot,
    classes: &Classes,
    options: &Options,
) -> Option<Remark> {
    let says = |name: &str| ingress.meta.annotations.get(name).map(|value| &**value);
    if says(IN_PLACE) == Some("true") {
        return None;
    }
    let (key, issuer) = issuer(ingress, snapshot)?;
    let hosts: BTreeSet<&str> =
        ingress.tls.iter().flat_map(|tls| tls.hosts.iter().map(|host| &**host)).collect();
    let (host, class) = hosts.into_iter().find_map(|host| {
        let solver = issuer.solver(host)?.http01.as_ref()?;
        let solver = asked(solver, says(CLASS), says(CLASS_NAME))?;
        let SolverIngress { class, ingress_class_name: name, .. } = &solver;
        let is_ours = is_our_class(name.as_deref(), class.as_deref(), classes, options);
        (!is_ours).then(|| (host, named(&solver)))
    })?;
    let ObjectKey { namespace, name } = &issuer.key;
    let kind = if namespace.is_empty() { "ClusterIssuer" } else { "Issuer" };
    let remedy = match &ingress.class {
        Some(ours) => format!("annotation {CLASS_NAME}: {ours} here"),
        None => format!("annotation {CLASS}: {} here", options.ingress_class),
    };
    let message = format!(
        "{kind} {name} answers challenges for {host} by Ingresses {class}, which are not ours: once clients come here, \
         the certificate is not renewed; write our class into http01.ingress of that solver, or {remedy}"
    );
    Some(Remark { key: Some(key.to_owned()), message })
}

/// The Issuer that an Ingress names, if it was read, and the annotation that names it.
fn issuer<'a>(
    ingress: &Ingress,
    snapshot: &'a Snapshot,
) -> Option<(&'static str, &'a Arc<Issuer>)> {
    let says = |name: &str| ingress.meta.annotations.get(name).map(|value| &**value);
    let (key, name) =
        [ISSUER, CLUSTER_ISSUER].into_iter().find_map(|key| Some((key, says(key)?)))?;
    let is_of_cluster = match says(KIND) {
        Some(kind) => kind == "ClusterIssuer",
        None => key == CLUSTER_ISSUER,
    };
    let namespace = if is_of_cluster { "" } else { &ingress.meta.key.namespace };
    Some((key, snapshot.issuers.get(&ObjectKey::new(namespace, name))?))
}

/// The Ingress that a solver makes, after what the certified Ingress says of it; nothing where it makes none.
fn asked(solver: &Http01, class: Option<&str>, class_name: Option<&str>) -> Option<SolverIngress> {
    let mut made = solver.ingress.clone().filter(|made| made.name.is_none())?;
    if class.is_some() || class_name.is_some() {
        made.class = class.map(str::to_owned);
        made.ingress_class_name = class_name.map(str::to_owned);
    }
    Some(made)
}

/// Its class in words.
fn named(solver: &SolverIngress) -> String {
    match (&solver.ingress_class_name, &solver.class) {
        (Some(name), _) => format!("of class {name}"),
        (None, Some(name)) => format!("with annotation {CLASS_ANNOTATION}: {name}"),
        (None, None) => "without a class".to_owned(),
    }
}
