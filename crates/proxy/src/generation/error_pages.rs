//! Who answers in place of errors, and of nobody, found once for a generation.

use model::policy::{Balance, Errors};
use std::sync::Arc;
use upstream::{Group, Rule};

/// Who answers in place of errors.
#[derive(Debug)]
pub struct ErrorPages {
    /// Which answers are replaced.
    pub errors: Errors,
    /// Who is asked: the first of them who has endpoints.
    pub groups: Vec<Arc<Group>>,
}

/// Who stands in for the upstream of a location while that has no endpoints.
#[derive(Debug)]
pub struct StandIn {
    /// Its endpoints.
    pub group: Arc<Group>,
    /// Which of them is next, as the location says for its upstream; none: they take turns.
    pub rule: Option<Box<Rule>>,
}

impl StandIn {
    /// Who stands in, for a location that balances like this.
    pub(crate) fn new(balance: &Balance, group: Arc<Group>) -> Box<Self> {
        Box::new(Self { rule: Rule::compile(balance, &group), group })
    }
}
