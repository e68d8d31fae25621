//! `mirror-target`, `mirror-host` and `mirror-request-body`: copies of requests (ngx_http_mirror_module).

use crate::{Template, Url};
use serde::Serialize;

/// Where copies go, and what they hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mirror {
    /// Where they go.
    pub url: Url,
    /// Their Host; that of the URL, without port, if absent.
    pub host: Option<Template>,
    /// Whether the body is copied.
    pub body: bool,
}
