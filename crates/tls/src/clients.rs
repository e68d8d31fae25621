//! What a host asks of all its clients.

use super::Verifier;
use std::sync::Arc;

/// What a host asks of all its clients.
#[derive(Clone, Debug)]
pub enum Clients {
    /// Nobody gets in, for the reason given.
    Closed(String),
    /// Certificates are verified like this.
    Verified(Arc<Verifier>),
}
