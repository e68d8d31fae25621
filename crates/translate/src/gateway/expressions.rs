//! What a match of a route asks for; its regular expressions match a path or a value as a whole, and share one budget.

use super::paths::{ANY, path_of};
use crate::pattern_budget::{PatternBudget, Refused};
use crate::settings::quote;
use model::{GrpcMatch, Pattern, PatternError, RuleMatch, Scheme, ValueMatch, fixed_start};
use objects::gateway::{MethodMatch, NameMatch, PathMatch, RouteMatch, ValueMatch as Wanted};

/// Bytes that stand for what an expression begins with: one that is too long has more.
const BEGINNING: usize = 1000;

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
            PathMatch::Method(called) => self.called(called)?,
        };
        let grpc = match &found.path {
            PathMatch::Method(called) => Some(GrpcMatch {
                // With a service it is a part of the path.
                method: called
                    .method
                    .clone()
                    .filter(|_| called.service.is_none() && !called.is_expression),
            }),
            _ => None,
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
            path: path.into_owned(),
            pattern,
            grpc,
            method: found.method.clone(),
            headers: values(&found.headers, true)?,
            query: values(&found.query, false)?,
        })
    }

    /// What a match may ask for that has expressions which Fairway does not know: every path that begins as one does,
    /// `/` if that is all, and any value. It is asked as early as the match would be.
    pub(super) fn at_least(&mut self, found: &RouteMatch) -> Result<RuleMatch, Refused> {
        let mut more = found.clone();
        if let PathMatch::Expression(source) = &found.path
            && self.is_unknown(source)
        {
            let start = fixed_start(source);
            let start = &start[..start.floor_char_boundary(BEGINNING)];
            more.path = match start.len() {
                0 | 1 => PathMatch::Prefix("/".to_owned()),
                _ => PathMatch::Expression(format!("{start}.*")),
            };
        }
        for one in more.headers.iter_mut().chain(&mut more.query) {
            if let Wanted::Expression(source) = &mut one.value
                && self.is_unknown(source)
            {
                ".*".clone_into(source);
            }
        }
        let mut read = self.read(&more)?;
        if read.pattern.is_some() {
            read.path = path_of(found).1.into_owned();
        }
        Ok(read)
    }

    /// Whether an expression may be one, though not here.
    fn is_unknown(&mut self, source: &str) -> bool {
        matches!(self.compile(source), Err(Refused::Invalid(error)) if error.of_ours)
    }

    /// The expression for the path of a method of gRPC, if it has one.
    fn called(&mut self, called: &MethodMatch) -> Result<Option<Pattern>, Refused> {
        let MethodMatch { service, method, is_expression } = called;
        if !is_expression || (service.is_none() && method.is_none()) {
            return Ok(None);
        }
        let parts = [service, method].map(|part| part.as_deref().unwrap_or(ANY));
        parts.iter().try_for_each(|part| check(part))?;
        self.compile(&format!("/(?:{})/(?:{})", parts[0], parts[1])).map(Some)
    }

    fn compile(&mut self, source: &str) -> Result<Pattern, Refused> {
        check(source)?;
        // What is matched as a whole may have a newline in it, which a dot has to match then: with `%0A` behind its
        // path a request would come past a rule that has everything below it, and past its guard.
        let pattern = Pattern::new(&format!(r"^(?s:{source})\z"), false);
        let pattern = pattern.map_err(|error| invalid(source, error))?;
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

/// Whether it is an expression by itself: what follows must not end a group that it did not begin.
fn check(source: &str) -> Result<(), Refused> {
    Pattern::check(source).map_err(|error| invalid(source, error))
}

fn invalid(source: &str, error: PatternError) -> Refused {
    let is = if error.of_ours {
        "a regular expression that Fairway does not know"
    } else {
        "no regular expression"
    };
    let reason = format!("{} is {is}: {error}", quote(source));
    Refused::Invalid(PatternError { reason, ..error })
}

#[cfg(test)]
mod tests {
    use super::Expressions;
    use model::Steps;

    #[test]
    fn a_dot_of_a_route_matches_every_byte_and_what_is_written_elsewhere_stays_so() {
        let mut all = Expressions::default();
        for (source, text, matches) in [
            ("/admin(/.*)?", &b"/admin/x\n"[..], true),
            ("/.*", b"/x\ny", true),
            (".+", b"1\n2", true),
            ("a|b", b"b", true),
            ("/admin$", b"/admin\n", false),
            ("(?-s:/.*)", b"/x\ny", false),
        ] {
            let pattern = all.compile(source).expect("an expression");
            assert_eq!(pattern.try_match(text, &Steps::default()), Ok(matches), "{source}");
        }
    }
}
