//! Which objects of the Gateway API are told what becomes of them, and where the API server has them.

use imbl::OrdMap;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use objects::{Kind, ObjectKey};
use std::sync::Arc;

/// Which kind of object. Replicas compare what they show by numbers that these names are part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    Class,
    Gateway,
    /// A ListenerSet.
    Set,
    /// An HTTPRoute or a GRPCRoute.
    Route(Kind),
    /// A TCPRoute, a UDPRoute or a TLSRoute.
    Stream(Kind),
    /// A BackendTLSPolicy.
    Policy,
    /// The Service of a Gateway, by the name of the Gateway.
    Service,
}

/// One object.
pub(super) type Id = (Which, ObjectKey);

impl Which {
    /// What it is in the API.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Class => Kind::GatewayClass,
            Self::Gateway => Kind::Gateway,
            Self::Set => Kind::ListenerSet,
            Self::Route(kind) | Self::Stream(kind) => kind,
            Self::Policy => Kind::BackendTlsPolicy,
            Self::Service => Kind::Service,
        }
    }
}

/// Where an object of the Gateway API is. Untyped, so that nothing is lost of what others have written.
pub(super) fn api(client: Client, which: Which, key: &ObjectKey) -> Api<DynamicObject> {
    let kind = which.kind();
    let named = GroupVersionKind::gvk(objects::gateway::GROUP, kind.version(), kind.name());
    let resource = ApiResource::from_gvk_with_plural(&named, kind.plural());
    if kind.is_namespaced() {
        Api::namespaced_with(client, &key.namespace, &resource)
    } else {
        Api::all_with(client, &resource)
    }
}

/// The keys of what differs.
pub(super) fn differing<K: Ord + Clone, V: PartialEq>(
    old: &OrdMap<K, Arc<V>>,
    new: &OrdMap<K, Arc<V>>,
) -> Vec<K> {
    objects::differing(old, new, |_, _| false).cloned().collect()
}
