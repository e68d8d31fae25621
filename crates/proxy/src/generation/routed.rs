//! A host of Gateways, compiled for serving: which rule has a request.

use super::Site;
use crate::exchange::Exchange;
use model::{Others, RouteHost, Rule, RuleMatch, Scheme, Spent, Steps, ValueMatch};
use route::{CallPaths, RulePaths};
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
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
    /// Which rules come into question for a path, by tiers, each with the number of its first rule.
    pub(crate) paths: Vec<(usize, RulePaths)>,
    /// The same for calls of gRPC; without the tiers that have no rule for them.
    pub(crate) calls: Vec<(usize, CallPaths)>,
}

/// What rules of a host ask for, tier by tier, each with the number of its first rule.
fn tiers(
    host: &RouteHost,
) -> impl Iterator<Item = (usize, impl Iterator<Item = &RuleMatch> + Clone)> {
    let starts = [0].into_iter().chain(host.tiers.iter().copied());
    let ends = host.tiers.iter().copied().chain([host.rules.len()]);
    starts.zip(ends).map(|(start, end)| {
        let rules = host.rules.get(start..end).unwrap_or_default();
        (start, rules.iter().map(|rule| &*rule.matches))
    })
}

/// The rules of a host by their paths, tier by tier.
pub(crate) fn paths(host: &RouteHost) -> Vec<(usize, RulePaths)> {
    tiers(host).map(|(start, rules)| (start, RulePaths::compile(rules))).collect()
}

/// Those for calls of gRPC.
pub(crate) fn calls(host: &RouteHost) -> Vec<(usize, CallPaths)> {
    tiers(host).filter_map(|(start, rules)| Some((start, CallPaths::compile(rules)?))).collect()
}

