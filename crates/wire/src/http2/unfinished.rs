//! The head of a request that is coming in and is not whole yet.

use std::cell::Cell;
use tokio::time::Instant;

/// How far a head has come, if one has begun.
#[derive(Debug, Default)]
pub struct Unfinished {
    since: Cell<Option<Instant>>,
    came: Cell<usize>,
}

impl Unfinished {
    /// Since when it has been coming in.
    pub fn since(&self) -> Option<Instant> {
        self.since.get()
    }

    /// Bytes that have come of it.
    pub fn came(&self) -> usize {
        self.came.get()
    }

    /// A frame of it begins.
    pub(super) fn begins(&self) {
        self.since.set(Some(self.since.get().unwrap_or_else(Instant::now)));
    }

    /// So many bytes have come: of a head, if one has begun.
    pub(super) fn comes(&self, bytes: usize) {
        if self.since.get().is_some() {
            self.came.set(self.came.get() + bytes);
        }
    }

    /// It is whole.
    pub(super) fn ends(&self) {
        self.since.set(None);
        self.came.set(0);
    }
}
