//! What is found out about one Ingress.

use super::refusals::RefusedBy;
use super::remark::Remark;
use serde::Serialize;

/// What becomes of an Ingress, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its requests are answered as ingress-nginx answered them.
    Identical,
    /// Some are answered otherwise, on purpose.
    Differs,
    /// It asks for what only nginx has.
    NeedsNginx,
    /// It is not served, or parts of it answer 503.
    Refused,
}

/// One Ingress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `namespace/name`.
    pub ingress: String,
    /// What becomes of it.
    pub standing: Standing,
    /// Who refuses it, if it is refused: whether moving loses anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_by: Option<RefusedBy>,
    /// Why it is not identical.
    pub reasons: Vec<Remark>,
    /// What changes nothing and should be known: misspelt names, hosts that depend on a surprise of ingress-nginx.
    pub notes: Vec<Remark>,
}

impl Finding {
    /// Says everything once, in an order for reading.
    pub(super) fn in_order(mut self) -> Self {
        for remarks in [&mut self.reasons, &mut self.notes] {
            remarks.sort_by(|one, other| one.order().cmp(&other.order()));
            remarks.dedup();
        }
        self
    }
}
