//! What a match of a route asks for; its regular expressions match a path or a value as a whole, and share one budget.

use super::rules::path_of;
use crate::pattern_budget::{PatternBudget, Refused};
use model::{Pattern, RuleMatch, Scheme, ValueMatch};
use objects::gateway::{NameMatch, PathMatch, RouteMatch, ValueMatch as Wanted};

/// The regular expressions of a route.
#[derive(Debug)]
pub(super) struct Expressions(PatternBudget);

impl Default for Expressions {
    fn default() -> Self {
        Self(PatternBudget::of_ingress())
    }
}

impl Expressions {
    /// What a match asks for; the scheme is a listener's to say.
    pub(super) fn read(&mut self, found: &RouteMatch) -> Result<RuleMatch, Refused> {
        let (kind, path) = path_of(found);
        let pattern = match &found.path {
            PathMatch::Exact(_) | PathMatch::Prefix(_) => None,
            PathMatch::Expression(source) => Some(self.compile(source)?),
        };
        let mut values = |all: &[NameMatch], lower: bool| {
            let one = |one: &NameMatch| {
                let name = if lower { one.name.to_ascii_lowercase() } else { one.name.clone() };
                let value = match &one.value {
                    Wanted::Exact(text) => ValueMatch::Exact(text.clone().into()),
                    Wanted::Expression(source) => {
                        ValueMatch::Pattern { pattern: self.compile(source)? }
                    }
                };
                Ok((name, value))
            };
            all.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        Ok(RuleMatch {
            scheme: Scheme::Http,
            kind,
            path: path.to_owned(),
            pattern,
            method: found.method.clone(),
            headers: values(&found.headers, true)?,
            query: values(&found.query, false)?,
        })
    }

    fn compile(&mut self, source: &str) -> Result<Pattern, Refused> {
        let invalid =
            |why: &str| Refused::Invalid(format!("{source:?} is no regular expression: {why}"));
        // By itself first: what follows must not end a group that it did not begin.
        Pattern::check(source).map_err(|error| invalid(&error.0))?;
        let pattern = Pattern::new(&format!(r"^(?:{source})\z"), false);
        let pattern = pattern.map_err(|error| invalid(&error.0))?;
        let too_large = |_| {
            let what = "the regular expressions of the route take too much memory";
            Refused::TooLarge(format!(
                "{what}; write simpler ones, or divide them among several routes"
            ))
        };
        self.0.take(&pattern).map_err(too_large)?;
        Ok(pattern)
    }
}
