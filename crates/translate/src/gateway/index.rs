//! Sets by what they are looked up with; one that is empty is not there.

use std::collections::{BTreeMap, BTreeSet};

/// Adds one.
pub(super) fn put<K: Ord + Clone, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, at: &K, one: V) {
    index.entry(at.clone()).or_default().insert(one);
}

/// Takes one out.
pub(super) fn take_out<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, from: &K, one: &V) {
    if let Some(all) = index.get_mut(from) {
        all.remove(one);
        if all.is_empty() {
            index.remove(from);
        }
    }
}

/// One more that counts.
pub(super) fn more<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, of: &K) {
    *counts.entry(of.clone()).or_default() += 1;
}

/// One less that counts.
pub(super) fn fewer<K: Ord>(counts: &mut BTreeMap<K, u32>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}
