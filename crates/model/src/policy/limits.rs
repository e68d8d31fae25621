//! `limit-rps`, `limit-rpm`, `limit-connections` and what belongs to them: how many requests a client may make.

use crate::{Networks, Template};
use serde::Serialize;

/// Limits for each client (ngx_http_limit_req_module, ngx_http_limit_conn_module). All paths of an Ingress share them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// `limit-rps`.
    pub per_second: Option<RequestLimit>,
    /// `limit-rpm`.
    pub per_minute: Option<RequestLimit>,
    /// `limit-connections`: requests that are being answered at the same time.
    pub connections: Option<u64>,
    /// `limit-allowlist`: clients without limits.
    pub exempt: Networks,
    /// `limit-conn-zone-variable`: what tells clients apart.
    pub key: LimitKey,
    /// `limit-req-status-code`: the answer to one request too many.
    pub request_status: u16,
    /// `limit-conn-status-code`: the answer to one too many at a time.
    pub connection_status: u16,
}

/// A leaky bucket, in thousandths of a request as nginx counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RequestLimit {
    /// What leaks each second.
    pub rate: u64,
    /// What a bucket holds before a request is refused.
    pub burst: u64,
}

/// What tells clients apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub enum LimitKey {
    /// Their address.
    #[default]
    Address,
    /// A text; what makes it empty has no limit.
    Text(Template),
}

impl Limits {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.per_second.is_none() && self.per_minute.is_none() && self.connections.is_none()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_second: None,
            per_minute: None,
            connections: None,
            exempt: Networks::default(),
            key: LimitKey::Address,
            request_status: 503,
            connection_status: 503,
        }
    }
}
