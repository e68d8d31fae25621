//! What a section of header fields is made of: bytes, and where in them its lines stand.

use crate::controls::as_one_line;
use crate::names::bit;
use bytes::Bytes;
use smallvec::SmallVec;
use std::cell::Cell;

/// Where a field stands in the bytes of its section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Where the name begins and ends.
    pub(super) start: u32,
    pub(super) name_end: u32,
    /// Where the value begins and ends.
    pub(super) value: u32,
    pub(super) end: u32,
    /// In what was added, not in what was read.
    pub(super) added: bool,
    /// Whether it stands there as it is written: `name: value`, and the end of the line.
    pub(super) whole: bool,
}

impl Line {
    /// The same, where its piece of memory begins `by` bytes further back.
    pub(super) fn moved(&self, by: u32) -> Self {
        let Self { start, name_end, value, end, .. } = *self;
        let (start, name_end) = (start + by, name_end + by);
        Self { start, name_end, value: value + by, end: end + by, ..*self }
    }
}

/// Lines that need no memory of their own.
const LINES: usize = 12;

/// What a section that has fields is made of.
#[derive(Clone, Default)]
pub(super) struct Section {
    /// What was read.
    pub(super) read: Bytes,
    /// What was added, line by line.
    pub(super) added: Vec<u8>,
    pub(super) lines: SmallVec<[Line; LINES]>,
    /// The bits of all names that are or were here: most of what is looked for is not there, which one look tells.
    pub(super) names: u64,
}

/// Bytes of lines for which a section that is over has room at most, if its memory is kept.
const KEPT: usize = 1 << 10;

thread_local! {
    /// Memory of sections that are over, for the next ones: a request and its answer have one each.
    static SPARE: Cell<[Option<Box<Section>>; 2]> = const { Cell::new([None, None]) };
}

impl Section {
    /// An empty one.
    pub(super) fn spare() -> Box<Self> {
        let mut spare = SPARE.take();
        let section = spare[1].take().or_else(|| spare[0].take());
        SPARE.set(spare);
        section.unwrap_or_default()
    }

    /// Keeps its memory, and nothing of what it held.
    pub(super) fn end(mut self: Box<Self>) {
        self.read = Bytes::new();
        if self.added.capacity() > KEPT || self.lines.spilled() {
            return;
        }
        self.added.clear();
        self.lines.clear();
        self.names = 0;
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|all| {
            let mut spare = all.take();
            let free = usize::from(spare[0].is_some());
            spare[free] = Some(self);
            all.set(spare);
        });
    }

    /// Puts a line at the end of what was added. Whoever made the value: it is one line (RFC 9110 section 5.5).
    pub(super) fn write(&mut self, name: &[u8], value: &[u8]) -> Line {
        self.names |= bit(name);
        let added = &mut self.added;
        added.reserve(line(name.len(), value.len()));
        let start = place(added.len());
        added.extend_from_slice(name);
        added.extend_from_slice(b": ");
        let from = added.len();
        added.extend_from_slice(value);
        as_one_line(&mut added[from..]);
        let end = place(added.len());
        added.extend_from_slice(b"\r\n");
        let name_end = start + place(name.len());
        Line { start, name_end, value: name_end + 2, end, added: true, whole: true }
    }
}

/// Bytes of a line with a name and a value of so many.
pub(crate) fn line(name: usize, value: usize) -> usize {
    name + b": ".len() + value + b"\r\n".len()
}

pub(super) fn place(at: usize) -> u32 {
    u32::try_from(at).expect("sections are bounded far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Section};

    #[test]
    fn the_memory_of_a_section_serves_again_and_nothing_of_it_is_kept() {
        let mut first = Section::spare();
        let line = first.write(b"a", b"b");
        first.lines.push(line);
        let at = &raw const *first;
        first.end();
        let again = Section::spare();
        assert!(std::ptr::eq(at, &raw const *again));
        let is_empty = again.read.is_empty() && again.added.is_empty() && again.lines.is_empty();
        assert!(is_empty && again.names == 0);
        let mut large = Section::spare();
        assert!(!std::ptr::eq(at, &raw const *large));
        large.write(b"a", &[b'x'; KEPT]);
        large.end();
        assert!(Section::spare().added.capacity() == 0, "what was large is not kept");
    }
}
