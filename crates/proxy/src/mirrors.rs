//! The copies of requests that one thread has in flight.

use std::cell::Cell;
use std::rc::Rc;

/// Copies in flight at most, each thread.
const IN_FLIGHT: usize = 64;
/// Copies left out for each line that the error log has about them.
const SAID_EVERY: u64 = 1000;

/// The copies of one thread.
#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    in_flight: Cell<usize>,
    left_out: Cell<u64>,
}

impl Mirrors {
    /// A place for one more copy, if there is one.
    pub(crate) fn enter(self: &Rc<Self>) -> Option<Entry> {
        if self.in_flight.get() < IN_FLIGHT {
            self.in_flight.set(self.in_flight.get() + 1);
            return Some(Entry(self.clone()));
        }
        if self.left_out.get().is_multiple_of(SAID_EVERY) {
            tracing::warn!(
                most = IN_FLIGHT,
                left_out = self.left_out.get() + 1,
                "copies are left out: the mirror is slower than the requests"
            );
        }
        self.left_out.set(self.left_out.get() + 1);
        None
    }
}

/// The place of a copy in flight.
#[derive(Debug)]
pub(crate) struct Entry(Rc<Mirrors>);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}
