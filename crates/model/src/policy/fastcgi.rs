//! `fastcgi-index` and `fastcgi-params-configmap` (ngx_http_fastcgi_module).

use crate::{Secret, Template};
use serde::Serialize;
use std::sync::Arc;

/// What a FastCGI responder is told beyond what every one is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FastCgi {
    /// The file that a path ending in `/` means.
    pub index: Option<String>,
    /// More parameters, in order.
    pub params: Arc<[(String, Secret<Template>)]>,
}
