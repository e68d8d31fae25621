//! Regex hosts: every path is a case-insensitive pattern anchored at the start; the longest text is tried first.

use super::Found;
use crate::path::Canonical;
use model::{Location, PathKind, Pattern};
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
        // Stable: locations of the same path stay in the order of age.
        order.sort_by_key(|index| {
            let path = text(&locations[*index]);
            (Reverse(path.len()), Reverse(path))
        });
        let rules = order.into_iter().filter_map(|index| {
            let location = &locations[index];
            let path = text(location);
            let splits = location.kind == PathKind::Prefix && !location.whole && path != "/";
            // A Prefix path is split into `/p/` and `/p`, in this order. Since both lead to the same location, `/p`
            // alone says the same, unless an Exact path has taken it.
            match splits && exact.contains(path) && !path.ends_with('/') {
                true => Rule::compile(index, &format!("{path}/")),
                false => Rule::compile(index, path),
            }
        });
        Self { rules: rules.collect() }
    }

    pub(super) fn find(&self, path: &Canonical<'_>) -> Found {
        let text = path.text();
        for rule in &self.rules {
            match rule.matches(&path.path, &text) {
                Some(false) => {}
                Some(true) => return Found::Location { index: rule.index },
                // Nobody knows whose path it is: the next location may lack the guards of this one.
                None => return Found::None,
            }
        }
        Found::None
    }
}

impl Rule {
    /// The rule for a path, if that is a valid pattern.
    fn compile(index: usize, path: &str) -> Option<Self> {
        let start = fixed_start(path);
        let pattern = match start.len() == path.len() {
            true => None,
            false => Some(Pattern::new(&format!("^{path}"), true).ok()?),
        };
        Some(Self { index, start: start.as_bytes().into(), pattern })
    }

    /// Whether a path is one of these; none if it is too hard for the pattern to tell.
    fn matches(&self, path: &[u8], text: &str) -> Option<bool> {
        let start = path.get(..self.start.len());
        match &self.pattern {
            _ if !start.is_some_and(|start| start.eq_ignore_ascii_case(&self.start)) => Some(false),
            None => Some(true),
            Some(pattern) => pattern.try_match(text),
        }
    }
}

fn text(location: &Location) -> &str {
    if location.path.is_empty() { "/" } else { &location.path }
}

fn of_kind(locations: &[Arc<Location>], kind: PathKind) -> impl Iterator<Item = &str> {
    locations.iter().filter(move |location| location.kind == kind).map(|location| text(location))
}

/// The text up to the first special character, without a character that may be repeated zero times.
fn fixed_start(pattern: &str) -> &str {
    if may_have_alternatives(pattern) {
        // The anchor belongs to the first alternative only.
        return "";
    }
    let special = |character: char| "\\.+*?()[]{}|^$".contains(character);
    let Some(end) = pattern.find(special) else { return pattern };
    let start = &pattern[..end];
    if !pattern[end..].starts_with(['*', '?', '{']) {
        return start;
    }
    let mut characters = start.chars();
    characters.next_back();
    characters.as_str()
}

/// Whether there may be a `|` outside of all groups. Where brackets could hide parentheses, any `|` counts.
fn may_have_alternatives(pattern: &str) -> bool {
    let hides = ["[", "(?", "\\Q"].iter().any(|part| pattern.contains(part));
    let mut depth = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 || hides => return true,
            _ => {}
        }
    }
    false
}
