//! Datagrams that wait for their session: their bytes have a bound for each session, for all of a namespace, and for
//! all.

use parking_lot::Mutex;
use shares::WeakMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that wait for one session: as many datagrams of the usual size as may wait.
const OF_SESSION: usize = 96 << 10;
/// Bytes that wait for the sessions of one namespace,
const OF_NAMESPACE: usize = 8 << 20;
/// and of all; a namespace has no more than what is left of that, so that something is left for whoever comes.
const OF_ALL: usize = 16 << 20;

/// What waits for all sessions.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    all: AtomicUsize,
    shares: Mutex<WeakMap<Arc<str>, AtomicUsize>>,
}

/// What waits for one session.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Arc<Waiting>,
    of_namespace: Arc<AtomicUsize>,
    own: AtomicUsize,
}

/// A datagram that waits.
#[derive(Debug)]
pub(crate) struct Datagram {
    bytes: Vec<u8>,
    queue: Arc<Queue>,
}

impl Waiting {
    /// The queue of a session of this namespace.
    pub(crate) fn queue(self: &Arc<Self>, namespace: &Arc<str>) -> Arc<Queue> {
        let mut shares = self.shares.lock();
        let of_namespace = shares.get_or_insert_with(namespace.clone(), Arc::default);
        Arc::new(Queue { waiting: self.clone(), of_namespace, own: AtomicUsize::new(0) })
    }
}

impl Queue {
    /// A datagram that waits from now on; none if there is no room for it.
    pub(crate) fn take(self: &Arc<Self>, datagram: &[u8]) -> Option<Datagram> {
        let size = datagram.len();
        if !fits(&self.own, size, OF_SESSION) {
            return None;
        }
        let left = OF_ALL.saturating_sub(self.waiting.all.load(Ordering::Relaxed));
        if !fits(&self.of_namespace, size, OF_NAMESPACE.min(left)) {
            self.own.fetch_sub(size, Ordering::Relaxed);
            return None;
        }
        self.waiting.all.fetch_add(size, Ordering::Relaxed);
        Some(Datagram { bytes: datagram.to_vec(), queue: self.clone() })
    }
}

/// Adds to a count unless it would be more than `most`; whether it did.
fn fits(count: &AtomicUsize, size: usize, most: usize) -> bool {
    let grown = |used: usize| used.checked_add(size).filter(|used| *used <= most);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
}

impl Deref for Datagram {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        let Queue { waiting, of_namespace, own } = &*self.queue;
        for count in [own, &**of_namespace, &waiting.all] {
            count.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Datagram, OF_ALL, OF_NAMESPACE, OF_SESSION, Queue, Waiting};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    const SIZE: usize = 32 << 10;

    fn filled(queue: &Arc<Queue>) -> Vec<Datagram> {
        std::iter::from_fn(|| queue.take(&[0; SIZE])).collect()
    }

    /// What waits for as many sessions of a namespace as there is room for.
    fn all_of(waiting: &Arc<Waiting>, namespace: &str) -> Vec<Datagram> {
        let queue = || waiting.queue(&namespace.into());
        (0..OF_ALL / OF_SESSION).flat_map(|_| filled(&queue())).collect()
    }

    #[test]
    fn what_waits_has_a_bound_for_a_session_for_a_namespace_and_leaves_something_to_others() {
        let waiting = Arc::<Waiting>::default();
        let queue = waiting.queue(&"a".into());
        let mut first = filled(&queue);
        assert_eq!(first.len() * SIZE, OF_SESSION);
        drop(first.pop());
        assert!(queue.take(&[0; SIZE]).is_some(), "what went makes room");
        drop(first);
        let of_a = all_of(&waiting, "a");
        assert_eq!(of_a.len() * SIZE, OF_NAMESPACE);
        let of_b = all_of(&waiting, "b");
        assert_eq!(of_b.len() * SIZE, OF_NAMESPACE / 2, "as much as is left then");
        assert!(!all_of(&waiting, "c").is_empty());
        drop((of_a, of_b));
        assert_eq!(waiting.all.load(Ordering::Relaxed), 0);
    }
}
