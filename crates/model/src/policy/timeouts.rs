//! `proxy-connect-timeout`, `proxy-send-timeout`, `proxy-read-timeout`.

use serde::Serialize;
use std::time::Duration;

/// nginx's three time-outs towards an upstream; each is between two successful operations, not for the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timeouts {
    /// Until the connection (and its TLS handshake) stands.
    pub connect: Duration,
    /// Between two successful writes.
    pub send: Duration,
    /// Between two successful reads.
    pub read: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { connect: Duration::from_secs(5), send: minute, read: minute }
    }
}
