//! `rewrite-target`: another path towards the upstream.

use crate::{Part, Pattern, Template, Variable};
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

impl Rewrite {
    /// Whether the target is an address: then it is where the client is redirected to.
    pub fn is_redirect(&self) -> bool {
        match self.target.parts().first() {
            Some(Part::Text(text)) => text.starts_with("http://") || text.starts_with("https://"),
            Some(Part::Variable(variable)) => *variable == Variable::Scheme,
            Some(Part::Capture(_)) | None => false,
        }
    }
}
