//! Places for connections and sessions: bounded for the process, and half of them at most for one namespace.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a connection waits for a place.
const PATIENCE: Duration = Duration::from_secs(5);

/// Places for everybody, and half of them at most for one namespace.
#[derive(Debug)]
pub(crate) struct Room {
    total: Arc<Semaphore>,
    most: usize,
    refused: AtomicU64,
    shares: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// One place, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _total: OwnedSemaphorePermit,
    _share: OwnedSemaphorePermit,
}

impl Room {
    /// So many places.
    pub(crate) fn new(most: usize) -> Self {
        let refused = AtomicU64::new(0);
        Self { total: Arc::new(Semaphore::new(most)), most, refused, shares: Mutex::default() }
    }

    /// A place for somebody of this namespace; none if there is none for a while.
    pub(crate) async fn wait(&self, namespace: &Arc<str>) -> Option<Place> {
        let share = self.share(namespace);
        let waiting = async {
            let share = share.acquire_owned().await.ok()?;
            let total = self.total.clone().acquire_owned().await.ok()?;
            Some(Place { _total: total, _share: share })
        };
        self.noted(timeout(PATIENCE, waiting).await.ok().flatten())
    }

    /// The same, at once.
    pub(crate) fn now(&self, namespace: &Arc<str>) -> Option<Place> {
        let at_once = || {
            let share = self.share(namespace).try_acquire_owned().ok()?;
            let total = self.total.clone().try_acquire_owned().ok()?;
            Some(Place { _total: total, _share: share })
        };
        self.noted(at_once())
    }

    fn noted(&self, place: Option<Place>) -> Option<Place> {
        if place.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    /// Places that are taken, all of them, and how often there was none.
    pub(crate) fn in_use(&self) -> (usize, usize, u64) {
        let taken = self.most.saturating_sub(self.total.available_permits());
        (taken, self.most, self.refused.load(Ordering::Relaxed))
    }

    /// Waits until every place is free.
    pub(crate) async fn is_empty(&self) {
        let _ = self.total.acquire_many(u32::try_from(self.most).unwrap_or(u32::MAX)).await;
    }

    /// The places of a namespace, which are forgotten with the last one that is taken.
    fn share(&self, namespace: &Arc<str>) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(namespace).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new((self.most / 2).max(1)));
        shares.insert(namespace.clone(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Room};
    use std::sync::Arc;

    fn places(room: &Room, namespace: &str) -> Vec<Place> {
        let namespace: Arc<str> = namespace.into();
        std::iter::from_fn(|| room.now(&namespace)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_has_half_of_the_places_and_waits_for_no_more_for_ever() {
        let room = Room::new(8);
        let one = places(&room, "one");
        assert_eq!(room.in_use().0, one.len());
        assert!(room.in_use().2 > 0, "who got none is counted");
        assert_eq!(one.len(), 4);
        assert!(room.wait(&"one".into()).await.is_none());
        assert_eq!(places(&room, "two").len(), 4);
        drop(one);
        assert!(room.wait(&"one".into()).await.is_some());
        assert_eq!(room.shares.lock().expect("whole").len(), 1);
    }
}
