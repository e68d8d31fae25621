//! Pieces of bytes that wait to be written, in one system call where they fit.

use bytes::{Buf, Bytes};
use smallvec::SmallVec;
use std::io::IoSlice;

/// Pieces that wait to be written. A head with its body takes no memory of its own.
#[derive(Debug, Default)]
pub struct Outbox {
    pieces: SmallVec<[Bytes; 2]>,
    /// How many of them are gone.
    gone: usize,
    size: usize,
}

impl Outbox {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.size += piece.len();
            self.pieces.push(piece);
        }
    }
}

impl Buf for Outbox {
    fn remaining(&self) -> usize {
        self.size
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.get(self.gone).map_or(&[], |piece| piece)
    }

    fn advance(&mut self, mut count: usize) {
        self.size -= count;
        while let Some(front) = self.pieces.get_mut(self.gone) {
            if front.len() > count {
                front.advance(count);
                return;
            }
            count -= front.len();
            *front = Bytes::new();
            self.gone += 1;
        }
        self.pieces.clear();
        self.gone = 0;
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces[self.gone..]) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        count
    }
}
