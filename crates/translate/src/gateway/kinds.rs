//! What identifies a route.

use objects::ObjectKey;

/// An HTTPRoute or a GRPCRoute.
pub(super) type RouteId = (objects::Kind, ObjectKey);
