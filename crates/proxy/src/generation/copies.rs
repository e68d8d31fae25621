//! Where copies of requests go, found once for a generation.

use model::policy::Mirror;
use std::sync::Arc;
use upstream::Destination;

/// Where copies of a location go.
#[derive(Debug)]
pub struct Copies {
    /// What was asked for.
    pub mirror: Arc<Mirror>,
    /// Where they go.
    pub destination: Arc<Destination>,
}
