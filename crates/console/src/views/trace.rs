//! One request that was really made: it is waited for by its `X-Request-ID`, and its story told.

use super::explain::shown_line;
use super::json;
use crate::explained::Line;
use crate::now::Now;
use crate::query::{Query, Refusal};
use exposition::{Sampled, Step};
use serde::Serialize;

/// What became of a request.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Trace {
    /// Whether it has not come since the first question; it is waited for a minute after the last one.
    pub(crate) awaited: bool,
    /// When it was answered.
    pub(crate) at: Option<f64>,
    /// What was decided, in the order of the phases.
    pub(crate) decisions: Vec<Line>,
}

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    query.needed("id", "what-you-send-as-X-Request-ID")?;
    match now.sampled.clone() {
        None => Err(Refusal::Wrong(
            "the nginx engine tells no stories of requests: Explain says what would be decided"
                .to_owned(),
        )),
        Some(Sampled::NoId) => {
            Err(Refusal::Wrong("id: too long: write 128 bytes at most".to_owned()))
        }
        Some(Sampled::TooMany) => Err(Refusal::Busy(
            "16 requests are waited for already: ask again in a minute".to_owned(),
        )),
        Some(Sampled::Awaited) => json(&Trace { awaited: true, at: None, decisions: Vec::new() }),
        Some(Sampled::Told(at, steps)) => {
            let line = |Step { step, outcome, by }| {
                shown_line(Line { step: step.to_owned(), outcome, by })
            };
            let decisions = steps.into_iter().map(line).collect();
            json(&Trace { awaited: false, at: Some(at), decisions })
        }
    }
}
