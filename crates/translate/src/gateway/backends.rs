//! The Service ports that routes lead to, and why there is none.

use super::few::{Few, Set};
use super::ungranted;
use model::UpstreamId;
use objects::gateway::{BackendRef, ObjectRef, short};
use objects::{ObjectKey, Service, ServicePort, Snapshot};
use std::sync::Arc;

/// A port of a Service that rules lead to.
pub(super) type Port = (ObjectKey, u16);

/// The upstream of a Service port; Ingresses name theirs otherwise.
pub(super) fn upstream_id((service, port): &Port) -> UpstreamId {
    UpstreamId::new(format!("gateway:{}/{}:{port}", service.namespace, service.name))
}

/// Who refers to a backend, and how it is to be reached.
pub(super) struct Wanted<'a> {
    pub(super) kind: &'static str,
    pub(super) namespace: &'a Arc<str>,
    pub(super) protocol: &'static str,
}

impl Wanted<'_> {
    /// The Service port of a backend, or reason and message of why there is none; Services are noted, and namespaces
    /// that are others'.
    pub(super) fn port(
        &self,
        backend: &BackendRef,
        snapshot: &Snapshot,
        services: &mut Few<ObjectKey>,
        abroad: &mut Few<Arc<str>>,
    ) -> Result<Port, (&'static str, String)> {
        let (object, own) = (&backend.object, self.namespace);
        let mut visit = |key: &ObjectKey| {
            if key.namespace != *own {
                abroad.put(Arc::clone(&key.namespace));
            }
        };
        visit(&object.key(own));
        if !object.group.is_empty() || object.kind != "Service" {
            let message = match (short(&object.group), short(&object.kind)) {
                ("", kind) => format!("backends of kind {kind} are not known; name a Service"),
                (group, kind) => format!(
                    "backends of kind {kind} and group {group} are not known; name a Service, and no group"
                ),
            };
            return Err(("InvalidKind", message));
        }
        let key = object.key(own);
        let (namespace, name) = (&key.namespace, &key.name);
        if !snapshot.grants.permit(self.kind, own, object) {
            let remedy = ungranted::remedy(self.kind, own, object, snapshot);
            let message = format!(
                "Service {namespace}/{name} may not be referred to from namespace {own}: {remedy}"
            );
            return Err(("RefNotPermitted", message));
        }
        services.put(key.clone());
        let missing = |message: String| ("BackendNotFound", message);
        let service = snapshot.services.get(&key).ok_or_else(|| {
            missing(format!(
                "Service {namespace}/{name} does not exist: create it, or name another"
            ))
        })?;
        let port =
            backend.port.ok_or_else(|| missing("the backend has no port: name one".to_owned()))?;
        // Who lends a name lends what it leads to in his own namespace.
        let named = named_by(service).filter(|named| named.namespace != key.namespace);
        named.iter().for_each(&mut visit);
        named.iter().for_each(|named| services.put(named.clone()));
        let target = named.map(|named| ObjectRef {
            namespace: Some(named.namespace.to_string()),
            name: named.name.to_string(),
            ..object.clone()
        });
        // A name in one's own namespace is no way around the ReferenceGrants of another one.
        if let Some(to) = target.filter(|to| !snapshot.grants.permit(self.kind, own, to)) {
            let remedy = ungranted::remedy(self.kind, own, &to, snapshot);
            let message = format!(
                "Service {namespace}/{name} leads to Service {}/{}, which may not be referred to from namespace {own}: \
                 {remedy}",
                to.namespace.unwrap_or_default(),
                to.name
            );
            return Err(("RefNotPermitted", message));
        }
        if port_of(service, port, self.protocol).is_some() {
            Ok((key, port))
        } else {
            let protocol = self.protocol;
            Err(missing(format!("Service {namespace}/{name} has no {protocol} port {port}")))
        }
    }
}

/// The Service, or Pod, of the cluster that an ExternalName leads to: `[POD.]SERVICE.NAMESPACE.svc[.cluster.local]` or
/// `ADDRESS.NAMESPACE.pod...`. Search domains make no other name one: those of routes are looked up without.
fn named_by(service: &Service) -> Option<ObjectKey> {
    let name = service.external_name.as_ref().filter(|_| service.kind == "ExternalName")?;
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let mut labels = name.strip_suffix(".cluster.local").unwrap_or(&name).rsplit('.');
    labels.next().filter(|kind| ["svc", "pod"].contains(kind))?;
    Some(ObjectKey::new(labels.next()?, labels.next()?))
}

/// A port of a Service.
pub(super) fn port_of<'s>(
    service: &'s Service,
    port: u16,
    protocol: &str,
) -> Option<&'s ServicePort> {
    service.ports.iter().find(|found| found.port == port && found.protocol == protocol)
}
