//! Small pieces of bodies: the h2 crate keeps each in the buffer that it was read into. Where there are many of them
//! they are gathered.

use std::cell::Cell;

/// Pieces below this are loose, and have a buffer of this size or larger.
const LOOSE: usize = 4 << 10;
const BUFFER: usize = 8 << 10;
/// So many of them, or so many buffers with one, are gathered.
const MOST_PIECES: usize = 512;
const MOST_BUFFERS: usize = 32;

/// The loose pieces of a connection since they were gathered last.
#[derive(Debug, Default)]
pub struct Loose {
    pieces: Cell<usize>,
    /// Buffers that they are in.
    buffers: Cell<usize>,
    /// Bytes that came since the last one that had a buffer of its own.
    since: Cell<usize>,
}

impl Loose {
    /// Whether bodies lie in more pieces than should be kept so.
    pub fn is_scattered(&self) -> bool {
        self.pieces.get() >= MOST_PIECES || self.buffers.get() >= MOST_BUFFERS
    }

    /// All pieces were gathered.
    pub fn gathered(&self) {
        self.pieces.set(0);
        self.buffers.set(0);
    }

    /// A frame of so many bytes comes, in which is a piece of a body of this length.
    pub(super) fn comes(&self, size: usize, piece: Option<usize>) {
        let since = self.since.get().saturating_add(size);
        self.since.set(since);
        if piece.is_none_or(|length| length >= LOOSE) {
            return;
        }
        self.pieces.set(self.pieces.get() + 1);
        if since >= BUFFER {
            self.buffers.set(self.buffers.get() + 1);
            self.since.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BUFFER, LOOSE, Loose, MOST_BUFFERS, MOST_PIECES};

    #[test]
    fn small_pieces_are_gathered_by_their_number_or_by_that_of_their_buffers() {
        let loose = Loose::default();
        for _ in 0..MOST_PIECES {
            assert!(!loose.is_scattered());
            loose.comes(10, Some(1));
        }
        assert!(loose.is_scattered());
        loose.gathered();
        for _ in 0..MOST_BUFFERS {
            assert!(!loose.is_scattered());
            loose.comes(BUFFER, None);
            loose.comes(10, Some(1));
        }
        assert!(loose.is_scattered());
        loose.gathered();
        (0..2 * MOST_PIECES).for_each(|_| loose.comes(LOOSE, Some(LOOSE)));
        assert!(!loose.is_scattered(), "large ones have their buffers for themselves");
    }
}
