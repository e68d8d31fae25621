//! Room for request bodies that are too large for memory: tried at start, and bounded.

use crate::http_engine::HttpEngine;
use runtime::{Block, Ready};

/// Bounds the temporary files by `--body-files-limit`. Where none can be written, the log says so and the process is
/// not ready while the result lives: uploads would fail, and only they would show it.
pub(crate) fn prepare(engine: &HttpEngine, limit: Option<u64>, ready: &Ready) -> Option<Block> {
    let scratch = engine.native()?.scratch();
    if let Some(limit) = limit {
        scratch.bound(limit);
    }
    let trouble = scratch.trouble()?;
    tracing::error!("{trouble}");
    Some(ready.block("a folder for request bodies that can be written"))
}
