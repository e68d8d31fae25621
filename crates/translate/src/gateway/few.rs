//! A set of few: most routes have one place, one Service and one listener, of which a tree keeps room for eleven.

use std::collections::BTreeSet;

/// A set that takes as much memory as what is in it. To add one moves those behind it, so whatever gathers many at a
/// time is a tree until it is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Few<T>(Vec<T>);

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<BTreeSet<T>> for Few<T> {
    fn from(whole: BTreeSet<T>) -> Self {
        Self(whole.into_iter().collect())
    }
}

impl<T: Ord> Few<T> {
    /// In their order.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Takes all of them out.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Where values are gathered, each once.
pub(super) trait Set<T>: Default {
    /// Adds one.
    fn put(&mut self, one: T);
    /// Takes one out; whether nothing is left.
    fn take_out(&mut self, one: &T) -> bool;
}

impl<T: Ord> Set<T> for Few<T> {
    fn put(&mut self, one: T) {
        if let Err(at) = self.0.binary_search(&one) {
            // As many as there are, and no room for others, until they turn out to be more than a few.
            if self.0.len() < 4 {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, one);
        }
    }

    fn take_out(&mut self, one: &T) -> bool {
        if let Ok(at) = self.0.binary_search(one) {
            self.0.remove(at);
            // Who had many keeps no room for them.
            if self.0.len() < self.0.capacity() / 4 {
                self.0.shrink_to_fit();
            }
        }
        self.0.is_empty()
    }
}

impl<T: Ord> Set<T> for BTreeSet<T> {
    fn put(&mut self, one: T) {
        self.insert(one);
    }

    fn take_out(&mut self, one: &T) -> bool {
        self.remove(one);
        self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Few, Set};

    #[test]
    fn few_are_kept_once_in_order_and_without_room_for_others() {
        let mut few = Few::default();
        for one in [3, 1, 3, 2] {
            few.put(one);
        }
        assert!(few.iter().eq(&[1, 2, 3]));
        assert_eq!(few.0.capacity(), 3, "as many as there are");
        assert!(!few.take_out(&2) && !few.take_out(&7) && !few.take_out(&1));
        assert!(few.take_out(&3), "nothing is left");
    }
}
