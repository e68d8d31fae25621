//! The end of the process in two stages: finish what runs, then stop at once.

use std::sync::Arc;
use tokio::sync::watch;

/// How far the end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Everything runs.
    #[default]
    Running,
    /// No new work; what has begun is finished.
    Draining,
    /// Whatever still runs is dropped.
    Aborting,
}

/// Knows whether the process is about to end. Clones share it; every part of the process may have one.
#[derive(Clone, Debug)]
pub struct Shutdown {
    stage: Arc<watch::Sender<Stage>>,
}

impl Shutdown {
    /// Everything runs.
    pub fn new() -> Self {
        Self { stage: Arc::new(watch::Sender::new(Stage::Running)) }
    }

    /// Asks to end: the first time politely, the second time at once.
    pub fn advance(&self) {
        self.stage.send_modify(|stage| {
            *stage = match stage {
                Stage::Running => Stage::Draining,
                Stage::Draining | Stage::Aborting => Stage::Aborting,
            };
        });
    }

    /// How far the end has come.
    pub fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Whether the end has begun.
    pub fn has_begun(&self) -> bool {
        self.stage() > Stage::Running
    }

    /// Returns once the process shall end, politely or at once.
    pub async fn first(&self) {
        self.reached(Stage::Draining).await;
    }

    /// Returns once the process shall end at once.
    pub async fn second(&self) {
        self.reached(Stage::Aborting).await;
    }

    async fn reached(&self, wanted: Stage) {
        let mut stage = self.stage.subscribe();
        // The sender lives in `self`, so this cannot fail while we wait.
        let _ = stage.wait_for(|stage| *stage >= wanted).await;
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{Shutdown, Stage};

    #[tokio::test]
    async fn the_first_request_drains_and_the_second_aborts() {
        let shutdown = Shutdown::new();
        let second = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.second().await }
        });
        assert!(!shutdown.has_begun());
        shutdown.clone().advance();
        shutdown.first().await;
        tokio::task::yield_now().await;
        assert_eq!((shutdown.stage(), second.is_finished()), (Stage::Draining, false));
        shutdown.advance();
        second.await.expect("it does not panic");
        shutdown.advance();
        assert_eq!(shutdown.stage(), Stage::Aborting);
    }

    #[tokio::test]
    async fn whoever_asks_late_is_told_at_once() {
        let shutdown = Shutdown::new();
        shutdown.advance();
        shutdown.advance();
        shutdown.first().await;
        shutdown.second().await;
    }
}
