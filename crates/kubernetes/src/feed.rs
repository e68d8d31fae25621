//! Snapshots as they come: the latest one, and the tasks that keep it so.

use crate::Snapshot;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Snapshots as they come. Dropping it ends the tasks behind it.
#[derive(Debug)]
pub struct Feed {
    /// The latest Snapshot; complete from the start, changed with every change. It stays as it is while its source
    /// cannot be reached.
    pub snapshots: watch::Receiver<Snapshot>,
    /// Ends the tasks when it is dropped.
    _tasks: JoinSet<()>,
}

impl Feed {
    pub(crate) fn new(snapshots: watch::Receiver<Snapshot>, tasks: JoinSet<()>) -> Self {
        Self { snapshots, _tasks: tasks }
    }
}
