//! Reloads: what was tested takes the place of what runs, or as much of it as nginx runs with.

use super::acceptable::Accepted;
use super::state::State;
use super::{Failure, Inner, PATIENCE};
use crate::conf::Written;
use crate::leaving;
use crate::plan::Plan;
use crate::process::{self, Worker};
use crate::push::{Wish, text_of_http};
use crate::refusals::Refusals;
use model::Configuration;
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::{Instant, timeout_at};

impl Inner {
    /// nginx runs with what it has taken in a test, or with as much of it as it does: some of what is wrong is found by
    /// no test, such as a port that somebody else has.
    pub(super) async fn put_into_force(
        self: &Arc<Self>,
        state: &mut State,
        next: &Configuration,
        accepted: Accepted,
    ) -> Result<Accepted, Failure> {
        let Accepted { configuration, written, .. } = &accepted;
        let read = match state.master {
            Some(master) => self.reload(master, state, configuration, written).await,
            None => self.boot(state, configuration, written).await,
        };
        let Err(Failure::Unread { reason }) = read else { return read.map(|()| accepted) };
        tracing::warn!(
            reason,
            "nginx does not run with what it took in a test: who is to blame is looked for among what is new"
        );
        let found = self.runnable(state, next, accepted.left_out, reason).await;
        // Lua goes by what runs.
        let running = found.as_ref().map_or(&state.running, |found| &found.configuration);
        let told = self.settle(state, running).await;
        let found = found?;
        state.remember_unread(next, &found.left_out);
        state.lacks = told?.problems;
        Ok(found)
    }

    async fn reload(
        &self,
        master: i32,
        state: &mut State,
        accepted: &Configuration,
        written: &Written,
    ) -> Result<(), Failure> {
        self.tell_difference(&state.written, written);
        let swaps = written != &state.written || state.owed == Plan::Reload;
        state.owed = Plan::Reload;
        let workers = process::workers(master);
        state.leaving.forget(&workers);
        if swaps {
            state.leaving.add(&workers, state.running.clone(), &state.written);
        }
        // The new workers find everything there; the old ones keep what they have until they are gone.
        let both = state.leaving.and(accepted);
        let resolved = self.names.resolved(&both);
        let wish = Wish { now: accepted, all: &both, resolved: &resolved };
        if let Err(error) = self.pusher.extend(wish, self.general(accepted)).await {
            if !swaps || text_of_http(accepted) == state.counts_at_socket.as_ref() {
                return Err(error.into());
            }
            // What counts at the socket may be what keeps it from hearing, and is another text from now on: new workers
            // are told what is new as soon as they are there.
            tracing::warn!(%error, "nginx hears nothing and is reloaded, as its http-snippet is another one now");
        }
        if swaps {
            self.wait_for_turn(state.reloaded).await?;
            let swapped = self.swap(master, written).await;
            if let Err(Failure::Directory(_)) = &swapped {
                // nginx has not read it, so Lua goes back to what runs.
                drop(self.settle(state, &state.running).await);
            }
            self.note_swap(state, &workers, accepted, &swapped);
            swapped?;
        }
        state.lacks = self.settle(state, accepted).await?.problems;
        Ok(())
    }

    /// What is known after a swap: if nginx has not taken it, its workers stay, and so does what they run with.
    fn note_swap(
        &self,
        state: &mut State,
        workers: &[Worker],
        configuration: &Configuration,
        swapped: &Result<(), Failure>,
    ) {
        match swapped {
            Ok(()) => {
                state.reloaded = Some(Instant::now());
                state.counts_at_socket = text_of_http(configuration).cloned();
            }
            Err(Failure::Unread { .. }) => {
                state.leaving.stay(&leaving::staying(workers));
                let has_run = state.has_run();
                if let Some(Err(error)) = has_run.then(|| self.directory.install(&state.written)) {
                    tracing::warn!(%error, "nginx.conf is not the one that runs");
                }
            }
            Err(_) => {}
        }
    }

    /// Runs with a configuration that was tested in place of another one, and remembers it if that is what comes of it.
    pub(super) async fn try_out(
        &self,
        state: &mut State,
        configuration: &Configuration,
        written: &Written,
    ) -> Result<(), Failure> {
        let master = state.master.ok_or(Failure::Ended)?;
        let workers = process::workers(master);
        state.leaving.forget(&workers);
        state.leaving.add(&workers, state.running.clone(), &state.written);
        self.wait_for_turn(state.reloaded).await?;
        let swapped = self.swap(master, written).await;
        self.note_swap(state, &workers, configuration, &swapped);
        swapped?;
        (state.running, state.written) = (configuration.clone(), written.clone());
        Ok(())
    }

    /// Waits until it is time for another reload.
    async fn wait_for_turn(&self, before: Option<Instant>) -> Result<(), Failure> {
        if let Some(before) = before {
            let _ = timeout_at(before + self.pace, self.ending.notified()).await;
        }
        self.unless_stopping()
    }

    /// Installs a configuration that was tested, and waits until new workers have taken over.
    pub(super) async fn swap(&self, master: i32, written: &Written) -> Result<(), Failure> {
        let before = process::workers(master);
        self.directory.install(written)?;
        let mut refusals = Refusals::from_now(self.environment.refusals(), master);
        process::signal(master, Signal::HUP).map_err(|_| Failure::Ended)?;
        self.reloads.fetch_add(1, Ordering::Relaxed);
        let fails = || match refusals.reason() {
            Some(reason) => Some(Failure::Unread { reason }),
            None if process::has_ended(master) => Some(Failure::Ended),
            None => self.unless_stopping().err(),
        };
        if process::taken_over(master, &before, PATIENCE, fails).await? {
            self.pulse.serves(true);
            Ok(())
        } else {
            Err(Failure::NoWorkers)
        }
    }

    fn tell_difference(&self, before: &Written, after: &Written) {
        if tracing::enabled!(target: "diff", tracing::Level::DEBUG) && before.text != after.text {
            let diff = similar::TextDiff::from_lines(&before.text.text, &after.text.text);
            let diff = diff.unified_diff().header("running", "next").to_string();
            tracing::debug!(target: "diff", "nginx.conf changes:\n{diff}");
        }
    }
}
