//! What is compiled of something that many places share is compiled once, and they share it as well: what an Ingress
//! asks for may be large, and it may have very many paths.

use parking_lot::Mutex;
use shares::{ByAddress, WeakMap};
use std::convert::Infallible;
use std::sync::Arc;

/// What was compiled of what, as long as somebody has it.
#[derive(Debug)]
pub(super) struct Shared<K: ?Sized, V>(Mutex<WeakMap<ByAddress<K>, V>>);

impl<K: ?Sized, V> Default for Shared<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: ?Sized, V> Shared<K, V> {
    /// What was made of `of`, or is made now.
    pub(super) fn get(&self, of: &Arc<K>, make: impl FnOnce(&K) -> V) -> Arc<V> {
        let Ok(made) = self.try_get(of, |of| Ok::<_, Infallible>(Arc::new(make(of))));
        made
    }

    /// The same where it may fail; then it is tried anew the next time.
    pub(super) fn try_get<E>(
        &self,
        of: &Arc<K>,
        make: impl FnOnce(&K) -> Result<Arc<V>, E>,
    ) -> Result<Arc<V>, E> {
        let mut known = self.0.lock();
        let key = ByAddress::of(of);
        if let Some(made) = known.get(&key) {
            return Ok(made);
        }
        let made = make(of)?;
        known.insert(key, &made);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::Shared;
    use std::sync::Arc;

    #[test]
    fn it_is_made_once_for_all_that_share_and_forgotten_after_them() {
        let shared = Shared::<str, usize>::default();
        let (one, other): (Arc<str>, Arc<str>) = (Arc::from("one"), Arc::from("one"));
        let made = shared.get(&one, str::len);
        assert!(Arc::ptr_eq(&made, &shared.get(&one, |_| panic!("it is there"))));
        assert!(!Arc::ptr_eq(&made, &shared.get(&other, str::len)));
        drop(made);
        assert_eq!(*shared.get(&one, |_| 7), 7, "nobody had it any more");
    }
}
