//! Who gives way where all places of a thread are taken by connections that are busy: whoever lets requests hang, and
//! holds most of the places by that, keeps nobody else out.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use system::sockets;

/// Connections that may end for newcomers before all are counted again: enough for those who come, and few enough that
/// somebody who comes and goes costs a balancer's clients little.
const MOST: usize = 16;
/// Whoever holds less than this part of the places is not who takes them.
const GOOD_PART: usize = 4;
/// A newcomer is somebody else where its network holds less than this part of what the greatest holder has. Several
/// balancers in front of us share the places about evenly: none of them loses a connection to another.
const LESS: usize = 4;

/// The network that holds more than half of all connections, and a good part of the places.
#[derive(Debug)]
pub(crate) struct Holder {
    network: IpAddr,
    holds: HashMap<IpAddr, usize>,
    /// Numbers of its connections, the oldest first.
    oldest: VecDeque<u64>,
}

impl Holder {
    /// Finds it among these connections, of which the number and the address are told; none if nobody holds so much.
    pub(crate) fn of(
        connections: impl Iterator<Item = (u64, IpAddr)>,
        places: usize,
    ) -> Option<Self> {
        let all: Vec<_> =
            connections.map(|(serial, from)| (serial, sockets::party(from))).collect();
        let mut holds: HashMap<IpAddr, usize> = HashMap::new();
        for (_, network) in &all {
            *holds.entry(*network).or_default() += 1;
        }
        let most = |count: usize| count > all.len() / 2 && count >= places / GOOD_PART;
        let (&network, _) = holds.iter().find(|(_, count)| most(**count))?;
        let own = all.into_iter().filter(|(_, of)| *of == network);
        let mut oldest: Vec<u64> = own.map(|(serial, _)| serial).collect();
        oldest.sort_unstable();
        oldest.truncate(MOST);
        Some(Self { network, holds, oldest: oldest.into() })
    }

    /// The connection that ends for a newcomer; none if the newcomer is no better, or enough have ended.
    pub(crate) fn gives_way(&mut self, newcomer: IpAddr) -> Option<u64> {
        let most = self.holds.get(&self.network).copied().unwrap_or_default();
        let own = self.holds.entry(sockets::party(newcomer)).or_default();
        if *own >= most / LESS {
            return None;
        }
        *own += 1;
        self.oldest.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::Holder;
    use std::net::IpAddr;

    fn address(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    /// So many connections of each of these addresses, which came in turns.
    fn holder(counts: &[(u8, usize)], places: usize) -> Option<Holder> {
        let turns = (0..places).flat_map(|turn| {
            counts.iter().filter(move |(_, count)| turn < *count).map(|(from, _)| address(*from))
        });
        Holder::of((0u64..).zip(turns), places)
    }

    #[test]
    fn the_oldest_connections_of_whoever_holds_most_end_for_others() {
        let mut holder = holder(&[(1, 70), (2, 30)], 100).expect("somebody who holds most");
        // The ones of 192.0.2.1 came first, third, and so on.
        let ended: Vec<_> = (0..3).map(|_| holder.gives_way(address(3))).collect();
        assert_eq!(ended, [Some(0), Some(2), Some(4)]);
        assert_eq!(holder.gives_way(address(1)), None, "nobody takes from oneself");
        assert_eq!(holder.gives_way(address(2)), None, "30 is no less than a quarter of 70");
    }

    #[test]
    fn a_newcomer_has_a_quarter_of_what_the_greatest_has_and_no_more() {
        let mut holder = holder(&[(1, 40)], 40).expect("somebody who holds all");
        assert_eq!((0..40).filter_map(|_| holder.gives_way(address(2))).count(), 10);
        assert!(holder.gives_way(address(3)).is_some());
    }

    #[test]
    fn no_more_end_at_a_time_than_few() {
        let mut holder = holder(&[(1, 200)], 200).expect("somebody who holds all");
        let ended = (2..100).filter_map(|from| holder.gives_way(address(from))).count();
        assert_eq!(ended, super::MOST);
    }

    #[test]
    fn who_shares_the_places_loses_none() {
        assert!(holder(&[(1, 50), (2, 50)], 100).is_none());
        assert!(holder(&[(1, 20)], 100).is_none(), "the others are before their first request");
        assert!(holder(&[(1, 25)], 100).is_some(), "something else is scarce");
        assert!(holder(&[], 0).is_none());
    }
}
