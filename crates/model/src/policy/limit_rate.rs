//! `limit-rate` and `limit-rate-after`: how fast an answer is sent to the client.

use serde::Serialize;

/// How fast each answer is sent (ngx_http_write_filter_module).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimitRate {
    /// Bytes each second; zero: as fast as the client takes them.
    pub rate: u64,
    /// Bytes that are sent before that.
    pub after: u64,
}
