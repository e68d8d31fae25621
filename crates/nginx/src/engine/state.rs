//! What the engine knows of what it was asked for and of what runs.

use crate::blame::{self, LeftOut, Verdicts};
use crate::conf::{Owner, Written};
use crate::leaving::Leaving;
use crate::plan::Plan;
use model::{Configuration, Global, Problem, Secret};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What is asked for, and what runs.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The process id of the master, if there was one when somebody began to look ([`super::Inner::lock`]).
    pub(super) master: Option<i32>,
    /// What was asked for last.
    pub(super) asked: Configuration,
    /// What runs of it, and what was left out.
    pub(super) running: Configuration,
    pub(super) left_out: LeftOut,
    /// Whether it is known which texts of the ConfigMap there were before: not at a start, nor as long as one that may
    /// guard something has been missing since.
    pub(super) knows: bool,
    /// Whom there was no room for in what is pushed, and what nginx has not of the rest.
    pub(super) no_room: LeftOut,
    pub(super) lacks: Vec<Problem>,
    /// What need not be tried again, and which texts of a ConfigMap it did not run with.
    pub(super) verdicts: Verdicts,
    pub(super) unread: Option<(Arc<Global>, LeftOut)>,
    pub(super) written: Written,
    /// What workers of earlier reloads still serve.
    pub(super) leaving: Leaving,
    /// The ConfigMap's `http-snippet` that its workers have read: it counts at the socket by which they are told.
    pub(super) counts_at_socket: Option<Secret<String>>,
    /// When nginx was reloaded last.
    pub(super) reloaded: Option<Instant>,
    /// What has to be done in any case, as an attempt at it failed halfway.
    pub(super) owed: Plan,
    /// The pause before those are tried again for whom there was no time, if there were any last time.
    pub(super) pause: Option<Duration>,
}

impl State {
    /// Whether nginx has run with something that was asked for: before that it only waits for it.
    pub(super) fn has_run(&self) -> bool {
        !self.written.text.text.is_empty()
    }

    /// What ran is no more what there is to start nginx with: it begins as at a start, but for what is known.
    pub(super) fn forget_run(&mut self) {
        (self.written, self.owed) = (Written::default(), Plan::Reload);
    }

    /// What is known to be wrong with a Configuration.
    pub(super) fn about(&self, next: &Configuration) -> LeftOut {
        let mut known = self.verdicts.about(next);
        if let Some((global, texts)) = &self.unread
            && *global == next.global
        {
            known.extend(texts.clone());
        }
        known
    }

    /// Remembers the texts of a ConfigMap that nginx did not run with: to find that out takes a while.
    pub(super) fn remember_unread(&mut self, next: &Configuration, left_out: &LeftOut) {
        let is_text = |owner: &Owner| owner.key.is_some() && owner.host.is_none();
        let texts = left_out.iter().filter(|(owner, fault)| is_text(owner) && fault.decided);
        let texts = texts.map(|(owner, fault)| (owner.clone(), fault.clone())).collect();
        self.unread = Some((Arc::clone(&next.global), texts));
    }

    /// What the owners of what is not served are told.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = blame::problems(&self.left_out);
        problems.extend(blame::problems(&self.no_room));
        problems.extend(blame::had_by_texts(&self.running));
        problems.extend(self.lacks.iter().cloned());
        problems
    }
}
