//! Tells about problems when they appear and when they are gone, each once.

use model::{Problem, Severity};
use std::collections::BTreeSet;

/// The problems that were told.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    known: BTreeSet<Problem>,
}

impl Reporter {
    /// Logs what is new and what is gone.
    pub(crate) fn report<'a>(&mut self, problems: impl IntoIterator<Item = &'a Problem>) {
        let now: BTreeSet<Problem> = problems.into_iter().cloned().collect();
        for problem in now.difference(&self.known) {
            match problem.severity {
                Severity::Error => tracing::error!("{problem}"),
                Severity::Warning => tracing::warn!("{problem}"),
                Severity::Notice => tracing::info!("{problem}"),
            }
        }
        for problem in self.known.difference(&now) {
            tracing::info!("solved: {problem}");
        }
        self.known = now;
    }
}
