//! The copies of requests that one thread has in flight.

use model::Origin;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Copies in flight at most, each thread.
const IN_FLIGHT: usize = 128;
/// Those of the Ingresses of one namespace: whose mirror never answers leaves the other half to others.
const OF_ONE: usize = IN_FLIGHT / 2;
/// Copies left out for each line that the error log has about them.
const SAID_EVERY: u64 = 1000;

/// The copies of one thread.
#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    in_flight: Cell<usize>,
    /// By namespace; who has none is not in it.
    by_namespace: RefCell<HashMap<Arc<str>, usize>>,
    left_out: Cell<u64>,
}

impl Mirrors {
    /// A place for one more copy of an Ingress's, if there is one.
    pub(crate) fn enter(self: &Rc<Self>, ingress: Option<&Origin>) -> Option<Entry> {
        let namespace = ingress.map_or_else(|| "".into(), |ingress| ingress.namespace.clone());
        let mut by_namespace = self.by_namespace.borrow_mut();
        let own = by_namespace.get(&namespace).copied().unwrap_or(0);
        if self.in_flight.get() < IN_FLIGHT && own < OF_ONE {
            self.in_flight.set(self.in_flight.get() + 1);
            by_namespace.insert(namespace.clone(), own + 1);
            return Some(Entry { mirrors: self.clone(), namespace });
        }
        if self.left_out.get().is_multiple_of(SAID_EVERY) {
            tracing::warn!(
                %namespace,
                most = OF_ONE,
                left_out = self.left_out.get() + 1,
                "copies are left out: the mirror is slower than the requests"
            );
        }
        self.left_out.set(self.left_out.get() + 1);
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
        let Mirrors { in_flight, by_namespace, .. } = &*self.mirrors;
        in_flight.set(in_flight.get() - 1);
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
    use model::{Kind, Origin};
    use std::rc::Rc;

    #[test]
    fn whose_mirror_never_answers_leaves_places_to_others() {
        let mirrors = Rc::<Mirrors>::default();
        let of = |namespace: &str| Origin::new(Kind::Ingress, namespace, "i");
        let all = |namespace: &str| -> Vec<_> {
            let ingress = of(namespace);
            std::iter::from_fn(|| mirrors.enter(Some(&ingress))).collect()
        };
        let held = all("a");
        assert_eq!(held.len(), OF_ONE);
        let others = all("b");
        assert_eq!(others.len(), IN_FLIGHT - OF_ONE);
        assert!(mirrors.enter(None).is_none());
        drop(held);
        assert!(mirrors.enter(None).is_some() && mirrors.enter(Some(&of("b"))).is_none());
        drop(others);
        assert!(mirrors.by_namespace.borrow().is_empty() && mirrors.in_flight.get() == 0);
    }
}
