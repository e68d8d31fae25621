//! What the fixtures saw, in the order in which they saw it.

use parking_lot::Mutex;
use std::sync::Arc;

use crate::exchange::Seen;

/// A list that all fixtures write to.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Vec<Seen>>>);

impl Journal {
    /// Notes one request.
    pub fn note(&self, seen: Seen) {
        self.0.lock().push(seen);
    }

    /// How much was noted since it was last taken.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Takes what was noted so far.
    #[must_use]
    pub fn drain(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock())
    }
}
