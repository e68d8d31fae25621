//! All objects at one moment, immutable. Persistent maps: taking a Snapshot copies a few pointers, and two of them
//! are compared by what differs.

use crate::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, Grants, HttpRoute, Ingress,
    IngressClass, Issuer, Kind, ListenerSet, Namespace, ObjectKey, Secret, Service, StreamRoute,
};
use imbl::OrdMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// All objects at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Ingresses in the watched namespaces, of any class.
    pub ingresses: OrdMap<ObjectKey, Arc<Ingress>>,
    /// IngressClasses; none if listing them is forbidden.
    pub classes: Option<OrdMap<ObjectKey, Arc<IngressClass>>>,
    /// Services.
    pub services: OrdMap<ObjectKey, Arc<Service>>,
    /// EndpointSlices by namespace and name of their Service, then by their own name.
    pub slices: OrdMap<ObjectKey, Arc<OrdMap<ObjectKey, Arc<EndpointSlice>>>>,
    /// Secrets; only those that something refers to have data.
    pub secrets: OrdMap<ObjectKey, Arc<Secret>>,
    /// ConfigMaps.
    pub config_maps: OrdMap<ObjectKey, Arc<ConfigMap>>,
    /// Namespaces, where a selector or a Gateway makes them matter.
    pub namespaces: OrdMap<ObjectKey, Arc<Namespace>>,
    /// GatewayClasses of all controllers.
    pub gateway_classes: OrdMap<ObjectKey, Arc<GatewayClass>>,
    /// Gateways of all classes.
    pub gateways: OrdMap<ObjectKey, Arc<Gateway>>,
    /// ListenerSets, whosever Gateways they name.
    pub listener_sets: OrdMap<ObjectKey, Arc<ListenerSet>>,
    /// HTTPRoutes and GRPCRoutes.
    pub http_routes: OrdMap<(Kind, ObjectKey), Arc<HttpRoute>>,
    /// TCPRoutes, UDPRoutes and TLSRoutes.
    pub stream_routes: OrdMap<(Kind, ObjectKey), Arc<StreamRoute>>,
    /// BackendTLSPolicies.
    pub backend_tls: OrdMap<ObjectKey, Arc<BackendTlsPolicy>>,
    /// ReferenceGrants.
    pub grants: Grants,
    /// Kinds of the Gateway API that the cluster has, that others depend on for their guards, and that could not be
    /// listed: what they say is not known, which is something else than that there are none.
    pub unlisted: BTreeSet<Kind>,
    /// Issuers of cert-manager, where files have them or `check` asked for them: nothing is served by them.
    pub issuers: OrdMap<ObjectKey, Arc<Issuer>>,
    /// Objects and files that could not be read: what is wrong with each. An id begins with the label of its object.
    pub malformed: OrdMap<Arc<str>, Arc<Malformed>>,
}

/// An object or file that could not be read. Its last good version, if there was one, stays in the Snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Kind of the object; none for a file.
    pub kind: Option<Kind>,
    /// Namespace and name of the object; the name is path, line and column of a file.
    pub key: ObjectKey,
    /// The object in a file, where it is known which one it is.
    pub of: Option<(Kind, ObjectKey)>,
    /// Why it counts for nothing.
    pub why: Unread,
    /// What is wrong.
    pub message: String,
}

/// Why an object or file counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It cannot be read.
    Wrong,
    /// Another one with its name counts.
    Twice,
    /// It can be read, and is nothing that is served here.
    Passed,
    /// It is a kustomization that asks for more than is done here.
    Kustomization,
}

impl Malformed {
    /// The object that it is about, where that is known.
    pub fn object(&self) -> Option<(Kind, ObjectKey)> {
        self.of.clone().or_else(|| Some((self.kind?, self.key.clone())))
    }

    /// Whether one of them may be about any object: nobody can tell what is in its file.
    pub fn may_be_any(all: &OrdMap<Arc<str>, Arc<Self>>) -> bool {
        all.values().any(|one| one.why == Unread::Wrong && one.object().is_none())
    }

    /// Whether one of them is about this object; found by the order of their ids, however many there are.
    pub fn is_among(all: &OrdMap<Arc<str>, Arc<Self>>, kind: Kind, key: &ObjectKey) -> bool {
        let label: Arc<str> = kind.label(key).into();
        let next = all.range(label.clone()..).next();
        next.and_then(|(id, _)| id.strip_prefix(&*label))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }
}
