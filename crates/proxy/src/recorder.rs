//! One thread counts each request when its last byte is gone.

use request_metrics::{Counter, Metrics, Observed, Request, Tally};
use std::sync::Arc;

/// One thread's end of the metrics.
#[derive(Debug)]
pub(crate) struct Recorder(Counter);

impl Recorder {
    /// A thread begins to count.
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self(Counter::new(metrics))
    }

    /// What this thread says of its connections.
    pub(crate) fn tally(&self) -> &Tally {
        self.0.tally()
    }

    /// Forgets the cells of series that are gone.
    pub(crate) fn prune(&self) {
        self.0.prune();
    }

    /// Counts a request that is over, with what was observed of it.
    pub(crate) fn count(&self, request: &Request<'_>, observed: impl FnOnce() -> Observed) {
        self.0.count(request, observed);
    }
}
