//! What changed: the last generations with what each of them means.

use super::json;
use crate::history::Generation;
use crate::now::Now;
use crate::query::{Query, Refusal};
use serde::Serialize;

/// Generations.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Generations {
    /// How many are kept.
    pub(crate) total: usize,
    /// The number of the first row.
    pub(crate) offset: usize,
    /// The rows, the newest first.
    pub(crate) generations: Vec<Generation>,
}

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    let (offset, limit) = query.window()?;
    let history = now.history.lock();
    let all = history.generations();
    let rows: Vec<Generation> = all.iter().skip(offset).take(limit).cloned().collect();
    let total = all.len();
    drop(history);
    json(&Generations { total, offset, generations: rows })
}
