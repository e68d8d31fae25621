//! `connection-proxy-header`.

use serde::Serialize;

/// A fixed Connection header towards the upstream, even for requests that ask for an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ConnectionHeader {
    /// `close`.
    Close,
    /// `keep-alive`.
    KeepAlive,
}
