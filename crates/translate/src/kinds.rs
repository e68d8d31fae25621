//! What origins of problems call the kinds of objects: they know files besides, and nothing of Kubernetes.

use model::Kind;

/// The kind of an origin that is such an object.
pub(crate) fn kind_of(kind: objects::Kind) -> Kind {
    match kind {
        objects::Kind::Ingress => Kind::Ingress,
        objects::Kind::IngressClass => Kind::IngressClass,
        objects::Kind::Service => Kind::Service,
        objects::Kind::EndpointSlice => Kind::EndpointSlice,
        objects::Kind::Secret => Kind::Secret,
        objects::Kind::ConfigMap => Kind::ConfigMap,
        objects::Kind::Namespace => Kind::Namespace,
        objects::Kind::GatewayClass => Kind::GatewayClass,
        objects::Kind::Gateway => Kind::Gateway,
        objects::Kind::ListenerSet => Kind::ListenerSet,
        objects::Kind::HttpRoute => Kind::HttpRoute,
        objects::Kind::GrpcRoute => Kind::GrpcRoute,
        objects::Kind::TcpRoute => Kind::TcpRoute,
        objects::Kind::UdpRoute => Kind::UdpRoute,
        objects::Kind::TlsRoute => Kind::TlsRoute,
        objects::Kind::BackendTlsPolicy => Kind::BackendTlsPolicy,
        objects::Kind::ReferenceGrant => Kind::ReferenceGrant,
    }
}
