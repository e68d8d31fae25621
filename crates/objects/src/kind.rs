//! The kinds that Fairway reads, and what they are called.

use crate::ObjectKey;
use std::fmt;

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

    /// `kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "Ingress",
            Self::IngressClass => "IngressClass",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Namespace => "Namespace",
            Self::GatewayClass => "GatewayClass",
            Self::Gateway => "Gateway",
            Self::ListenerSet => "ListenerSet",
            Self::HttpRoute => "HTTPRoute",
            Self::GrpcRoute => "GRPCRoute",
            Self::TcpRoute => "TCPRoute",
            Self::UdpRoute => "UDPRoute",
            Self::TlsRoute => "TLSRoute",
            Self::BackendTlsPolicy => "BackendTLSPolicy",
            Self::ReferenceGrant => "ReferenceGrant",
        }
    }

    /// `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Ingress | Self::IngressClass => "networking.k8s.io/v1",
            Self::EndpointSlice => "discovery.k8s.io/v1",
            Self::Service | Self::Secret | Self::ConfigMap | Self::Namespace => "v1",
            Self::GatewayClass
            | Self::Gateway
            | Self::ListenerSet
            | Self::HttpRoute
            | Self::GrpcRoute
            | Self::TcpRoute
            | Self::UdpRoute
            | Self::TlsRoute
            | Self::BackendTlsPolicy => "gateway.networking.k8s.io/v1",
            Self::ReferenceGrant => "gateway.networking.k8s.io/v1beta1",
        }
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
