//! What was served when: clients ask it which Configurations an answer may come from.

use model::Configuration;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// All Configurations so far, and how far they have got.
#[derive(Debug)]
pub(super) struct Journal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    versions: Vec<Configuration>,
    /// The version that is in force for sure.
    done: usize,
    stopped: bool,
}

impl Journal {
    pub(super) fn new(first: Configuration) -> Self {
        let state = State { versions: vec![first], ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next one is about to be applied.
    pub(super) fn begin(&self, next: Configuration) {
        self.state().versions.push(next);
    }

    /// It is in force.
    pub(super) fn end(&self) {
        self.state().done += 1;
        self.changed.notify_all();
    }

    /// The version that is in force for sure.
    pub(super) fn now(&self) -> usize {
        self.state().done
    }

    /// Every version that has been in force since, or may be by now.
    pub(super) fn since(&self, version: usize) -> Vec<Configuration> {
        self.state().versions[version..].to_vec()
    }

    /// Waits until a version is in force or clients are told to stop, but no longer than `most`.
    pub(super) fn wait(&self, version: usize, most: Duration) {
        let before = |state: &mut State| state.done < version && !state.stopped;
        let waited = self.changed.wait_timeout_while(self.state(), most, before);
        drop(waited.expect("nobody panicked"));
    }

    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panicked")
    }
}
