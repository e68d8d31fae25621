//! Spans on their way out: bounded, and never in the way of a request.

use super::record::Record;
use super::waiting::{Owner, Waiting};
use model::Batches;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// What became of spans since the process started.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// What became of spans since the process started, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The collector took them.
    pub exported: u64,
    /// Too many waited already.
    pub dropped: u64,
    /// The collector did not want them, or was not there at the end.
    pub failed: u64,
}

impl Counts {
    /// The counts now.
    pub(crate) fn now(&self) -> Spans {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Spans {
            exported: read(&self.exported),
            dropped: read(&self.dropped),
            failed: read(&self.failed),
        }
    }

    /// The collector took so many.
    pub(crate) fn exported(&self, spans: u64) {
        self.exported.fetch_add(spans, Ordering::Relaxed);
    }

    /// So many went nowhere.
    pub(crate) fn failed(&self, spans: u64) {
        self.failed.fetch_add(spans, Ordering::Relaxed);
    }
}

/// Spans that wait to be sent.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    limits: Batches,
    wake: Notify,
    closed: AtomicBool,
    counts: Arc<Counts>,
}

impl Queue {
    /// An empty queue.
    pub(super) fn new(limits: Batches, counts: Arc<Counts>) -> Self {
        Self {
            waiting: Mutex::default(),
            limits,
            wake: Notify::new(),
            closed: AtomicBool::new(false),
            counts,
        }
    }

    /// Adds a span of a request of this namespace, unless there is no room. Whoever sends is woken for the first one
    /// and for a whole batch.
    pub(super) fn push(&self, owner: Owner, record: Record) {
        let mut waiting = self.waiting.lock();
        let had_room = waiting.add(owner, record, self.limits.queue);
        let count = waiting.count();
        drop(waiting);
        if !had_room {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        } else if count == 1 || count == self.limits.size {
            self.wake.notify_one();
        }
    }

    /// The next batch: a whole one, or what there is after the delay. None once the queue is closed and empty.
    pub(super) async fn batch(&self) -> Option<Vec<Record>> {
        while self.waiting.lock().count() == 0 {
            if self.is_closed() {
                return None;
            }
            self.wake.notified().await;
        }
        let whole = async {
            while self.waiting.lock().count() < self.limits.size && !self.is_closed() {
                self.wake.notified().await;
            }
        };
        // Fewer go out once the first has waited long enough.
        let _ = timeout(self.limits.delay, whole).await;
        Some(self.waiting.lock().take(self.limits.size))
    }

    /// Waits, unless the queue is closed.
    pub(super) async fn pause(&self, time: Duration) {
        let closed = async {
            while !self.is_closed() {
                self.wake.notified().await;
            }
        };
        let _ = timeout(time, closed).await;
    }

    /// There will be no more spans.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Whether there will be no more spans.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What became of spans.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }
}
