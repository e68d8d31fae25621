//! `connection-proxy-header`.

use serde::Serialize;

/// A fixed Connection header towards the upstream. With it no request leaves HTTP, whatever its Upgrade header asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ConnectionHeader {
    /// `close`.
    Close,
    /// `keep-alive`.
    KeepAlive,
}
