//! Routes that are found by an address behind them. Addresses are written out when somebody looks for one, not kept.

use super::Route;
use model::Endpoints;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

/// Addresses that one search goes through.
pub(crate) const MOST: usize = 1_000_000;

/// Groups of endpoints in which words are found, by the number of the word.
pub(super) struct Addresses(HashMap<usize, HashSet<*const Endpoints>>);

impl Addresses {
    /// Goes through the endpoints of all routes once, if a word may be of an address at all.
    pub(super) fn with(words: &[String], routes: &[Route]) -> Self {
        let words: Vec<_> = words.iter().enumerate().filter(|(_, word)| is_of_one(word)).collect();
        let mut found = HashMap::<usize, HashSet<_>>::new();
        if words.is_empty() {
            return Self(found);
        }
        let (mut seen, mut left, mut text) = (HashSet::new(), MOST, String::new());
        for group in routes.iter().flat_map(|route| &route.endpoints) {
            if !seen.insert(Arc::as_ptr(group)) {
                continue;
            }
            let mut missing = words.clone();
            for address in group.ready.iter().chain(&group.draining).take(left) {
                text.clear();
                let _ = write!(text, "{address}");
                missing.retain(|(at, word)| {
                    let has = text.contains(word.as_str());
                    if has {
                        found.entry(*at).or_default().insert(Arc::as_ptr(group));
                    }
                    !has
                });
                left -= 1;
                if missing.is_empty() {
                    break;
                }
            }
        }
        Self(found)
    }

    /// Whether the word with this number is found behind a route.
    pub(super) fn are_of(&self, route: &Route, word: usize) -> bool {
        let Some(found) = self.0.get(&word) else { return false };
        route.endpoints.iter().any(|group| found.contains(&Arc::as_ptr(group)))
    }
}

/// Whether a word may be a part of an address with its port.
fn is_of_one(word: &str) -> bool {
    let is = |letter: char| letter.is_ascii_hexdigit() || matches!(letter, '.' | ':' | '[' | ']');
    word.chars().all(is) && word.contains(|letter: char| letter.is_ascii_digit() || letter == ':')
}
