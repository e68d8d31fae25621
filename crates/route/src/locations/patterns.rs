//! Regex hosts: every path is a case-insensitive pattern anchored at the start; the longest text is tried first.

use super::Found;
use crate::path::Canonical;
use model::{Location, PathKind, Pattern, Spent, Steps, fixed_start};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

/// The paths of a regex host in the order in which they are tried.
#[derive(Debug)]
pub(super) struct Patterns {
    rules: Box<[Rule]>,
}

#[derive(Debug)]
struct Rule {
    index: usize,
    /// What every path that matches starts with, in any case; spares most runs of the pattern.
    start: Box<[u8]>,
    /// What decides beyond that; nothing where the path has no special character.
    pattern: Option<Pattern>,
}

impl Patterns {
    pub(super) fn compile(locations: &[Arc<Location>]) -> Self {
        let exact: HashSet<&str> = of_kind(locations, PathKind::Exact).collect();
        let mut order: Vec<usize> = (0..locations.len()).collect();
        // Stable: locations of the same path stay in the order of age. Only the root of a host, which it has whatever
        // its Ingresses say, goes before an Exact `/`, which is the same pattern (createServers,
        // internal/ingress/controller).
        order.sort_by_key(|index| {
            let path = text(&locations[*index]);
            let is_second = path == "/" && locations[*index].kind == PathKind::Exact;
            (Reverse(path.len()), Reverse(path), is_second)
        });
        let rules = order.into_iter().filter_map(|index| {
            let location = &locations[index];
            let path = text(location);
            let splits = location.kind == PathKind::Prefix && !location.whole && path != "/";
            // A Prefix path is split into `/p/` and `/p`, in this order. Since both lead to the same location, `/p`
            // alone says the same, unless an Exact path has taken it.
            if splits && exact.contains(path) && !path.ends_with('/') {
                Rule::compile(index, &format!("{path}/"))
            } else {
                Rule::compile(index, path)
            }
        });
        Self { rules: rules.collect() }
    }

    pub(super) fn find(&self, path: &Canonical<'_>, steps: &Steps) -> Found {
        for rule in &self.rules {
            match rule.matches(&path.path, steps) {
                Ok(false) => {}
                Ok(true) => return Found::Location { index: rule.index },
                // Nobody knows whose path it is: the next location may lack the guards of this one.
                Err(Spent) => return Found::TooHard { index: rule.index },
            }
        }
        Found::None
    }
}

impl Rule {
    /// The rule for a path, if that is a valid pattern.
    fn compile(index: usize, path: &str) -> Option<Self> {
        let start = fixed_start(path);
        let pattern = if start.len() == path.len() {
            None
        } else {
            Some(Pattern::new(&format!("^{path}"), true).ok()?)
        };
        Some(Self { index, start: start.as_bytes().into(), pattern })
    }

    /// Whether a path is one of these.
    fn matches(&self, path: &[u8], steps: &Steps) -> Result<bool, Spent> {
        let start = path.get(..self.start.len());
        match &self.pattern {
            _ if !start.is_some_and(|start| start.eq_ignore_ascii_case(&self.start)) => Ok(false),
            None => Ok(true),
            Some(pattern) => pattern.try_match(path, steps),
        }
    }
}

fn text(location: &Location) -> &str {
    if location.path.is_empty() { "/" } else { &location.path }
}

fn of_kind(locations: &[Arc<Location>], kind: PathKind) -> impl Iterator<Item = &str> {
    locations.iter().filter(move |location| location.kind == kind).map(|location| text(location))
}
