//! The views, one file each: the types of an answer and what makes it.

pub(crate) mod certificates;
pub(crate) mod changes;
pub(crate) mod explain;
pub(crate) mod limits;
pub(crate) mod overview;
pub(crate) mod problems;
pub(crate) mod route;
pub(crate) mod routes;
pub(crate) mod shadow;
pub(crate) mod trace;

use crate::query::Refusal;
use serde::Serialize;

/// An answer as JSON.
fn json(answer: &impl Serialize) -> Result<String, Refusal> {
    serde_json::to_string(answer).map_err(|error| Refusal::Broken(error.to_string()))
}
