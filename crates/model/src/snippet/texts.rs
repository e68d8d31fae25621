//! Values with texts in them, whatever they are.

use super::{Piece, Template};

/// Values with texts in them.
pub trait Pieces {
    /// Shows every piece of every text.
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece));
}

impl Pieces for Template {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        self.pieces.iter().for_each(see);
    }
}

impl<T: Pieces> Pieces for Option<T> {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        self.iter().for_each(|value| value.pieces(see));
    }
}

impl<T: Pieces> Pieces for Vec<T> {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        self.iter().for_each(|value| value.pieces(see));
    }
}

impl<A: Pieces, B: Pieces> Pieces for (A, B) {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        self.0.pieces(see);
        self.1.pieces(see);
    }
}

impl<K, V: Pieces> Pieces for std::collections::BTreeMap<K, V> {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        self.values().for_each(|value| value.pieces(see));
    }
}

impl<T: Pieces> Pieces for Box<T> {
    fn pieces<'s>(&'s self, see: &mut dyn FnMut(&'s Piece)) {
        T::pieces(self, see);
    }
}
