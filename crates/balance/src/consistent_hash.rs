//! The same key, the same endpoint: the ring of ingress-nginx (resty.chash), so that keys and sessions stay where they
//! are when one replaces the other.

use crc32fast::Hasher;
use std::collections::HashMap;
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

    /// The ring of `endpoints` where those before are known with their ring: the same as a new one. Where few of many
    /// come or go, their own points are made and taken out, and none is sorted again.
    pub fn following(endpoints: &[SocketAddr], before: &[SocketAddr], ring: &Self) -> Self {
        let each = points_of_each(endpoints.len());
        let mut new: HashMap<SocketAddr, u32> = endpoints.iter().copied().zip(0..).collect();
        let moved: Vec<Option<u32>> = before.iter().map(|known| new.remove(known)).collect();
        if each != points_of_each(before.len()) || new.len() > endpoints.len() / 4 {
            return Self::of_endpoints(endpoints);
        }
        let mut points = Vec::with_capacity(each * endpoints.len());
        let stay = ring.points.iter();
        points.extend(stay.filter_map(|(place, member)| Some((*place, moved[*member as usize]?))));
        // Members have other numbers now, and those of one place stand in their order.
        settle(&mut points);
        let mut added = Vec::new();
        for (endpoint, member) in &new {
            put(&endpoint.to_string(), *member, each, &mut added);
        }
        added.sort_unstable();
        Self { points: merged(points, &added) }
    }

    /// A ring of members with these names; names must differ. Of very many members each has the first of its points,
    /// so that one more of them moves few keys.
    pub fn new(names: impl IntoIterator<Item = String, IntoIter: ExactSizeIterator>) -> Self {
        let names = names.into_iter();
        let each = points_of_each(names.len());
        let mut points = Vec::with_capacity(each * names.len());
        for (member, name) in (0u32..).zip(names) {
            put(&name, member, each, &mut points);
        }
        points.sort_unstable();
        Self { points }
    }

    /// Its points: place and number of the member, in order.
    pub(crate) fn into_points(self) -> Vec<(u32, u32)> {
        self.points
    }

    /// The number of the member that a key belongs to; none if there are no members.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let place = crc32fast::hash(key);
        let at = self.points.partition_point(|(point, _)| *point < place);
        let (_, member) = self.points.get(at).or_else(|| self.points.first())?;
        Some(*member as usize)
    }
}

/// How many points each of so many members has.
fn points_of_each(members: usize) -> usize {
    (ALL_POINTS / members.max(1)).clamp(1, POINTS)
}

/// Adds the points of a member, in no order.
fn put(name: &str, member: u32, each: usize, points: &mut Vec<(u32, u32)>) {
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

/// Puts points in order that nearly are: only those of one place may have to change theirs.
fn settle(points: &mut [(u32, u32)]) {
    for at in 1..points.len() {
        let mut at = at;
        while at > 0 && points[at - 1] > points[at] {
            points.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Two lists in order as one.
fn merged(points: Vec<(u32, u32)>, added: &[(u32, u32)]) -> Vec<(u32, u32)> {
    if added.is_empty() {
        return points;
    }
    let mut all = Vec::with_capacity(points.len() + added.len());
    let mut rest = &points[..];
    for point in added {
        let (before, after) = rest.split_at(rest.partition_point(|other| other < point));
        all.extend_from_slice(before);
        all.push(*point);
        rest = after;
    }
    all.extend_from_slice(rest);
    all
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use proptest::prelude::{any, prop, prop_assert, proptest};
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, SocketAddr};

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
        let owners = |ring: &Ring, all: &[SocketAddr]| -> BTreeSet<_> {
            (0..4000u32).filter_map(|key| owner(ring, all, key)).collect()
        };
        assert!(owners(&after, &more).len() > 3000, "keys are spread");
    }

    #[test]
    fn a_ring_follows_another_where_each_has_fewer_points_and_where_members_share_places() {
        let all: Vec<SocketAddr> =
            (0..1_010u16).map(|host| (Ipv4Addr::from(u32::from(host)), 80).into()).collect();
        for (before, after) in [(0..1_000, 1..1_001), (0..1_000, 0..1_001), (5..1_005, 0..1_000)] {
            let (before, after) = (&all[before], &all[after]);
            let ring = Ring::following(after, before, &Ring::of_endpoints(before));
            assert!(ring == Ring::of_endpoints(after));
        }
    }

    proptest! {
        #[test]
        fn a_ring_that_follows_another_is_the_same_as_a_new_one(
            before in prop::collection::btree_set(any::<u8>(), 1..40),
            gone in prop::collection::btree_set(any::<u8>(), 0..20),
            come in prop::collection::btree_set(any::<u8>(), 0..8),
        ) {
            let after: BTreeSet<u8> = before.difference(&gone).chain(&come).copied().collect();
            let [before, after] = [before, after].map(|hosts| addresses(&Vec::from_iter(hosts)));
            let ring = Ring::following(&after, &before, &Ring::of_endpoints(&before));
            prop_assert!(ring == Ring::of_endpoints(&after));
        }

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
