//! The kinds that Fairway reads, and what they are called.

use crate::ObjectKey;
use std::fmt;

/// The group of the Gateway API.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// The kinds that Fairway reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// networking.k8s.io/v1 Ingress.
    Ingress,
    /// networking.k8s.io/v1 IngressClass.
    IngressClass,
    /// v1 Service.
    Service,
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice,
    /// v1 Secret.
    Secret,
    /// v1 ConfigMap.
    ConfigMap,
    /// v1 Namespace.
    Namespace,
    /// gateway.networking.k8s.io/v1 GatewayClass.
    GatewayClass,
    /// gateway.networking.k8s.io/v1 Gateway.
    Gateway,
    /// gateway.networking.k8s.io/v1 ListenerSet.
    ListenerSet,
    /// gateway.networking.k8s.io/v1 HTTPRoute.
    HttpRoute,
    /// gateway.networking.k8s.io/v1 GRPCRoute.
    GrpcRoute,
    /// gateway.networking.k8s.io/v1 TCPRoute.
    TcpRoute,
    /// gateway.networking.k8s.io/v1 UDPRoute.
    UdpRoute,
    /// gateway.networking.k8s.io/v1 TLSRoute.
    TlsRoute,
    /// gateway.networking.k8s.io/v1 BackendTLSPolicy.
    BackendTlsPolicy,
    /// gateway.networking.k8s.io/v1beta1 ReferenceGrant.
    ReferenceGrant,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Ingress,
        Self::IngressClass,
        Self::Service,
        Self::EndpointSlice,
        Self::Secret,
        Self::ConfigMap,
        Self::Namespace,
        Self::GatewayClass,
        Self::Gateway,
        Self::ListenerSet,
        Self::HttpRoute,
        Self::GrpcRoute,
        Self::TcpRoute,
        Self::UdpRoute,
        Self::TlsRoute,
        Self::BackendTlsPolicy,
        Self::ReferenceGrant,
    ];

    /// `kind`, what paths of the API call its objects, and `apiVersion`.
    const fn called(self) -> (&'static str, &'static str, &'static str) {
        const V1: &str = "gateway.networking.k8s.io/v1";
        match self {
            Self::Ingress => ("Ingress", "ingresses", "networking.k8s.io/v1"),
            Self::IngressClass => ("IngressClass", "ingressclasses", "networking.k8s.io/v1"),
            Self::Service => ("Service", "services", "v1"),
            Self::EndpointSlice => ("EndpointSlice", "endpointslices", "discovery.k8s.io/v1"),
            Self::Secret => ("Secret", "secrets", "v1"),
            Self::ConfigMap => ("ConfigMap", "configmaps", "v1"),
            Self::Namespace => ("Namespace", "namespaces", "v1"),
            Self::GatewayClass => ("GatewayClass", "gatewayclasses", V1),
            Self::Gateway => ("Gateway", "gateways", V1),
            Self::ListenerSet => ("ListenerSet", "listenersets", V1),
            Self::HttpRoute => ("HTTPRoute", "httproutes", V1),
            Self::GrpcRoute => ("GRPCRoute", "grpcroutes", V1),
            Self::TcpRoute => ("TCPRoute", "tcproutes", V1),
            Self::UdpRoute => ("UDPRoute", "udproutes", V1),
            Self::TlsRoute => ("TLSRoute", "tlsroutes", V1),
            Self::BackendTlsPolicy => ("BackendTLSPolicy", "backendtlspolicies", V1),
            // In the version that all bundles of definitions serve.
            Self::ReferenceGrant => {
                ("ReferenceGrant", "referencegrants", "gateway.networking.k8s.io/v1beta1")
            }
        }
    }

    /// `kind`.
    pub const fn name(self) -> &'static str {
        self.called().0
    }

    /// What paths of the API call its objects.
    pub const fn plural(self) -> &'static str {
        self.called().1
    }

    /// `apiVersion`.
    pub const fn api_version(self) -> &'static str {
        self.called().2
    }

    /// `apiVersion` without the group.
    pub const fn version(self) -> &'static str {
        let all = self.api_version();
        let mut at = all.len();
        while at > 0 && all.as_bytes()[at - 1] != b'/' {
            at -= 1;
        }
        all.split_at(at).1
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it is of the Gateway API, which a cluster need not have.
    pub fn is_of_gateways(self) -> bool {
        self.api_version().starts_with(GROUP)
    }

    /// Whether an object of this kind is read in that version; ReferenceGrants have the same fields in both of theirs.
    pub fn is_read_as(self, api_version: &str) -> bool {
        api_version == self.api_version()
            || (self == Self::ReferenceGrant && api_version == "gateway.networking.k8s.io/v1")
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        !matches!(self, Self::IngressClass | Self::Namespace | Self::GatewayClass)
    }

    /// How messages name one object: `Ingress shop/web`, `IngressClass nginx`.
    pub fn label(self, key: &ObjectKey) -> String {
        if key.namespace.is_empty() {
            format!("{self} {}", key.name)
        } else {
            format!("{self} {}/{}", key.namespace, key.name)
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
