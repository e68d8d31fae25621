//! Logs on their way out: gathered by each thread of traffic, written by a thread of their own, so that a slow disk,
//! reader or server never holds up traffic.

mod format;
mod sink;
mod syslog;
mod writer;

pub(crate) use format::{Escape, Format, Piece};
pub(crate) use writer::Writer;

use std::cell::{Cell, RefCell};

/// Bytes gathered before they are handed over: waking the thread that writes them costs as much as some lines do.
const GATHERED: usize = 64 << 10;

/// A line is no longer than this, as a rule.
const USUAL: usize = 1 << 10;

/// One thread's end of the access log.
#[derive(Debug)]
pub(crate) struct AccessLog {
    gathered: RefCell<Vec<u8>>,
    /// Whether it was said that lines are dropped.
    told: Cell<bool>,
    writer: Writer,
}

impl AccessLog {
    /// A log whose lines go to `writer`.
    pub(crate) fn new(writer: Writer) -> Self {
        Self { gathered: RefCell::default(), told: Cell::new(false), writer }
    }

    /// Adds the line that `fill` makes.
    pub(crate) fn line(&self, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut gathered = self.gathered.borrow_mut();
        fill(&mut gathered);
        gathered.push(b'\n');
        if gathered.len() >= GATHERED {
            drop(gathered);
            self.flush();
        }
    }

    /// Hands over what was gathered.
    pub(crate) fn flush(&self) {
        if self.gathered.borrow().is_empty() {
            return;
        }
        // Room at once, rather than by and by: a line more than is handed over, as a rule.
        let piece = self.gathered.replace(Vec::with_capacity(GATHERED + USUAL));
        if !self.writer.write(None, piece) && !self.told.replace(true) {
            tracing::warn!("what takes the access log is too slow for it: lines are dropped");
        }
    }
}
