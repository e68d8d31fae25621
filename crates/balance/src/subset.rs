//! The same key, the same few endpoints: consistent hashing onto sets (ingress-nginx: `upstream-hash-by-subset`).
//!
//! Sets are called alike everywhere: `set1`, `set2` and so on. So the ring of few sets is that of many without the
//! points of the others, and one is enough for all upstreams, sizes and moments.

use crate::Ring;
use std::num::NonZeroU32;
use std::sync::LazyLock;

/// Sets on the ring that ingress-nginx has, too.
const ON_RING: usize = 1000;
/// Points whose lowest set is known.
const BLOCK: usize = 256;

/// The ring of all sets.
static SETS: LazyLock<Sets> = LazyLock::new(Sets::new);

/// Makes what is asked for with the first request otherwise.
pub(crate) fn prepare() {
    LazyLock::force(&SETS);
}

/// The number of an endpoint of the set that a key belongs to; none if there are no endpoints. They stand in sets of
/// `size`, in the order the cluster gave them; the last set is filled up from the front. `random` gives a number below
/// its argument.
pub(crate) fn find(
    key: &[u8],
    endpoints: usize,
    size: NonZeroU32,
    random: impl FnOnce(usize) -> usize,
) -> Option<usize> {
    let size = size.get() as usize;
    let place = crc32fast::hash(key);
    let set = match endpoints.div_ceil(size) {
        0 => return None,
        sets @ 1..=ON_RING => SETS.find(place, sets as u32)? as usize,
        sets => jump(place.into(), sets),
    };
    Some((set * size + random(size)) % endpoints)
}

/// The ring of so many sets.
fn ring(sets: usize) -> Ring {
    Ring::new((0..sets).map(|before| format!("set{}", before + 1)))
}

/// The ring, with what is needed to leave sets out.
struct Sets {
    /// Place and number of the set, in order.
    points: Vec<(u32, u32)>,
    /// The lowest set of each block of points.
    lowest: Vec<u32>,
}

impl Sets {
    fn new() -> Self {
        let points = ring(ON_RING).into_points();
        let lowest = |block: &[(u32, u32)]| block.iter().map(|(_, set)| *set).min().unwrap_or(0);
        Self { lowest: points.chunks(BLOCK).map(lowest).collect(), points }
    }

    /// The one of the first `sets` sets that has a place.
    fn find(&self, place: u32, sets: u32) -> Option<u32> {
        let at = self.points.partition_point(|(point, _)| *point < place);
        self.next(at, sets).or_else(|| self.next(0, sets))
    }

    /// The first of those sets among the points from there on.
    fn next(&self, from: usize, sets: u32) -> Option<u32> {
        let among =
            |points: &[(u32, u32)]| points.iter().map(|(_, set)| *set).find(|set| *set < sets);
        let end = from.next_multiple_of(BLOCK).min(self.points.len());
        among(&self.points[from..end]).or_else(|| {
            let first = end / BLOCK;
            let lowest = self.lowest.get(first..)?.iter().position(|lowest| *lowest < sets)?;
            among(&self.points[(first + lowest) * BLOCK..])
        })
    }
}

/// Jump consistent hash (Lamping and Veach, 2014), for more sets than there are on the ring: one more set at the end
/// takes its share of keys, and no others move.
fn jump(mut key: u64, sets: usize) -> usize {
    const STEP: f64 = (1u64 << 31) as f64;
    let (mut set, mut next) = (0, 0.0);
    while next < sets as f64 {
        set = next as usize;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = ((set + 1) as f64 * (STEP / ((key >> 33) + 1) as f64)).floor();
    }
    set
}

#[cfg(test)]
mod tests {
    use super::{find, jump, ring};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeSet;
    use std::num::NonZeroU32;

    fn members(key: &[u8], endpoints: usize, size: NonZeroU32) -> BTreeSet<usize> {
        let size_of = size.get() as usize;
        (0..size_of).filter_map(|at| find(key, endpoints, size, |_| at)).collect()
    }

    #[test]
    fn the_last_set_is_filled_up_from_the_front() {
        let three = NonZeroU32::new(3).expect("not zero");
        let sets: BTreeSet<_> =
            (0..100u32).map(|key| members(&key.to_le_bytes(), 5, three)).collect();
        assert_eq!(sets, BTreeSet::from([BTreeSet::from([0, 1, 2]), BTreeSet::from([3, 4, 0])]));
    }

    #[test]
    fn no_endpoints_have_no_set() {
        assert_eq!(find(b"key", 0, NonZeroU32::MIN, |_| 0), None);
    }

    #[test]
    fn many_sets_are_those_of_rings_of_their_own() {
        for sets in [700, 999, 1000] {
            let ring = ring(sets);
            for key in (0..3000u32).map(u32::to_le_bytes) {
                assert_eq!(find(&key, sets, NonZeroU32::MIN, |_| 0), ring.find(&key));
            }
        }
    }

    #[test]
    fn of_more_sets_than_the_ring_has_each_takes_its_share_and_a_new_one_only_its_own() {
        let keys = || (0..40_000u32).map(|key| crc32fast::hash(&key.to_le_bytes()).into());
        let (mut counts, mut moved) = (vec![0; 2001], 0);
        for key in keys() {
            let (before, after) = (jump(key, 2000), jump(key, 2001));
            assert!(before == after || after == 2000);
            moved += usize::from(before != after);
            counts[after] += 1;
        }
        assert!(moved < 60, "{moved}");
        assert!(counts.iter().all(|count| *count < 60), "{counts:?}");
        assert!(counts.iter().filter(|count| **count > 5).count() > 1900, "{counts:?}");
    }

    proptest! {
        #[test]
        fn a_set_is_that_of_a_ring_of_its_own(sets in 1usize..50, keys in proptest::collection::vec(any::<u64>(), 20)) {
            let ring = ring(sets);
            for key in keys.iter().map(u64::to_string) {
                let set = find(key.as_bytes(), sets, NonZeroU32::MIN, |_| 0);
                prop_assert_eq!(set, ring.find(key.as_bytes()));
            }
        }

        #[test]
        fn a_key_never_leaves_its_set(endpoints in 1usize..4000, size in 1u32..50, key in any::<u64>(), draws in proptest::collection::vec(any::<usize>(), 50)) {
            let size = NonZeroU32::new(size).expect("not zero");
            let key = key.to_string();
            let set = members(key.as_bytes(), endpoints, size);
            prop_assert!(set.len() <= size.get() as usize && set.iter().all(|member| *member < endpoints));
            for draw in draws {
                let found = find(key.as_bytes(), endpoints, size, |below| draw % below).expect("there are endpoints");
                prop_assert!(set.contains(&found));
            }
        }
    }
}
