//! What the engine knows of what it was asked for and of what runs.

use crate::blame::{self, LeftOut, Verdicts};
use crate::conf::Written;
use crate::leaving::Leaving;
use crate::plan::Plan;
use model::{Configuration, Problem};
use tokio::time::Instant;

/// What is asked for, and what runs.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The process id of the master, once there is one.
    pub(super) master: Option<i32>,
    /// What was asked for last.
    pub(super) asked: Configuration,
    /// What runs of it, and what was left out.
    pub(super) running: Configuration,
    pub(super) left_out: LeftOut,
    /// Whom there was no room for in what is pushed, and what nginx has not of the rest.
    pub(super) no_room: LeftOut,
    pub(super) lacks: Vec<Problem>,
    /// What need not be tried again.
    pub(super) verdicts: Verdicts,
    pub(super) written: Written,
    /// What workers of earlier reloads still serve.
    pub(super) leaving: Leaving,
    /// When nginx was reloaded last.
    pub(super) reloaded: Option<Instant>,
    /// What has to be done in any case, as an attempt at it failed halfway.
    pub(super) owed: Plan,
}

impl State {
    /// What the owners of what is not served are told.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = blame::problems(&self.left_out);
        problems.extend(blame::problems(&self.no_room));
        problems.extend(self.lacks.iter().cloned());
        problems
    }
}
