//! What identifies a route.

use objects::{Kind, ObjectKey};

/// A route of any kind.
pub(super) type RouteId = (Kind, ObjectKey);

/// Whether a route is one of streams: it leads bytes on, whatever is in them.
pub(super) fn is_stream((kind, _): &RouteId) -> bool {
    matches!(kind, Kind::TcpRoute | Kind::UdpRoute | Kind::TlsRoute)
}
