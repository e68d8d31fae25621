//! `proxy-next-upstream*`: when another endpoint is tried (ngx_http_proxy_module, proxy_next_upstream).

use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// What counts as a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Condition {
    /// Connecting, sending or reading the head went wrong.
    Error,
    /// Connecting, sending or reading the head took too long.
    Timeout,
    /// The head was empty or invalid.
    InvalidHeader,
    /// The upstream answered with this status.
    Status(u16),
    /// Requests that are not idempotent (POST, LOCK, PATCH) are tried again, too.
    NonIdempotent,
}

/// When and how often another endpoint is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retries {
    /// What counts as a failed try; empty means `off`.
    pub conditions: BTreeSet<Condition>,
    /// Tries in all; zero is unlimited (each endpoint once).
    pub tries: u32,
    /// No new try after this time; zero is unlimited.
    pub timeout: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        let conditions = BTreeSet::from([Condition::Error, Condition::Timeout]);
        Self { conditions, tries: 3, timeout: Duration::ZERO }
    }
}
