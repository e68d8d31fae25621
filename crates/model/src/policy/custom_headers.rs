//! `custom-headers`.

use crate::SetHeader;
use serde::Serialize;
use std::sync::Arc;

/// Header fields that every answer of the location gets, in place of those of the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CustomHeaders(
    /// In order of their names.
    pub Arc<[SetHeader]>,
);
