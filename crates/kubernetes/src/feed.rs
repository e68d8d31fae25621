//! Snapshots as they come: the latest one, and the tasks that keep it so.

use objects::Snapshot;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Snapshots as they come. Dropping it ends the tasks behind it.
#[derive(Debug)]
pub struct Feed {
    /// The latest Snapshot; complete from the start, changed with every change. It stays as it is while its source
    /// cannot be reached.
    pub snapshots: watch::Receiver<Snapshot>,
    seen: Seen,
    /// Ends the tasks when it is dropped.
    _tasks: JoinSet<()>,
}

/// When the oldest change that nobody has taken yet was seen.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Option<Instant>>>);

/// Hands out Snapshots.
#[derive(Debug)]
pub(crate) struct Publisher {
    snapshots: watch::Sender<Snapshot>,
    seen: Seen,
}

impl Feed {
    /// A feed that begins with a Snapshot, and what hands out the next ones.
    pub(crate) fn new(first: Snapshot) -> (Self, Publisher) {
        let ((sender, snapshots), seen) = (watch::channel(first), Seen::default());
        let feed = Self { snapshots, seen: seen.clone(), _tasks: JoinSet::new() };
        (feed, Publisher { snapshots: sender, seen })
    }

    /// The same feed, which lasts as long as these tasks.
    pub(crate) fn with(self, tasks: JoinSet<()>) -> Self {
        Self { _tasks: tasks, ..self }
    }

    /// The latest Snapshot, and when the oldest of the changes was seen that it brings since the last one taken.
    pub fn take(&mut self) -> (Snapshot, Option<Instant>) {
        // Whoever publishes waits meanwhile, so the two belong together.
        let latest = self.snapshots.borrow_and_update();
        (latest.clone(), self.seen.0.lock().take())
    }
}

impl Publisher {
    /// Hands out a Snapshot with changes that were seen at `since`.
    pub(crate) fn publish(&self, next: Snapshot, since: Instant) {
        self.snapshots.send_modify(|snapshot| {
            let mut seen = self.seen.0.lock();
            seen.get_or_insert(since);
            *snapshot = next;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Feed;
    use objects::Snapshot;
    use std::time::{Duration, Instant};

    #[tokio::test]
    async fn what_is_taken_brings_the_time_of_its_oldest_change() {
        let (mut feed, publisher) = Feed::new(Snapshot::default());
        assert_eq!(feed.take().1, None, "nothing changed yet");
        let first = Instant::now();
        publisher.publish(Snapshot::default(), first);
        publisher.publish(Snapshot::default(), first + Duration::from_secs(1));
        assert_eq!(feed.take().1, Some(first));
        publisher.publish(Snapshot::default(), first + Duration::from_secs(2));
        assert_eq!(feed.take().1, Some(first + Duration::from_secs(2)));
    }
}
