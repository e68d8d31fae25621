//! What annotations may be.

use crate::settings::Risk;

/// What the ConfigMap allows annotations to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// `annotations-risk-level`.
    pub(crate) risk: Risk,
    /// `allow-snippet-annotations`.
    pub(crate) snippets: bool,
    /// `annotation-value-word-blocklist`.
    pub(crate) blocked_words: Vec<String>,
}

impl Limits {
    /// Whether snippets of Ingresses count at all.
    pub(crate) fn allow_snippets(&self) -> bool {
        self.snippets && self.risk >= Risk::Critical
    }
}
