//! What a snippet says in vain.

use model::snippet::Position;
use serde::Serialize;

/// Something that a snippet says without effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Where.
    pub at: Position,
    /// The directive.
    pub directive: String,
    /// Why.
    pub why: &'static str,
    /// Whether nginx does something with it, so that some requests are answered otherwise there.
    pub is_heeded_there: bool,
}

impl Note {
    /// As a sentence; `at` is where its author sees it.
    pub fn said(&self, at: Position) -> String {
        let there = if self.is_heeded_there { " here, and nginx heeds it" } else { "" };
        format!("{at}: {} has no effect{there}: {}", self.directive, self.why)
    }
}
