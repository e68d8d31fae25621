//! What is no pattern.

use std::fmt;

/// Why a text is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The reason, without a final dot.
    pub reason: String,
    /// Whether PCRE takes it all the same: it is too much, or not supported.
    pub of_ours: bool,
}

impl PatternError {
    /// What is wrong to everybody.
    pub(super) fn wrong(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), of_ours: false }
    }

    /// What PCRE takes.
    pub(super) fn of_ours(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), of_ours: true }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
