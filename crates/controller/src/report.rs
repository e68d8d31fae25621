//! Tells about problems when they appear and when they are gone, each once.

use imbl::ordmap::DiffItem;
use model::{Problem, Severity};
use translate::Problems;

/// The problems that were told.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    known: Problems,
}

impl Reporter {
    /// Logs what is new and what is gone; costs time by what differs.
    pub(crate) fn report(&mut self, problems: &Problems) {
        for item in self.known.by_origin().diff(problems.by_origin()) {
            let (before, now): (&[Problem], &[Problem]) = match &item {
                DiffItem::Add(_, now) => (&[], now),
                DiffItem::Remove(_, before) => (before, &[]),
                DiffItem::Update { old: (_, before), new: (_, now) } => (before, now),
            };
            now.iter().filter(|problem| !before.contains(problem)).for_each(appeared);
            before
                .iter()
                .filter(|problem| !now.contains(problem))
                .for_each(|gone| tracing::info!("solved: {gone}"));
        }
        self.known = problems.clone();
    }
}

fn appeared(problem: &Problem) {
    match problem.severity {
        Severity::Error => tracing::error!("{problem}"),
        Severity::Warning => tracing::warn!("{problem}"),
        Severity::Notice => tracing::info!("{problem}"),
    }
}
