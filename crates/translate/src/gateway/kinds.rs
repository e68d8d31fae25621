//! What routes are called here and in the Configuration.

use model::Kind;
use objects::ObjectKey;

/// An HTTPRoute or a GRPCRoute.
pub(super) type RouteId = (objects::Kind, ObjectKey);

/// The kind of a route as origins have it.
pub(super) fn kind_of(kind: objects::Kind) -> Kind {
    match kind {
        objects::Kind::HttpRoute => Kind::HttpRoute,
        objects::Kind::GrpcRoute => Kind::GrpcRoute,
        objects::Kind::TcpRoute => Kind::TcpRoute,
        objects::Kind::UdpRoute => Kind::UdpRoute,
        _ => Kind::TlsRoute,
    }
}
