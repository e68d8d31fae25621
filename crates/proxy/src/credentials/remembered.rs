//! What was found right before, as keyed hashes: bounded, without locks, one for each thread.

use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::HashSet;

/// Entries of each of the two halves.
const HALF: usize = 4096;

/// A keyed hash of a stored password and one that was found to belong to it. Since the stored one is part of it, an
/// entry is never found again once its Secret has changed.
pub(crate) type Tag = [u8; 32];

/// The last passwords that were found right: at least [`HALF`], at most twice as many.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    halves: RefCell<[HashSet<Tag, RandomState>; 2]>,
}

impl Remembered {
    /// Whether this was found right before.
    pub(super) fn has(&self, tag: &Tag) -> bool {
        let [young, old] = &mut *self.halves.borrow_mut();
        if young.contains(tag) {
            return true;
        }
        let found = old.remove(tag);
        if found {
            young.insert(*tag);
        }
        found
    }

    /// Remembers what was found right; of more than fit, those used longest ago are forgotten.
    pub(super) fn keep(&self, tag: Tag) {
        let [young, old] = &mut *self.halves.borrow_mut();
        if young.len() >= HALF {
            *old = std::mem::take(young);
        }
        young.insert(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::{HALF, Remembered, Tag};

    fn tag(number: usize) -> Tag {
        let mut tag = [0; 32];
        tag[..8].copy_from_slice(&number.to_le_bytes());
        tag
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let remembered = Remembered::default();
        for number in 0..20 * HALF {
            remembered.keep(tag(number));
            assert!(remembered.has(&tag(0)), "{number}");
        }
        let kept = (0..20 * HALF).filter(|number| remembered.has(&tag(*number))).count();
        assert!((HALF..=2 * HALF + 1).contains(&kept), "{kept}");
    }
}
