//! `enable-access-log`, `enable-rewrite-log`.

use serde::Serialize;

/// What is logged about the requests of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Logging {
    /// A line in the access log.
    pub access: bool,
    /// A line in the error log for each rewritten path (nginx: rewrite_log).
    pub rewrite: bool,
}

impl Default for Logging {
    fn default() -> Self {
        Self { access: true, rewrite: false }
    }
}
