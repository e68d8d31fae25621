//! What an engine says of itself, whichever it is: plain numbers, asked for while a page is made.

use request_metrics::{Connections, Metrics};
use runtime::Usage;
use std::pin::Pin;
use std::sync::Arc;

/// The engine that carries HTTP, as far as it is counted.
pub trait Source: Send + Sync + 'static {
    /// What is counted of requests, if that was asked for.
    fn requests(&self) -> Option<&Arc<Metrics>>;

    /// The certificate of hosts without one (DER).
    fn own_certificate(&self) -> Option<Vec<u8>>;

    /// What only an engine in this process can say.
    fn within(&self) -> Option<Within>;

    /// What it is at: asked once for a page, before the first piece.
    fn traffic(&self) -> Pin<Box<dyn Future<Output = Traffic> + Send + '_>>;
}

/// What the engine is at.
#[derive(Debug, Default)]
pub struct Traffic {
    /// None while it does not say.
    pub connections: Option<Connections>,
    /// The processes that carry traffic.
    pub processes: Vec<Usage>,
    /// The nginx of `--engine=nginx`.
    pub nginx: Option<Supervised>,
}

/// A supervised nginx.
#[derive(Debug)]
pub struct Supervised {
    /// How often it was started.
    pub starts: u64,
    /// How often it was reloaded.
    pub reloads: u64,
    /// Workers that take connections.
    pub serving: Vec<Usage>,
    /// Workers that only finish what they have.
    pub leaving: Vec<Usage>,
}

/// What an engine in this process says.
#[derive(Debug, Default)]
pub struct Within {
    /// 0: normal; 1: high; 2: full.
    pub pressure: u8,
    /// Connections that were refused, by reason.
    pub refused: [(&'static str, u64); 3],
    /// Requests that were answered 503 under pressure.
    pub refused_requests: u64,
    /// Connections ended under pressure, since they held much and took little.
    pub unread: u64,
    /// Times that no connection could be accepted.
    pub accept_failures: u64,
    /// Tasks that broke.
    pub panics: u64,
    /// Connections to upstreams that were opened and that were used again, by upstream.
    pub reuse: Vec<(String, [(&'static str, u64); 2])>,
    /// Lines of logs that were dropped, by log.
    pub dropped_lines: [(&'static str, u64); 2],
    /// What became of spans.
    pub spans: [(&'static str, u64); 3],
}
