//! Which addresses are endpoints of some upstream, kept up by whoever changes an upstream: threads of traffic ask about
//! one, and never go through all.

use foldhash::fast::RandomState;
use model::Endpoints;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::net::SocketAddr;

/// Parts that are locked one by one, so that who asks waits for next to nothing.
const PARTS: usize = 64;

type Part = HashMap<SocketAddr, u32, RandomState>;

/// The addresses of all endpoints, with how many upstreams have each.
#[derive(Debug)]
pub struct Addresses {
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

impl Default for Addresses {
    fn default() -> Self {
        Self { hasher: RandomState::default(), parts: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl Addresses {
    /// Whether an upstream has this endpoint.
    pub fn has(&self, address: &SocketAddr) -> bool {
        self.part(address).contains_key(address)
    }

    /// An upstream has these endpoints from now on.
    pub(crate) fn add(&self, endpoints: &Endpoints) {
        for address in endpoints.ready.iter().chain(&endpoints.draining) {
            *self.part(address).entry(*address).or_default() += 1;
        }
    }

    /// An upstream has them no more.
    pub(crate) fn remove(&self, endpoints: &Endpoints) {
        for address in endpoints.ready.iter().chain(&endpoints.draining) {
            let mut part = self.part(address);
            if let Entry::Occupied(mut count) = part.entry(*address) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
            if part.is_empty() {
                part.shrink_to_fit();
            }
        }
    }

    fn part(&self, address: &SocketAddr) -> MutexGuard<'_, Part> {
        let hash = self.hasher.hash_one(address) >> 32;
        let part = &self.parts[usize::try_from(hash).unwrap_or_default() % PARTS];
        part.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;
    use crate::Group;
    use model::{Endpoints, UpstreamId};
    use std::net::SocketAddr;
    use std::sync::Arc;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 80))
    }

    fn endpoints(ready: &[u8], draining: &[u8]) -> Arc<Endpoints> {
        let all = |of: &[u8]| of.iter().map(|last| address(*last)).collect();
        Arc::new(Endpoints { ready: all(ready), draining: all(draining) })
    }

    #[test]
    fn an_address_is_known_as_long_as_an_upstream_has_it() {
        let addresses = Arc::new(Addresses::default());
        let known = || (1..=5).filter(|last| addresses.has(&address(*last))).collect::<Vec<_>>();
        let new = |name: &str| {
            let group = Group::new(UpstreamId::new(name), endpoints(&[], &[]));
            group.tell(&addresses);
            group
        };
        let (one, other) = (new("one"), new("other"));
        one.replace(endpoints(&[1, 2], &[3]));
        other.replace(endpoints(&[2], &[]));
        assert_eq!(known(), [1, 2, 3]);
        one.tell(&addresses);
        one.replace(endpoints(&[3, 4], &[]));
        assert_eq!(known(), [2, 3, 4]);
        other.replace(endpoints(&[], &[]));
        assert_eq!(known(), [3, 4]);
        drop(one);
        assert!(known().is_empty());
        assert!(addresses.parts.iter().all(|part| part.lock().capacity() == 0));
    }
}
