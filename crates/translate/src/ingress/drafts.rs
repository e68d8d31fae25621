//! Who has a word in a host, in the order in which they are heard.

use super::Draft;
use std::cmp::Ordering;
use std::slice::Iter;
use std::sync::Arc;

/// What Ingresses ask for, the strongest first: of most hosts one. What their order hangs on stands in them.
#[derive(Debug, Default)]
pub(crate) struct Drafts(Vec<Arc<Draft>>);

impl Drafts {
    /// Adds one; another one of the same Ingress is taken out first.
    pub(crate) fn insert(&mut self, draft: Arc<Draft>) {
        // Most hosts are asked for by one Ingress, and a list that grows has room for four.
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        let at = self.0.partition_point(|other| order(other, &draft).is_lt());
        self.0.insert(at, draft);
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, draft: &Draft) {
        if let Ok(at) = self.0.binary_search_by(|other| order(other, draft)) {
            self.0.remove(at);
        }
    }

    /// All of them, the strongest first.
    pub(crate) fn values(&self) -> Iter<'_, Arc<Draft>> {
        self.0.iter()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Order in which Ingresses are heard: those with a mistake last, then the older first. Who waits for room has its
/// turn, so that nothing of it is a younger one's.
fn order(one: &Draft, other: &Draft) -> Ordering {
    one.is_passed_over().cmp(&other.is_passed_over()).then_with(|| one.age().cmp(&other.age()))
}
