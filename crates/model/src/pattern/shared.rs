//! Patterns by their text: as long as somebody has one, whoever asks for the same text gets the same.

use super::{Compiled, Pattern, PatternError, Use};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// Entries at which those that nobody has any more are looked for first.
const FIRST_SWEEP: usize = 1024;

type Key = (Arc<str>, bool, Use);

#[derive(Default)]
struct Shared {
    known: HashMap<Key, Weak<Compiled>>,
    /// As many entries as this, and those that nobody has any more go.
    sweep_at: usize,
}

static SHARED: LazyLock<Mutex<Shared>> = LazyLock::new(Mutex::default);

/// The pattern of a text. Two threads may compile the same at a time, one of them for nothing.
pub(super) fn get(source: &str, ignore_case: bool, purpose: Use) -> Result<Pattern, PatternError> {
    let lock = || SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (Arc::from(source), ignore_case, purpose);
    if let Some(known) = lock().known.get(&key).and_then(Weak::upgrade) {
        return Ok(Pattern(known));
    }
    let compiled = Arc::new(Compiled::new(source, ignore_case, purpose)?);
    let mut shared = lock();
    if shared.known.len() >= shared.sweep_at {
        shared.known.retain(|_, known| known.strong_count() > 0);
        shared.known.shrink_to_fit();
        shared.sweep_at = (2 * shared.known.len()).max(FIRST_SWEEP);
    }
    shared.known.insert(key, Arc::downgrade(&compiled));
    Ok(Pattern(compiled))
}
