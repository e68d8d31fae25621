//! `enable-opentelemetry` and what belongs to it at a location.

use crate::Template;
use serde::Serialize;

/// How the requests of a location are traced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenTelemetry {
    /// `opentelemetry-trust-incoming-span`: a trace that the client began goes on; else every request begins one.
    pub trusts_client: bool,
    /// `opentelemetry-operation-name`: the name of the span; none: the path of the location.
    pub operation_name: Option<Template>,
}
