//! Locks that a panic elsewhere leaves usable.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lock guards.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
