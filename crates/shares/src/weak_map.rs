//! Values by key as long as somebody holds them: whoever asks for the same gets the same, and what nobody holds any
//! more is forgotten once there may be as much of it as of what is held.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

/// So many entries more than twice those that were held, and it is worth looking which are not.
const SLACK: usize = 64;

/// The map. It keeps no value alive.
#[derive(Debug)]
pub struct WeakMap<K, V: ?Sized> {
    all: HashMap<K, Weak<V>>,
    /// How many there were after they had last been gone through.
    kept: usize,
}

impl<K, V: ?Sized> Default for WeakMap<K, V> {
    fn default() -> Self {
        Self { all: HashMap::new(), kept: 0 }
    }
}

impl<K: Eq + Hash, V: ?Sized> WeakMap<K, V> {
    /// The value, if somebody holds it.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        self.all.get(key).and_then(Weak::upgrade)
    }

    /// From now on this is the value.
    pub fn insert(&mut self, key: K, value: &Arc<V>) {
        self.all.insert(key, Arc::downgrade(value));
        if self.all.len() > 2 * self.kept + SLACK {
            self.all.retain(|_, value| value.strong_count() > 0);
            self.all.shrink_to(2 * self.all.len() + SLACK);
            self.kept = self.all.len();
        }
    }

    /// The value, which is made if nobody holds one.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> Arc<V>) -> Arc<V> {
        self.get(&key).unwrap_or_else(|| {
            let value = make();
            self.insert(key, &value);
            value
        })
    }

    /// All that somebody holds, in no order.
    pub fn values(&self) -> impl Iterator<Item = Arc<V>> {
        self.all.values().filter_map(Weak::upgrade)
    }

    /// How many entries there are, those that nobody holds any more among them.
    pub fn entries(&self) -> usize {
        self.all.len()
    }
}

/// A key that is one place in memory, whatever stands there. While the key is kept, nothing else gets that place.
#[derive(Debug)]
pub struct ByAddress<T: ?Sized>(Weak<T>);

impl<T: ?Sized> ByAddress<T> {
    /// The place of this value.
    pub fn of(value: &Arc<T>) -> Self {
        Self(Arc::downgrade(value))
    }

    fn address(&self) -> usize {
        self.0.as_ptr().cast::<()>().addr()
    }
}

impl<T: ?Sized> PartialEq for ByAddress<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

impl<T: ?Sized> Eq for ByAddress<T> {}

impl<T: ?Sized> Hash for ByAddress<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::{ByAddress, SLACK, WeakMap};
    use std::sync::Arc;

    #[test]
    fn a_value_is_made_once_for_all_who_hold_it() {
        let mut map = WeakMap::<String, usize>::default();
        let one = map.get_or_insert_with("one".to_owned(), || Arc::new(1));
        let again = map.get_or_insert_with("one".to_owned(), || panic!("somebody holds it"));
        assert!(Arc::ptr_eq(&one, &again) && map.get("one").is_some() && map.get("two").is_none());
        assert_eq!(map.values().map(|value| *value).collect::<Vec<_>>(), [1]);
        drop((one, again));
        assert!(map.get("one").is_none() && map.values().next().is_none());
        assert_eq!(*map.get_or_insert_with("one".to_owned(), || Arc::new(2)), 2);
    }

    #[test]
    fn what_nobody_holds_is_forgotten_and_what_is_held_stays() {
        let mut map = WeakMap::<usize, usize>::default();
        let held: Vec<_> =
            (0..100).map(|key| map.get_or_insert_with(key, || Arc::new(key))).collect();
        for key in 100..100_000 {
            map.insert(key, &Arc::new(key));
            // The one that is put in is held, too.
            assert!(map.entries() <= 2 * (held.len() + 1) + SLACK);
        }
        assert!(held.iter().enumerate().all(|(key, value)| map.get(&key).as_ref() == Some(value)));
    }

    #[test]
    fn equal_values_at_two_places_are_two_keys() {
        let (one, other): (Arc<str>, Arc<str>) = (Arc::from("same"), Arc::from("same"));
        assert!(ByAddress::of(&one) == ByAddress::of(&one.clone()));
        assert!(ByAddress::of(&one) != ByAddress::of(&other));
    }
}
