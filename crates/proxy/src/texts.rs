//! What texts of annotations with the values of variables take of a request: each, all of them, and what is looked
//! through for the values.

use std::cell::Cell;

/// Bytes that a text of an Ingress may have with the values of its variables, as those of snippets.
pub(crate) const TEXT: usize = 64 << 10;
/// Bytes of all such texts of a try, of those of all tries, and of what is looked through for the values in them.
const TEXTS: usize = 512 << 10;
const ALL: usize = 4 << 20;
const LOOKED: usize = 4 << 20;

/// What they have taken so far.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    made: Cell<usize>,
    /// In all tries.
    all: Cell<usize>,
    looked: Cell<usize>,
    /// One was longer than it may be, or all of them were.
    overlong: Cell<bool>,
}

impl Texts {
    /// Whether one was longer than it may be, or all of them were: the request ends, and no more are made.
    pub(crate) fn are_overlong(&self) -> bool {
        self.overlong.get()
    }

    /// One takes more than a request may have.
    pub(crate) fn fail(&self) {
        self.overlong.set(true);
    }

    /// Another try begins, whose head may have all texts once more. What is looked through stays counted, and how long
    /// all texts of all tries are: an Ingress may ask for a hundred tries.
    pub(crate) fn another_try(&self) {
        self.made.set(0);
    }

    /// Texts of the answer to what was too much may be made.
    pub(crate) fn begin_again(&self) {
        self.made.set(0);
        self.all.set(0);
        self.looked.set(0);
        self.overlong.set(false);
    }

    /// Whether there may be a text of so many bytes.
    pub(crate) fn may_have(&self, bytes: usize) -> bool {
        // Both are counted, whatever the other one says.
        self.note(&self.all, bytes, ALL, true) & self.note(&self.made, bytes, TEXTS, bytes <= TEXT)
    }

    /// Whether so many bytes may be looked through for a value.
    pub(crate) fn may_look(&self, bytes: usize) -> bool {
        self.note(&self.looked, bytes, LOOKED, true)
    }

    fn note(&self, counter: &Cell<usize>, count: usize, most: usize, may_be: bool) -> bool {
        counter.set(counter.get().saturating_add(count));
        let fits = may_be && counter.get() <= most;
        self.overlong.set(self.overlong.get() || !fits);
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, LOOKED, TEXT, TEXTS, Texts};

    #[test]
    fn another_try_has_all_texts_once_more_and_nothing_more_to_look_through() {
        let texts = Texts::default();
        let makes_all = || (0..TEXTS / TEXT).all(|_| texts.may_have(TEXT));
        assert!(makes_all() && texts.may_look(LOOKED / 2));
        texts.another_try();
        assert!(makes_all() && texts.may_look(LOOKED / 2) && !texts.are_overlong());
        texts.another_try();
        assert!(!texts.may_look(1) && texts.are_overlong());
        // The answer to that may have texts.
        texts.begin_again();
        assert!(makes_all() && texts.may_look(1) && !texts.are_overlong());
    }

    #[test]
    fn texts_of_all_tries_have_a_bound_together() {
        let texts = Texts::default();
        let makes_all = || (0..TEXTS / TEXT).all(|_| texts.may_have(TEXT));
        for _ in 0..ALL / TEXTS {
            assert!(makes_all());
            texts.another_try();
        }
        assert!(!texts.may_have(1) && texts.are_overlong());
        texts.begin_again();
        assert!(texts.may_have(1) && !texts.are_overlong());
    }
}
