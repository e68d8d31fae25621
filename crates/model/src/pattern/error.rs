//! What is no pattern.

/// Why a text is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);
