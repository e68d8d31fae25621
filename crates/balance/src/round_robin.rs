//! Every endpoint in turn.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The turn of one upstream (ingress-nginx: `load-balance: round_robin`, the default), shared by all threads.
///
/// It knows nothing of the endpoints but whose turn it is, so it survives every change of them: whatever the change,
/// the next `n` turns over `n` endpoints reach each of them once. A retry takes another turn.
#[derive(Debug, Default)]
pub struct RoundRobin {
    turn: AtomicUsize,
}

impl RoundRobin {
    /// The endpoint whose turn it is; none if there are no endpoints.
    pub fn next(&self, endpoints: &[SocketAddr]) -> Option<SocketAddr> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let at = turn.checked_rem(endpoints.len())?;
        Some(endpoints[at])
    }
}

#[cfg(test)]
mod tests {
    use super::{AtomicUsize, RoundRobin};
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
    fn no_endpoints_have_no_turn() {
        assert_eq!(RoundRobin::default().next(&[]), None);
    }

    proptest! {
        #[test]
        fn whatever_changes_each_endpoint_gets_its_turn(
            first in 0_usize..1_000_000,
            counts in prop::collection::vec((1_u16..9, 0_usize..20), 0..8),
            last in 1_u16..9,
        ) {
            let rotation = RoundRobin { turn: AtomicUsize::new(first) };
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
