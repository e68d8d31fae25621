//! The copies of requests that one thread has in flight.

use crate::crowds::{OfThread, add};
use model::Origin;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Copies in flight at most, each thread.
pub(crate) const IN_FLIGHT: u64 = 128;
/// Those of the Ingresses of one namespace: whose mirror never answers leaves the other half to others.
const OF_ONE: u64 = IN_FLIGHT / 2;
/// Copies left out for each line that the error log has about them.
const SAID_EVERY: u64 = 1000;

/// The copies of one thread.
#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    counts: Arc<OfThread>,
    /// Those in flight by namespace; who has none is not in it.
    by_namespace: RefCell<HashMap<Arc<str>, u64>>,
}

impl Mirrors {
    /// Those of a thread that counts there.
    pub(crate) fn new(counts: Arc<OfThread>) -> Rc<Self> {
        Rc::new(Self { counts, by_namespace: RefCell::default() })
    }

    /// A place for one more copy of an Ingress's, if there is one.
    pub(crate) fn enter(self: &Rc<Self>, ingress: Option<&Origin>) -> Option<Entry> {
        let namespace = ingress.map_or_else(|| "".into(), |ingress| ingress.namespace.clone());
        let mut by_namespace = self.by_namespace.borrow_mut();
        let own = by_namespace.get(&namespace).copied().unwrap_or(0);
        let left = IN_FLIGHT.saturating_sub(self.counts.copies.load(Ordering::Relaxed));
        // No more than is left for others.
        if own < OF_ONE.min(left) {
            add(&self.counts.copies);
            by_namespace.insert(namespace.clone(), own + 1);
            return Some(Entry { mirrors: self.clone(), namespace });
        }
        let left_out = self.counts.left_out.load(Ordering::Relaxed);
        if left_out.is_multiple_of(SAID_EVERY) {
            tracing::warn!(
                %namespace,
                most = OF_ONE,
                left_out = left_out + 1,
                "copies are left out: the mirror is slower than the requests"
            );
        }
        add(&self.counts.left_out);
        None
    }
}

/// The place of a copy in flight.
#[derive(Debug)]
pub(crate) struct Entry {
    mirrors: Rc<Mirrors>,
    namespace: Arc<str>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Mirrors { counts, by_namespace } = &*self.mirrors;
        // This thread alone writes it.
        counts.copies.store(counts.copies.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        let mut by_namespace = by_namespace.borrow_mut();
        if let Some(own) = by_namespace.get_mut(&self.namespace) {
            *own -= 1;
            if *own == 0 {
                by_namespace.remove(&self.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IN_FLIGHT, Mirrors, OF_ONE};
    use crate::crowds::{Crowd, Threads};
    use model::{Kind, Origin};

    #[test]
    fn whose_mirror_never_answers_leaves_places_to_others() {
        let threads = Threads::default();
        let mirrors = Mirrors::new(threads.join());
        let of = |namespace: &str| Origin::new(Kind::Ingress, namespace, "i");
        let all = |namespace: &str| -> Vec<_> {
            let ingress = of(namespace);
            std::iter::from_fn(|| mirrors.enter(Some(&ingress))).collect()
        };
        let held = all("a");
        assert_eq!(held.len() as u64, OF_ONE);
        let others = ["b", "c"].map(all);
        let counts = others.each_ref().map(|held| held.len() as u64);
        assert_eq!(counts, [OF_ONE / 2, OF_ONE / 4], "each leaves as much as it has");
        let now = OF_ONE + OF_ONE / 2 + OF_ONE / 4;
        let crowd = Crowd { now, most: IN_FLIGHT, refused: 3 };
        assert_eq!(threads.sum(IN_FLIGHT), (crowd, 0), "each who asked in vain is counted");
        drop(held);
        assert_eq!(all("b").len() as u64, OF_ONE / 4 + OF_ONE / 8, "as many as are left then");
        drop(others);
        assert!(mirrors.by_namespace.borrow().is_empty() && threads.sum(IN_FLIGHT).0.now == 0);
    }
}
