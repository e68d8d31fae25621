//! Where a thing came from, in three words, so that messages and labels need no Kubernetes object.

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// The kinds of things that can be at the origin of a setting or a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
    /// A file of `--manifests`; its name says path, line and column.
    File,
}

impl Kind {
    /// `kind`, as objects say it.
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
            Self::File => "File",
        }
    }
}

/// The object (or file) that a setting or a problem belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Origin {
    /// What it is.
    pub kind: Kind,
    /// Its namespace; empty for what has none.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Origin {
    /// An origin from its parts.
    pub fn new(kind: Kind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.namespace.is_empty()) {
            (Kind::File, _) => f.write_str(&self.name),
            (kind, true) => write!(f, "{} {}", kind.name(), self.name),
            (kind, false) => write!(f, "{} {}/{}", kind.name(), self.namespace, self.name),
        }
    }
}
