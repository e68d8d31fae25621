//! What the files of this folder declare.

use crate::settings::{AnyKey, Settings};
use model::Global;

/// Keys that belong together, and what they do to the settings of the process.
pub(crate) struct Area {
    /// Its name: that of its file.
    pub(crate) name: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static dyn AnyKey],
    pub(super) apply: fn(&mut Settings<'_>, &mut Global),
}
