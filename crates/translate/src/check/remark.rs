//! A remark about an object.

use serde::Serialize;

/// Something to know about an Ingress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Remark {
    /// The annotation or field, where there is one.
    pub key: Option<String>,
    /// What is to be known, and the remedy where there is one.
    pub message: String,
}

impl Remark {
    /// By key, and by line of a snippet: 9 before 10.
    pub(super) fn order(&self) -> (&Option<String>, Vec<u32>, &str) {
        let numbers = self.message.strip_prefix("line ").map(|at| {
            at.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).take(2)
        });
        (&self.key, numbers.into_iter().flatten().collect(), &self.message)
    }
}
