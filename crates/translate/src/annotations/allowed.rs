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
