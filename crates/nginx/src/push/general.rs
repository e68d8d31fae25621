//! Settings of the process as a whole, in the JSON of `/configuration/general`.

use serde::Serialize;

/// Settings that change without a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct General {
    /// `http-redirect-code`.
    pub http_redirect_code: u16,
    /// `enable-ocsp`.
    pub enable_ocsp: bool,
    /// Where measurements go; nobody measures if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
}

/// Where measurements of requests go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Metrics {
    /// The unix socket that takes batches.
    pub socket: String,
    /// Requests of a worker in one batch at most (`--monitor-max-batch-size`).
    pub batch: u32,
}
