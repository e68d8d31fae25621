//! Patterns by their text: as long as somebody has one, whoever asks for the same text gets the same.

use super::{Compiled, Pattern, PatternError, Use};
use parking_lot::Mutex;
use shares::WeakMap;
use std::sync::{Arc, LazyLock};

type Key = (Arc<str>, bool, Use);

static SHARED: LazyLock<Mutex<WeakMap<Key, Compiled>>> = LazyLock::new(Mutex::default);

/// The pattern of a text. Two threads may compile the same at a time, one of them for nothing.
pub(super) fn get(source: &str, ignore_case: bool, purpose: Use) -> Result<Pattern, PatternError> {
    let lock = || SHARED.lock();
    let key = (Arc::from(source), ignore_case, purpose);
    if let Some(known) = lock().get(&key) {
        return Ok(Pattern(known));
    }
    let compiled = Arc::new(Compiled::new(source, ignore_case, purpose)?);
    lock().insert(key, &compiled);
    Ok(Pattern(compiled))
}
