//! What the h2 crate does not tell of an upstream: how much it takes yet of bodies, all streams together (RFC 9113
//! section 6.9), and when it was heard last.

use std::cell::Cell;
use tokio::time::Instant;

/// The window that every session begins with (RFC 9113 section 6.9.2).
pub(super) const WINDOW: i64 = 65_535;

/// What was seen of an upstream.
#[derive(Debug)]
pub struct Seen {
    window: Cell<i64>,
    heard: Cell<Instant>,
    empty: Cell<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { window: Cell::new(WINDOW), heard: Cell::new(crate::now()), empty: Cell::new(0) }
    }
}

impl Seen {
    /// Bytes of bodies that it takes yet, all streams together.
    pub fn window(&self) -> i64 {
        self.window.get()
    }

    /// So many bytes of bodies are sent.
    pub fn gone(&self, bytes: usize) {
        self.widen(-i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn widen(&self, bytes: i64) {
        self.window.set(self.window.get().saturating_add(bytes));
    }

    /// When anything came of it last.
    pub fn heard(&self) -> Instant {
        self.heard.get()
    }

    /// How many pieces of bodies came that have no bytes and do not end their stream: the h2 crate ends a connection
    /// with more than a hundred of them.
    pub fn empty(&self) -> u32 {
        self.empty.get()
    }

    pub(super) fn came_empty(&self) {
        self.empty.set(self.empty.get().saturating_add(1));
    }

    pub(super) fn hear(&self) {
        self.heard.set(crate::now());
    }
}
