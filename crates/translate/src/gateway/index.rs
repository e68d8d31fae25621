//! Sets by what they are looked up with; one that is empty is not there.

use super::few::Set;
use std::collections::BTreeMap;

/// Adds one.
pub(super) fn put<K: Ord + Clone, V, S: Set<V>>(index: &mut BTreeMap<K, S>, at: &K, one: V) {
    index.entry(at.clone()).or_default().put(one);
}

/// Takes one out.
pub(super) fn take_out<K: Ord, V, S: Set<V>>(index: &mut BTreeMap<K, S>, from: &K, one: &V) {
    if index.get_mut(from).is_some_and(|all| all.take_out(one)) {
        index.remove(from);
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
