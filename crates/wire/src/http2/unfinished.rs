//! A head or trailers of HTTP/2 that are coming in and are not whole yet.

use std::cell::Cell;
use tokio::time::Instant;

/// What the h2 crate keeps for a field whose frame is whole: a name, a value, a place among the others, and room for
/// more of them. On the wire a field may be one byte (RFC 7541 section 6.1).
const FIELD: usize = 256;
/// Bytes that a field has at least of the longest list: 32, and one for its name (RFC 9113 section 6.5.2).
const LISTED: usize = 33;

/// How far a head has come, if one has begun.
#[derive(Debug, Default)]
pub struct Unfinished {
    since: Cell<Option<Instant>>,
    /// The stream that it is on.
    stream: Cell<Option<u32>>,
    came: Cell<usize>,
    /// Bytes of that in frames that are whole: the h2 crate has made fields of them.
    read: Cell<usize>,
}

impl Unfinished {
    /// Since when it has been coming in: of a client's.
    pub fn since(&self) -> Option<Instant> {
        self.since.get()
    }

    /// The stream that it is on.
    pub fn stream(&self) -> Option<u32> {
        self.stream.get()
    }

    /// Bytes that are held of it at most, where the longest list of fields is this long: what came, and the fields
    /// that were made of that.
    pub fn held(&self, longest: usize) -> usize {
        let fields = self.read.get().min(longest / LISTED);
        self.came.get() + fields.saturating_mul(FIELD)
    }

    /// A frame of it begins, on this stream.
    pub(super) fn begins(&self, stream: u32) {
        self.stream.set(Some(self.stream.get().unwrap_or(stream)));
    }

    /// The same of a client's, which has its time.
    pub(super) fn begins_in_time(&self, stream: u32) {
        self.since.set(Some(self.since.get().unwrap_or_else(Instant::now)));
        self.begins(stream);
    }

    /// So many bytes have come: of a head, if one has begun.
    pub(super) fn comes(&self, bytes: usize) {
        if self.stream.get().is_some() {
            self.came.set(self.came.get() + bytes);
        }
    }

    /// The frame that came last is whole.
    pub(super) fn is_read(&self) {
        self.read.set(self.came.get());
    }

    /// It is whole.
    pub(super) fn ends(&self) {
        self.since.set(None);
        self.stream.set(None);
        self.came.set(0);
        self.read.set(0);
    }
}
