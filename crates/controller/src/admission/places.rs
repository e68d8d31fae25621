//! Places for connections: so many in all, and fewer for one address, so that nobody takes all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All places.
#[derive(Debug)]
pub(super) struct Places {
    all: usize,
    of_one: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    /// So many in all, so many for one address.
    pub(super) fn new(all: usize, of_one: usize) -> Arc<Self> {
        Arc::new(Self { all, of_one, taken: Mutex::default() })
    }

    /// A place for an address, if there is one: whoever comes late is told so at once, rather than kept waiting.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut taken = self.taken();
        let own = taken.get(&address).copied().unwrap_or(0);
        if own >= self.of_one || taken.values().sum::<usize>() >= self.all {
            return None;
        }
        taken.insert(address, own + 1);
        Some(Place { places: Arc::clone(self), address })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        match taken.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn one_address_never_takes_all_and_places_come_back() {
        let places = Places::new(3, 2);
        let of = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        let (first, _second) = (places.take(of(1)), places.take(of(1)));
        assert!(first.is_some() && places.take(of(1)).is_none());
        let third = places.take(of(2));
        assert!(third.is_some() && places.take(of(3)).is_none());
        drop(first);
        assert!(places.take(of(3)).is_some());
        drop(third);
        assert_eq!(places.taken().len(), 1);
    }
}
