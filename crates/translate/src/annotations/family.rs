//! What the files of this folder declare.

use crate::settings::{AnyKey, Settings};
use model::policy::Policy;

/// Keys that belong together, and what they do to the policy of a location.
pub(crate) struct Family {
    /// Name of the family: of its file, and of its folder of cases.
    pub(crate) name: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static dyn AnyKey],
    /// Turns the settings into policy.
    pub(super) apply: fn(&mut Settings<'_>, &mut Policy),
}
