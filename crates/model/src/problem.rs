//! A user's mistake as a value: the same list feeds Events, admission, logs, metrics and `fairway check`.

use crate::Origin;
use serde::Serialize;
use std::fmt;

/// How much a problem takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Severity {
    /// Accepted, but without the effect that the user may expect.
    Notice,
    /// A value was replaced by its default, or a part was left out.
    Warning,
    /// Something asked for is not served (or is denied).
    Error,
}

/// A mistake in one object: which one, which key, what is wrong and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Problem {
    /// The object that has to change.
    pub origin: Origin,
    /// The annotation, ConfigMap key or field, where there is one.
    pub key: Option<String>,
    /// How much it takes away.
    pub severity: Severity,
    /// What is wrong and the remedy, in one sentence without a final dot.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}: {key}: {}", self.origin, self.message),
            None => write!(f, "{}: {}", self.origin, self.message),
        }
    }
}
