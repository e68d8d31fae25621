//! The same key, the same few endpoints: consistent hashing onto sets (ingress-nginx: `upstream-hash-by-subset`).

use crate::Ring;
use std::num::NonZeroU32;

/// Endpoints in sets of a fixed size, in the order the cluster gave them; the last set is filled up from the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subsets {
    ring: Ring,
    size: usize,
    endpoints: usize,
}

impl Subsets {
    /// `endpoints` endpoints in sets of `size`.
    pub fn new(endpoints: usize, size: NonZeroU32) -> Self {
        let size = size.get() as usize;
        let sets = endpoints.div_ceil(size);
        let ring = Ring::new((0..sets).map(|before| format!("set{}", before + 1)));
        Self { ring, size, endpoints }
    }

    /// The number of an endpoint of the set that a key belongs to. `random` gives a number below its argument.
    pub fn find(&self, key: &[u8], random: impl FnOnce(usize) -> usize) -> Option<usize> {
        let set = self.ring.find(key)?;
        Some((set * self.size + random(self.size)) % self.endpoints)
    }
}

#[cfg(test)]
mod tests {
    use super::Subsets;
    use proptest::prelude::{any, prop_assert, proptest};
    use std::collections::BTreeSet;
    use std::num::NonZeroU32;

    fn members(subsets: &Subsets, key: &[u8], size: usize) -> BTreeSet<usize> {
        (0..size).filter_map(|at| subsets.find(key, |_| at)).collect()
    }

    #[test]
    fn the_last_set_is_filled_up_from_the_front() {
        let three = NonZeroU32::new(3).expect("not zero");
        let subsets = Subsets::new(5, three);
        let sets: BTreeSet<_> =
            (0..100u32).map(|key| members(&subsets, &key.to_le_bytes(), 3)).collect();
        assert_eq!(sets, BTreeSet::from([BTreeSet::from([0, 1, 2]), BTreeSet::from([3, 4, 0])]));
    }

    #[test]
    fn no_endpoints_have_no_set() {
        assert_eq!(Subsets::new(0, NonZeroU32::MIN).find(b"key", |_| 0), None);
    }

    proptest! {
        #[test]
        fn a_key_never_leaves_its_set(endpoints in 1usize..40, size in 1u32..50, key in any::<u64>(), draws in proptest::collection::vec(any::<usize>(), 50)) {
            let subsets = Subsets::new(endpoints, NonZeroU32::new(size).expect("not zero"));
            let key = key.to_string();
            let set = members(&subsets, key.as_bytes(), size as usize);
            prop_assert!(set.len() <= size as usize && set.iter().all(|member| *member < endpoints));
            for draw in draws {
                let found = subsets.find(key.as_bytes(), |below| draw % below).expect("there are endpoints");
                prop_assert!(set.contains(&found));
            }
        }
    }
}
