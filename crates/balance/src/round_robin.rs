//! Every endpoint in turn.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The turn of one upstream on one thread (ingress-nginx: `load-balance: round_robin`, the default).
///
/// It knows nothing of the endpoints but whose turn it is, so it survives every change of them: whatever the change,
/// the next `n` turns over `n` endpoints reach each of them once. A retry takes another turn.
#[derive(Debug, Default)]
pub struct RoundRobin {
    /// Atomic only so that its owner may move between threads; turns of one upstream are not shared among threads.
    turn: AtomicUsize,
}

impl RoundRobin {
    /// A rotation whose first turn is that of endpoint `first`, counted from 0 and around. Threads that start at
    /// different endpoints do not all send their first request to the same one.
    pub fn starting_at(first: usize) -> Self {
        Self { turn: AtomicUsize::new(first) }
    }

    /// The endpoint whose turn it is; none if there are no endpoints.
    pub fn next(&self, endpoints: &[SocketAddr]) -> Option<SocketAddr> {
        let turn = self.turn.load(Ordering::Relaxed);
        // Division is spared where it is not needed, which is nearly always.
        let at = if turn < endpoints.len() { turn } else { turn.checked_rem(endpoints.len())? };
        self.turn.store(at + 1, Ordering::Relaxed);
        Some(endpoints[at])
    }
}

#[cfg(test)]
mod tests {
    use super::RoundRobin;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
    use std::collections::HashSet;
    use std::net::SocketAddr;

    fn endpoints(count: u16) -> Vec<SocketAddr> {
        (0..count).map(|port| SocketAddr::from(([10, 77, 0, 10], 8000 + port))).collect()
    }

    fn turns(rotation: &RoundRobin, endpoints: &[SocketAddr], count: usize) -> Vec<u16> {
        (0..count)
            .map(|_| rotation.next(endpoints).expect("there are endpoints").port() - 8000)
            .collect()
    }

    #[test]
    fn a_new_rotation_starts_with_the_first_endpoint_and_keeps_the_order() {
        assert_eq!(turns(&RoundRobin::default(), &endpoints(3), 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_rotation_may_start_elsewhere() {
        assert_eq!(turns(&RoundRobin::starting_at(2), &endpoints(3), 4), [2, 0, 1, 2]);
        assert_eq!(turns(&RoundRobin::starting_at(usize::MAX), &endpoints(2), 3), [1, 0, 1]);
    }

    #[test]
    fn a_retry_goes_to_the_next_endpoint() {
        // Recorded in proxy/next-upstream-on-status: tries 0 1, 0 1, 0 1 0, then 1.
        let rotation = RoundRobin::default();
        let two = endpoints(2);
        assert_eq!(turns(&rotation, &two, 2), [0, 1]);
        assert_eq!(turns(&rotation, &two, 2), [0, 1]);
        assert_eq!(turns(&rotation, &two, 3), [0, 1, 0]);
        assert_eq!(turns(&rotation, &two, 1), [1]);
    }

    #[test]
    fn no_endpoints_have_no_turn_and_do_not_disturb_the_rotation() {
        let rotation = RoundRobin::default();
        assert_eq!(turns(&rotation, &endpoints(3), 1), [0]);
        assert_eq!(rotation.next(&[]), None);
        assert_eq!(turns(&rotation, &endpoints(3), 1), [1]);
    }

    proptest! {
        #[test]
        fn whatever_changes_each_endpoint_gets_its_turn(
            first: usize,
            counts in prop::collection::vec((1_u16..9, 0_usize..20), 0..8),
            last in 1_u16..9,
        ) {
            let rotation = RoundRobin::starting_at(first);
            for (count, requests) in counts {
                turns(&rotation, &endpoints(count), requests);
            }
            let seen = turns(&rotation, &endpoints(last), usize::from(last) * 2);
            let (round, next) = seen.split_at(usize::from(last));
            prop_assert_eq!(round, next);
            prop_assert!(round.iter().collect::<HashSet<_>>().len() == usize::from(last));
        }
    }
}
