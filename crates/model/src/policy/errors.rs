//! `custom-http-errors`, `disable-proxy-intercept-errors` and `default-backend`: who answers in place of errors.

use crate::UpstreamId;
use serde::Serialize;
use std::collections::BTreeSet;

/// Answers with some statuses are replaced by those of an error backend (ngx_http_core_module, error_page).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// These statuses; none where only the sign-in page of an authenticator takes the place of answers.
    pub statuses: BTreeSet<u16>,
    /// Whether answers of the upstream are replaced, too, or only those that the proxy makes.
    pub intercept: bool,
    /// Who is asked before the default backend of the process, while there is anybody.
    pub backend: Option<UpstreamId>,
    /// Whether the ConfigMap says so, not an annotation: what a snippet says nearer to the location stands in its
    /// place.
    #[serde(skip)]
    pub of_all: bool,
}
