//! Where copies of requests go, found once for a generation.

use crate::call::Destination;
use model::policy::Mirror;
use std::sync::Arc;

/// Where copies of a location go.
#[derive(Debug)]
pub struct Copies {
    /// What was asked for.
    pub mirror: Mirror,
    /// Where they go.
    pub destination: Arc<Destination>,
}
