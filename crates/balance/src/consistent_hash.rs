//! The same key, the same endpoint: the ring of ingress-nginx (resty.chash), so that keys and sessions stay where they
//! are when one replaces the other.

use crc32fast::Hasher;
use std::net::SocketAddr;

/// Points of each member.
const POINTS: usize = 160;

/// Points of all members: from a thousand members on each has fewer, so that a ring's memory and time are bounded.
const ALL_POINTS: usize = 1000 * POINTS;

/// Members on a ring of 2³² places. When one comes or goes, only the keys that are its own move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// Place and number of the member, in order.
    points: Vec<(u32, u32)>,
}

impl Ring {
    /// A ring of endpoints, each by its address and port.
    pub fn of_endpoints(endpoints: &[SocketAddr]) -> Self {
        Self::new(endpoints.iter().map(SocketAddr::to_string))
    }

    /// A ring of members with these names; names must differ. Of very many members each has the first of its points,
    /// so that one more of them moves few keys.
    pub fn new(names: impl IntoIterator<Item = String, IntoIter: ExactSizeIterator>) -> Self {
        let names = names.into_iter();
        let each = (ALL_POINTS / names.len().max(1)).clamp(1, POINTS);
        let mut points = Vec::with_capacity(each * names.len());
        for (member, name) in (0u32..).zip(names) {
            let mut base = Hasher::new();
            base.update(name.as_bytes());
            let mut place = 0u32;
            for _ in 0..each {
                let mut hasher = base.clone();
                hasher.update(&place.to_le_bytes());
                place = hasher.finalize();
                points.push((place, member));
            }
        }
        points.sort_unstable();
        Self { points }
    }

    /// The number of the member that a key belongs to; none if there are no members.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let place = crc32fast::hash(key);
        let at = self.points.partition_point(|(point, _)| *point < place);
        let (_, member) = self.points.get(at).or_else(|| self.points.first())?;
        Some(*member as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use proptest::prelude::{any, prop, prop_assert, proptest};
    use std::net::SocketAddr;

    fn addresses(hosts: &[u8]) -> Vec<SocketAddr> {
        hosts.iter().map(|host| SocketAddr::from(([10, 77, 0, *host], 8000))).collect()
    }

    fn owner(ring: &Ring, endpoints: &[SocketAddr], key: u32) -> Option<SocketAddr> {
        ring.find(key.to_string().as_bytes()).map(|at| endpoints[at])
    }

    #[test]
    fn an_empty_ring_owns_nothing() {
        assert_eq!(Ring::default().find(b"key"), None);
    }

    #[test]
    fn very_many_members_share_a_bounded_number_of_points_and_few_keys_move() {
        let many = |count: u32| -> Vec<SocketAddr> {
            (0..count).map(|at| SocketAddr::from(((0x0a00_0000 + at).to_be_bytes(), 80))).collect()
        };
        // Up to here it is the ring that others have.
        assert_eq!(Ring::of_endpoints(&many(1000)).points.len(), 1000 * super::POINTS);
        let (fewer, more) = (many(20_000), many(20_100));
        let (before, after) = (Ring::of_endpoints(&fewer), Ring::of_endpoints(&more));
        assert_eq!(before.points.len(), 20_000 * 8);
        assert!(after.points.len() <= super::ALL_POINTS, "{}", after.points.len());
        assert!(Ring::of_endpoints(&many(200_000)).points.len() <= 200_000);
        let moved = (0..4000u32)
            .filter(|key| owner(&before, &fewer, *key) != owner(&after, &more, *key))
            .count();
        // Each has a point less from 20,001 on: an eighth of the keys, and those of the new ones.
        assert!(moved < 4000 / 5, "{moved}");
        let owners = |ring: &Ring, all: &[SocketAddr]| -> std::collections::BTreeSet<_> {
            (0..4000u32).filter_map(|key| owner(ring, all, key)).collect()
        };
        assert!(owners(&after, &more).len() > 3000, "keys are spread");
    }

    proptest! {
        #[test]
        fn the_order_of_the_endpoints_does_not_matter(hosts in prop::collection::btree_set(any::<u8>(), 1..12), keys in prop::collection::vec(any::<u32>(), 20)) {
            let forward = addresses(&hosts.iter().copied().collect::<Vec<_>>());
            let backward: Vec<SocketAddr> = forward.iter().rev().copied().collect();
            let (one, other) = (Ring::of_endpoints(&forward), Ring::of_endpoints(&backward));
            for key in keys {
                prop_assert!(owner(&one, &forward, key) == owner(&other, &backward, key));
            }
        }

        #[test]
        fn an_endpoint_that_leaves_takes_only_its_own_keys_along(hosts in prop::collection::btree_set(any::<u8>(), 2..12), at in any::<prop::sample::Index>(), keys in prop::collection::vec(any::<u32>(), 200)) {
            let before = addresses(&hosts.iter().copied().collect::<Vec<_>>());
            let gone = before[at.index(before.len())];
            let after: Vec<SocketAddr> = before.iter().copied().filter(|endpoint| *endpoint != gone).collect();
            let (old, new) = (Ring::of_endpoints(&before), Ring::of_endpoints(&after));
            for key in keys {
                let was = owner(&old, &before, key);
                prop_assert!(was == Some(gone) || was == owner(&new, &after, key));
            }
        }

        #[test]
        fn no_endpoint_gets_far_more_than_its_share(count in 2u8..12) {
            let endpoints = addresses(&(1..=count).collect::<Vec<_>>());
            let ring = Ring::of_endpoints(&endpoints);
            let mut counts = vec![0usize; endpoints.len()];
            for key in 0..4000u32 {
                counts[ring.find(key.to_string().as_bytes()).expect("there are endpoints")] += 1;
            }
            let share = 4000 / endpoints.len();
            prop_assert!(counts.iter().all(|count| *count < share * 2 && *count > share / 3), "{counts:?}");
        }
    }
}
