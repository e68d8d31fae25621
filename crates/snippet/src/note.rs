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
}
