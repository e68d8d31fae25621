//! The same key, the same endpoint: the ring of ingress-nginx (resty.chash), so that keys and sessions stay where they
//! are when one replaces the other.

use crc32fast::Hasher;
use std::net::SocketAddr;

/// Points of each member.
const POINTS: usize = 160;

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

    /// A ring of members with these names; names must differ.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut points = Vec::new();
        for (member, name) in (0u32..).zip(names) {
            let mut base = Hasher::new();
            base.update(name.as_bytes());
            let mut place = 0u32;
            for _ in 0..POINTS {
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
