//! A host of Gateways, compiled for serving: which rule has a request.

use super::Site;
use crate::exchange::Exchange;
use model::{RouteHost, Rule, RuleMatch, Scheme, Spent, Steps, ValueMatch};
use route::RulePaths;
use std::borrow::Cow;
use std::sync::Arc;

/// A host of Gateways, compiled for serving.
#[derive(Debug)]
pub(crate) struct Routed {
    /// What it was made of.
    pub(crate) host: Arc<RouteHost>,
    /// Its locations, each a share of a rule.
    pub(crate) site: Arc<Site>,
    /// Which rules come into question for a path.
    pub(crate) paths: RulePaths,
}

impl Routed {
    /// The first rule that a request with this path meets.
    pub(crate) fn rule(&self, exchange: &Exchange, path: &[u8]) -> Result<Option<&Rule>, Spent> {
        for index in self.paths.find(path) {
            let rule = &self.host.rules[index];
            if meets(exchange, &rule.matches, path)? {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }
}

/// Whether a request whose path comes into question is what a rule asks for.
fn meets(exchange: &Exchange, rule: &RuleMatch, own_path: &[u8]) -> Result<bool, Spent> {
    let RuleMatch { scheme, kind: _, path: _, pattern, method, headers, query } = rule;
    let over = if exchange.connection.tls.is_some() { Scheme::Https } else { Scheme::Http };
    if *scheme != over
        || method.as_ref().is_some_and(|method| method != exchange.request.method.as_str())
    {
        return Ok(false);
    }
    if let Some(pattern) = pattern
        && !pattern.try_match(own_path, &exchange.steps)?
    {
        return Ok(false);
    }
    for (name, wanted) in headers {
        if !has_header(exchange, name, wanted)? {
            return Ok(false);
        }
    }
    let all = exchange.request.query().unwrap_or_default();
    Ok(query.is_empty() || has_query(all, query, &exchange.steps)?)
}

/// Whether a field has this value, as a whole; several lines of it are one list (RFC 9110 section 5.3).
fn has_header(exchange: &Exchange, name: &str, wanted: &ValueMatch) -> Result<bool, Spent> {
    let steps = &exchange.steps;
    if name == "host" {
        return wanted.is_met(&exchange.request.authority, steps);
    }
    let mut lines = exchange.request.headers.all(name);
    let Some(first) = lines.next() else { return Ok(false) };
    let rest: Vec<&[u8]> = lines.map(AsRef::as_ref).collect();
    if rest.is_empty() {
        return wanted.is_met(first, steps);
    }
    wanted.is_met(&[vec![first.as_ref()], rest].concat().join(&b","[..]), steps)
}

/// Whether a query has all these parameters; of several with a name the first counts.
fn has_query(query: &[u8], wanted: &[(String, ValueMatch)], steps: &Steps) -> Result<bool, Spent> {
    let pairs = || {
        query.split(|byte| *byte == b'&').map(|pair| {
            match pair.iter().position(|byte| *byte == b'=') {
                Some(at) => (decoded(&pair[..at]), decoded(&pair[at + 1..])),
                None => (decoded(pair), Cow::Borrowed(&b""[..])),
            }
        })
    };
    for (name, value) in wanted {
        let found = pairs().find(|(found, _)| **found == *name.as_bytes());
        let Some((_, found)) = found else { return Ok(false) };
        if !value.is_met(&found, steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A part of a query as it is meant: what is no escape stays as it is.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 2;
            }
            (b'+', ..) => out.push(b' '),
            (byte, ..) => out.push(byte),
        }
        at += 1;
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::has_query;
    use model::{Pattern, Steps, ValueMatch};

    /// What stands between slashes is an expression.
    fn value(text: &str) -> ValueMatch {
        match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
            Some(source) => {
                ValueMatch::Pattern { pattern: Pattern::new(source, false).expect("a pattern") }
            }
            None => ValueMatch::Exact(text.to_owned()),
        }
    }

    fn has(query: &str, wanted: &[(&str, &str)]) -> bool {
        let wanted: Vec<_> = wanted.iter().map(|(n, v)| ((*n).to_owned(), value(v))).collect();
        has_query(query.as_bytes(), &wanted, &Steps::default()).expect("few steps")
    }

    #[test]
    fn parameters_are_compared_as_they_are_meant_and_the_first_of_a_name_counts() {
        assert!(has("a=1&b=2", &[("b", "2"), ("a", "1")]));
        assert!(has("x=a%20b&y=%zz+", &[("x", "a b"), ("y", "%zz ")]));
        assert!(has("flag", &[("flag", "")]));
        assert!(!has("a=1&a=2", &[("a", "2")]));
        assert!(has("a=12", &[("a", "/^[0-9]+$/")]) && !has("a=12x", &[("a", "/^[0-9]+$/")]));
        assert!(!has("A=1", &[("a", "1")]) && !has("", &[("a", "")]));
    }
}
