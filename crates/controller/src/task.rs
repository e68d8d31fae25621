//! A task that is asked to end, and waited for.

use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A running task.
#[derive(Debug)]
pub(crate) struct Task {
    stop: watch::Sender<bool>,
    handle: JoinHandle<()>,
}

/// Says to a task when to end.
#[derive(Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Task {
    /// Starts a task. Must be called within a tokio runtime.
    pub(crate) fn start<F>(begin: impl FnOnce(Stop) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, asked) = watch::channel(false);
        Self { stop, handle: tokio::spawn(begin(Stop(asked))) }
    }

    /// Asks it to end and waits; whether it has ended in time.
    pub(crate) async fn end(self, patience: Duration) -> bool {
        self.stop.send_replace(true);
        tokio::time::timeout(patience, self.handle).await.is_ok()
    }
}

impl Stop {
    /// Returns when the task shall end; also when nobody has it any more.
    pub(crate) async fn asked(&mut self) {
        drop(self.0.wait_for(|stop| *stop).await);
    }
}
