//! Who answers in place of errors, found once for a generation.

use model::policy::Errors;
use std::sync::Arc;
use upstream::Group;

/// Who answers in place of errors.
#[derive(Debug)]
pub struct ErrorPages {
    /// Which answers are replaced.
    pub errors: Errors,
    /// Who is asked: the first of them who has endpoints.
    pub groups: Vec<Arc<Group>>,
}
