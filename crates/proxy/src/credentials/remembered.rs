//! What was found right before, as keyed hashes: bounded, without locks, one for each thread.

use lru::LruCache;
use std::cell::RefCell;
use std::num::NonZeroUsize;

/// Entries.
const MOST: NonZeroUsize = NonZeroUsize::new(8192).expect("it is not zero");

/// A keyed hash of a stored password and one that was found to belong to it. Since the stored one is part of it, an
/// entry is never found again once its Secret has changed.
pub(crate) type Tag = [u8; 32];

/// The last passwords that were found right: those used longest ago are forgotten.
#[derive(Debug)]
pub(crate) struct Remembered(RefCell<LruCache<Tag, ()>>);

impl Default for Remembered {
    fn default() -> Self {
        // It takes memory as it fills.
        let mut all = LruCache::unbounded();
        all.resize(MOST);
        Self(RefCell::new(all))
    }
}

impl Remembered {
    /// Whether this was found right before.
    pub(super) fn has(&self, tag: &Tag) -> bool {
        self.0.borrow_mut().get(tag).is_some()
    }

    /// Remembers what was found right.
    pub(super) fn keep(&self, tag: Tag) {
        self.0.borrow_mut().put(tag, ());
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Remembered, Tag};

    fn tag(number: usize) -> Tag {
        let mut tag = [0; 32];
        tag[..8].copy_from_slice(&number.to_le_bytes());
        tag
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let (remembered, most) = (Remembered::default(), MOST.get());
        for number in 0..4 * most {
            remembered.keep(tag(number));
            assert!(remembered.has(&tag(0)), "{number}");
        }
        // Whoever uses all of it again and again makes no more of it.
        for _ in 0..3 {
            let kept = (0..4 * most).filter(|number| remembered.has(&tag(*number))).count();
            assert_eq!(kept, most);
        }
    }
}
