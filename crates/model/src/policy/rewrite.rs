//! `rewrite-target`: another path towards the upstream.

use crate::{Pattern, Template};
use serde::Serialize;

/// Where the pattern matches the path, the whole path becomes the target (ngx_http_rewrite_module, `rewrite … break`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rewrite {
    /// The location's path as an unanchored, case-insensitive regular expression.
    pub pattern: Pattern,
    /// The new path; `$1` … `$9` are the pattern's groups. Arguments follow, unless it ends in `?`.
    pub target: Template,
    /// `X-Forwarded-Prefix` towards the upstream (`x-forwarded-prefix`); `$1` … `$9` are groups here, too.
    pub prefix: Option<Template>,
}
