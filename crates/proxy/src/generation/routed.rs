//! A host of Gateways, compiled for serving: which rule has a request.

use super::Site;
use crate::exchange::Exchange;
use model::{RouteHost, Rule, RuleMatch, Scheme};
use route::RulePaths;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
    pub(crate) fn rule(&self, asked: &Asked<'_>, path: &[u8]) -> Option<&Rule> {
        let rules = self.paths.find(path).map(|index| &self.host.rules[index]);
        rules.into_iter().find(|rule| asked.meets(&rule.matches))
    }
}

/// What rules may ask of a request. However many of them do, its fields and its query are gone over once.
pub(crate) struct Asked<'a> {
    exchange: &'a Exchange,
    headers: OnceCell<HashMap<String, Cow<'a, [u8]>>>,
    query: OnceCell<Query<'a>>,
}

/// The parameters of a query; of several with a name the first counts.
type Query<'a> = HashMap<Cow<'a, [u8]>, Cow<'a, [u8]>>;

impl<'a> Asked<'a> {
    /// What is asked of this request.
    pub(crate) fn of(exchange: &'a Exchange) -> Self {
        Self { exchange, headers: OnceCell::new(), query: OnceCell::new() }
    }

    /// Whether the request is what a rule asks for, its path aside.
    fn meets(&self, rule: &RuleMatch) -> bool {
        let RuleMatch { scheme, kind: _, path: _, method, headers, query } = rule;
        let exchange = self.exchange;
        let over = if exchange.connection.tls.is_some() { Scheme::Https } else { Scheme::Http };
        *scheme == over
            && method.as_ref().is_none_or(|method| method == exchange.request.method.as_str())
            && headers.iter().all(|(name, value)| self.has_header(name, value.as_bytes()))
            && query.iter().all(|(name, value)| self.has_parameter(name, value.as_bytes()))
    }

    fn has_header(&self, name: &str, wanted: &[u8]) -> bool {
        let request = &self.exchange.request;
        if name == "host" {
            return *request.authority == *wanted;
        }
        let known = self.headers.get_or_init(|| {
            lists(request.headers.iter().map(|field| (&field.name[..], &field.value[..])))
        });
        known.get(name).is_some_and(|found| **found == *wanted)
    }

    fn has_parameter(&self, name: &str, wanted: &[u8]) -> bool {
        let query = || parameters(self.exchange.request.query().unwrap_or_default());
        let found = self.query.get_or_init(query).get(name.as_bytes());
        found.is_some_and(|found| **found == *wanted)
    }
}

/// Fields by their names in lower case; several lines of one are one list (RFC 9110 section 5.3).
fn lists<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> HashMap<String, Cow<'a, [u8]>> {
    let mut known: HashMap<String, Cow<'_, [u8]>> = HashMap::new();
    for (name, value) in fields {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        match known.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(Cow::Borrowed(value))),
            Entry::Occupied(mut entry) => {
                let list = entry.get_mut().to_mut();
                list.push(b',');
                list.extend_from_slice(value);
            }
        }
    }
    known
}

fn parameters(query: &[u8]) -> Query<'_> {
    let mut known = HashMap::new();
    for pair in query.split(|byte| *byte == b'&') {
        let (name, value) = match pair.iter().position(|byte| *byte == b'=') {
            Some(at) => (decoded(&pair[..at]), decoded(&pair[at + 1..])),
            None => (decoded(pair), Cow::Borrowed(&b""[..])),
        };
        known.entry(name).or_insert(value);
    }
    known
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
    use super::{lists, parameters};

    fn has(query: &str, wanted: &[(&str, &str)]) -> bool {
        let known = parameters(query.as_bytes());
        wanted.iter().all(|(name, value)| {
            known.get(name.as_bytes()).is_some_and(|found| **found == *value.as_bytes())
        })
    }

    #[test]
    fn lines_of_a_field_are_one_list() {
        let known = lists([(&b"A"[..], &b"1"[..]), (b"b", b"2"), (b"a", b"3")].into_iter());
        assert_eq!((&*known["a"], &*known["b"]), (&b"1,3"[..], &b"2"[..]));
    }

    #[test]
    fn parameters_are_compared_as_they_are_meant_and_the_first_of_a_name_counts() {
        assert!(has("a=1&b=2", &[("b", "2"), ("a", "1")]));
        assert!(has("x=a%20b&y=%zz+", &[("x", "a b"), ("y", "%zz ")]));
        assert!(has("flag", &[("flag", "")]));
        assert!(!has("a=1&a=2", &[("a", "2")]));
        assert!(!has("A=1", &[("a", "1")]) && !has("", &[("a", "")]));
    }
}