impl Routed {
    /// The first rule that a request with this path meets, of those that may have it. A call of gRPC is asked after
    /// among the rules for such calls first; nothing else is.
    pub(crate) fn rule(
        &self,
        asked: &Asked<'_>,
        path: &[u8],
        mut may_have: impl FnMut(&Rule) -> bool,
    ) -> Result<Option<&Rule>, Spent> {
        if !self.calls.is_empty() && asked.exchange.request.is_grpc() {
            let tiers = self.calls.iter();
            let calls = tiers.flat_map(|(start, calls)| calls.find(path).map(move |at| start + at));
            let found = self.first(asked, path, calls, &mut may_have)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let tiers = self.paths.iter();
        let paths = tiers.flat_map(|(start, paths)| paths.find(path).map(move |at| start + at));
        self.first(asked, path, paths, may_have)
    }

    /// The first of these rules that a request with this path meets.
    fn first(
        &self,
        asked: &Asked<'_>,
        path: &[u8],
        rules: impl Iterator<Item = usize>,
        mut may_have: impl FnMut(&Rule) -> bool,
    ) -> Result<Option<&Rule>, Spent> {
        for index in rules {
            let rule = &self.host.rules[index];
            if !asked.is_anothers(rule) && may_have(rule) && asked.meets(&rule.matches, path)? {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }
}

/// What rules may ask of a request. However many of them do, its fields and its query are gone over once.
pub(crate) struct Asked<'a> {
    exchange: &'a Exchange,
    headers: OnceCell<HashMap<String, Cow<'a, [u8]>>>,
    query: OnceCell<Query<'a>>,
    /// The hosts of others that were looked through last, and whether this one is among them: rules share them.
    others: Cell<Option<(*const Others, bool)>>,
}

/// The parameters of a query; of several with a name the first counts.
type Query<'a> = HashMap<Cow<'a, [u8]>, Cow<'a, [u8]>>;

impl<'a> Asked<'a> {
    /// What is asked of this request.
    pub(crate) fn of(exchange: &'a Exchange) -> Self {
        let (headers, query) = (OnceCell::new(), OnceCell::new());
        Self { exchange, headers, query, others: Cell::new(None) }
    }

    /// Whether the host is that of a more special listener than the rule's, which somebody else wrote.
    pub(crate) fn is_anothers(&self, rule: &Rule) -> bool {
        let Some(others) = &rule.others else { return false };
        let place = Arc::as_ptr(others);
        if let Some((_, has)) = self.others.get().filter(|(last, _)| *last == place) {
            return has;
        }
        let has = others.have(&self.exchange.host);
        self.others.set(Some((place, has)));
        has
    }

    /// Whether a request whose path comes into question is what a rule asks for.
    pub(crate) fn meets(&self, rule: &RuleMatch, own_path: &[u8]) -> Result<bool, Spent> {
        let RuleMatch { scheme, kind: _, path: _, pattern, grpc, method, headers, query } = rule;
        let exchange = self.exchange;
        let over = if exchange.connection.tls.is_some() { Scheme::Https } else { Scheme::Http };
        if *scheme != over
            || method.as_ref().is_some_and(|method| method != exchange.request.method.as_str())
        {
            return Ok(false);
        }
        let called = own_path.rsplit(|byte| *byte == b'/').next();
        let wanted = grpc.as_ref().and_then(|grpc| grpc.method.as_ref());
        if wanted.is_some_and(|wanted| called != Some(wanted.as_bytes())) {
            return Ok(false);
        }
        if let Some(pattern) = pattern
            && !pattern.try_match(own_path, &exchange.steps)?
        {
            return Ok(false);
        }
        let headers = headers.iter().map(|(name, wanted)| (self.header(name), wanted));
        let query = query.iter().map(|(name, wanted)| (self.parameter(name), wanted));
        for (found, wanted) in headers.chain(query) {
            let Some(found) = found else { return Ok(false) };
            if !wanted.is_met(found, &exchange.steps)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a rule asks for besides its path that the request is not, in words; none where it is met. Values may be
    /// passwords, and are not told.
    pub(crate) fn lacks(&self, rule: &RuleMatch, own_path: &[u8], steps: &Steps) -> Vec<String> {
        let RuleMatch { scheme, kind: _, path: _, pattern: _, grpc, method, headers, query } = rule;
        let request = &self.exchange.request;
        let mut lacks = Vec::new();
        match (scheme, self.exchange.connection.tls.is_some()) {
            (Scheme::Https, false) => {
                lacks.push("HTTPS, and the request came over HTTP".to_owned())
            }
            (Scheme::Http, true) => lacks.push("HTTP, and the request came over HTTPS".to_owned()),
            (Scheme::Http, false) | (Scheme::Https, true) => {}
        }
        if grpc.is_some() && !request.is_grpc() {
            lacks.push("a call of gRPC, and the request is none".to_owned());
        }
        let called = own_path.rsplit(|byte| *byte == b'/').next();
        let wanted = grpc.as_ref().and_then(|grpc| grpc.method.as_ref());
        if let Some(wanted) = wanted.filter(|wanted| called != Some(wanted.as_bytes())) {
            lacks.push(format!("method {wanted} of gRPC, and the request calls another one"));
        }
        if let Some(method) = method.as_ref().filter(|method| *method != request.method.as_str()) {
            lacks.push(format!("method {method}, and the request has {}", request.method));
        }
        let value = |what: &str, name: &str, found: Option<&[u8]>, wanted: &ValueMatch| {
            let why = match found.map(|found| wanted.is_met(found, steps)) {
                Some(Ok(true)) => return None,
                None => "which the request has not",
                Some(Ok(false)) => "which the request has with another value",
                Some(Err(_)) => "whose expression takes too many steps",
            };
            Some(format!("{what} {name}, {why}"))
        };
        let fields = headers
            .iter()
            .filter_map(|(name, wanted)| value("header", name, self.header(name), wanted));
        lacks.extend(fields);
        let parameters = query.iter().filter_map(|(name, wanted)| {
            value("query parameter", name, self.parameter(name), wanted)
        });
        lacks.extend(parameters);
        lacks
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let request = &self.exchange.request;
        if name == "host" {
            return Some(&request.authority);
        }
        let known = self
            .headers
            .get_or_init(|| lists(request.headers.iter().map(|field| (field.name, field.value))));
        known.get(name).map(|found| &**found)
    }

    fn parameter(&self, name: &str) -> Option<&[u8]> {
        let query = || parameters(self.exchange.request.query().unwrap_or_default());
        self.query.get_or_init(query).get(name.as_bytes()).map(|found| &**found)
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
    use model::{Pattern, Steps, ValueMatch};

    /// What stands between slashes is an expression.
    fn value(text: &str) -> ValueMatch {
        match text.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
            Some(source) => {
                ValueMatch::Pattern { pattern: Pattern::new(source, false).expect("a pattern") }
            }
            None => ValueMatch::Exact(text.to_owned().into()),
        }
    }

    fn has(query: &str, wanted: &[(&str, &str)]) -> bool {
        let known = parameters(query.as_bytes());
        wanted.iter().all(|(name, wanted)| {
            let found = known.get(name.as_bytes());
            found.is_some_and(|found| {
                value(wanted).is_met(found, &Steps::default()).expect("few steps")
            })
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
        assert!(has("a=12", &[("a", "/^[0-9]+$/")]) && !has("a=12x", &[("a", "/^[0-9]+$/")]));
        assert!(!has("A=1", &[("a", "1")]) && !has("", &[("a", "")]));
    }
}
