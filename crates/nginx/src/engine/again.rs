//! An nginx that ends by itself: whoever waits for it stops to wait, and it is started again with what it ran with.

use super::state::State;
use super::{Failure, Inner};
use crate::process;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep};

/// The shortest and the longest pause before nginx is started again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

impl Inner {
    /// What is known, when it is one's turn. A master that has ended meanwhile is none.
    pub(super) async fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().await;
        if *self.master.borrow() == 0 {
            state.master = None;
        }
        state
    }

    /// What comes of some work with the master that there was when it began, or with one that it starts itself, unless
    /// that ends meanwhile: while somebody waits for it to answer, nobody can start it again.
    pub(super) async fn unless_ended<T>(
        &self,
        had: Option<i32>,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut master = self.master.subscribe();
        if had.is_some() {
            // It may have ended by now.
            master.mark_changed();
        }
        let ended = async {
            while master.changed().await.is_ok() {
                if *master.borrow_and_update() == 0 {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = ended => Err(Failure::Ended),
            done = work => done,
        }
    }

    /// Waits for the end of nginx, and starts it again unless it was meant to end.
    pub(super) async fn watch(self: Arc<Self>, mut child: Child, master: i32) {
        let status = child.wait().await;
        // Workers go with their master.
        process::end_group(master);
        self.master.send_if_modified(|now| {
            let is_it = *now == master;
            *now = if is_it { 0 } else { *now };
            is_it
        });
        process::reap_group(master).await;
        if self.stopping.load(Ordering::SeqCst) {
            self.stopped.notify_one();
            return;
        }
        tracing::error!(?status, "nginx has ended by itself");
        self.start_again().await;
    }

    /// Starts nginx again, after longer and longer pauses. Boxed: who starts it watches it, and who watches it comes
    /// here.
    fn start_again(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut pause = PAUSE.0;
            loop {
                #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
                sleep(pause).await;
                if self.stopping.load(Ordering::Relaxed) || self.once_more().await {
                    return;
                }
                pause = (pause * 2).min(PAUSE.1);
            }
        })
    }

    /// Whether nginx runs again, or somebody else sees to it.
    async fn once_more(self: &Arc<Self>) -> bool {
        let mut state = self.lock().await;
        // One that has never run with anything is started with what is asked for next; that may be by now.
        if state.master.is_some() || !state.has_run() {
            return true;
        }
        let (running, written) = (state.running.clone(), state.written.clone());
        let boot = self.boot(&mut state, &running, &written);
        match self.unless_ended(None, boot).await {
            Ok(()) => {
                tracing::info!("nginx runs again");
                true
            }
            // Who ends it may be about to.
            Err(Failure::Stopping) => false,
            // What ran can be read no more: a file is gone, or a name, or somebody has the port. Who is to blame is
            // found as at a start, and until then nginx waits for it.
            Err(failure @ Failure::Unread { .. }) => {
                tracing::error!(%failure, "nginx does not run any more with what it ran with");
                state.forget_run();
                self.again.send_replace(Some(Instant::now()));
                true
            }
            Err(failure) => {
                tracing::error!(%failure, "nginx cannot be started again");
                // Who watches the new one, if there is one, comes back here once it has ended.
                state.master.inspect(|master| process::end_group(*master)).is_some()
            }
        }
    }
}
