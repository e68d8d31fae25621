//! What was found right before, as keyed hashes: bounded, without locks, one for each thread.

use lru::LruCache;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Entries, of all namespaces.
const MOST: usize = 8192;

/// A keyed hash of a stored password and one that was found to belong to it. Since the stored one is part of it, an
/// entry is never found again once its Secret has changed.
pub(crate) type Tag = [u8; 32];

/// The last passwords that were found right. Where there are too many, the namespace with most of them forgets the one
/// that it used longest ago: whoever has many users costs others none of theirs.
#[derive(Debug, Default)]
pub(crate) struct Remembered(RefCell<All>);

#[derive(Debug, Default)]
struct All {
    by_namespace: HashMap<Arc<str>, LruCache<Tag, ()>>,
    count: usize,
}

impl Remembered {
    /// Whether this was found right before, for this namespace.
    pub(super) fn has(&self, whose: &Arc<str>, tag: &Tag) -> bool {
        let mut all = self.0.borrow_mut();
        all.by_namespace.get_mut(whose).is_some_and(|own| own.get(tag).is_some())
    }

    /// Remembers what was found right.
    pub(super) fn keep(&self, whose: &Arc<str>, tag: Tag) {
        let All { by_namespace, count } = &mut *self.0.borrow_mut();
        // It takes memory as it fills.
        let own = by_namespace.entry(whose.clone()).or_insert_with(LruCache::unbounded);
        *count += usize::from(own.put(tag, ()).is_none());
        if *count <= MOST {
            return;
        }
        let Some((largest, all)) = by_namespace.iter_mut().max_by_key(|(_, own)| own.len()) else {
            return;
        };
        *count -= usize::from(all.pop_lru().is_some());
        if all.is_empty() {
            let largest = largest.clone();
            by_namespace.remove(&largest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, MOST, Remembered, Tag};

    fn tag(number: usize) -> Tag {
        let mut tag = [0; 32];
        tag[..8].copy_from_slice(&number.to_le_bytes());
        tag
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let (remembered, whose) = (Remembered::default(), Arc::from("demo"));
        for number in 0..4 * MOST {
            remembered.keep(&whose, tag(number));
            assert!(remembered.has(&whose, &tag(0)), "{number}");
        }
        // Whoever uses all of it again and again makes no more of it.
        for _ in 0..3 {
            let kept = (0..4 * MOST).filter(|number| remembered.has(&whose, &tag(*number))).count();
            assert_eq!(kept, MOST);
        }
    }

    #[test]
    fn whoever_has_many_costs_others_nothing() {
        let (remembered, few, many) = (Remembered::default(), "few".into(), "many".into());
        (0..10).for_each(|number| remembered.keep(&few, tag(number)));
        (0..2 * MOST).for_each(|number| remembered.keep(&many, tag(number)));
        assert!((0..10).all(|number| remembered.has(&few, &tag(number))));
        assert!(!remembered.has(&many, &tag(0)) && !remembered.has(&many, &tag(1)));
        let namespaces = (0..MOST + 100).map(|number| format!("one-{number}").into());
        namespaces.for_each(|one| remembered.keep(&one, tag(0)));
        let all = remembered.0.borrow();
        assert!(all.count == MOST && all.by_namespace.len() <= MOST);
    }
}
