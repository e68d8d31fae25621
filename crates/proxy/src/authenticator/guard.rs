//! Who is asked before a request of a route is let in, compiled (`ExternalAuth` of the Gateway API).

use model::policy::{Policy, RouteGuard};
use std::sync::Arc;
use upstream::Way;

/// The guard of a location of a route.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What it was made of.
    pub(crate) policy: Arc<RouteGuard>,
    /// Where it is.
    pub(crate) way: Way,
    /// Time-outs and bounds towards it: those that hold where nobody says others.
    pub(crate) towards: Arc<Policy>,
}
