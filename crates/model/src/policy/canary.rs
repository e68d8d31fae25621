//! Another upstream for a part of a location's requests (compat/behaviour.md section 10).

use super::Balance;
use crate::{Origin, Pattern, Secret, UpstreamId};
use serde::Serialize;
use std::sync::Arc;

/// The other upstream of a location, and who goes there. Everything else is as the location says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Canary {
    /// Where they go.
    pub upstream: UpstreamId,
    /// The canary Ingress.
    pub origin: Origin,
    /// Who goes there; shared by all paths of its Ingress.
    pub rules: Arc<CanaryRules>,
    /// Which of its endpoints is next; sessions are those of the location, or none (`affinity-canary-behavior`).
    pub balance: Balance,
}

/// Who goes to the canary: the header decides before the cookie, and that before the weight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CanaryRules {
    /// `canary-by-header*`.
    pub header: Option<CanaryHeader>,
    /// `canary-by-cookie`: `always` and `never` decide.
    pub cookie: Option<String>,
    /// `canary-weight`: so many of [`Self::total`] requests that nothing else decided on.
    pub weight: u32,
    /// `canary-weight-total`, at least 100 ([`CanaryRules::total`]).
    pub weight_total: u32,
}

impl CanaryRules {
    /// What the weight is a part of: `canary-weight-total` counts only above 100 (compat/decisions.md row 5b).
    pub fn total(&self) -> u32 {
        self.weight_total.max(100)
    }
}

/// A header that decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CanaryHeader {
    /// Its name as nginx's variables have it: lower case, `_` for `-`.
    pub name: String,
    /// What its value has to be.
    pub test: CanaryTest,
}

/// What the value of a header has to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum CanaryTest {
    /// `always` for the canary, `never` for the main side.
    Word,
    /// `canary-by-header-value`: exactly this.
    Value(Secret<String>),
    /// `canary-by-header-pattern`: matched by this.
    Pattern(Pattern),
    /// A pattern that is none: whoever sends the header stays on the main side.
    Never,
}
