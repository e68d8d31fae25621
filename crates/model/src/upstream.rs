//! Groups of endpoints that share the traffic of one Service port.

use crate::UpstreamId;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;

/// The addresses behind a Service port at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Endpoints {
    /// Endpoints that are ready, in the order the cluster gave them.
    pub ready: Vec<SocketAddr>,
    /// Endpoints that are terminating but still serve: used when nothing is ready (compat/decisions.md).
    pub draining: Vec<SocketAddr>,
}

impl Endpoints {
    /// The endpoints that take new requests: the ready ones, else those that still serve.
    pub fn usable(&self) -> &[SocketAddr] {
        if self.ready.is_empty() { &self.draining } else { &self.ready }
    }
}

/// A Service port with its endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Upstream {
    /// Its name.
    pub id: UpstreamId,
    /// Who is behind it.
    pub endpoints: Arc<Endpoints>,
    /// A name to resolve instead of endpoints: host and port of an ExternalName Service.
    pub external: Option<(String, u16)>,
}
