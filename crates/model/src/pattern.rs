//! Regular expressions with PCRE's meaning and a step limit.

use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A compiled regular expression: look-around and back-references as in PCRE, run with a bound on backtracking;
/// patterns that need neither run in linear time.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: Arc<str>,
    ignore_case: bool,
    compiled: Arc<fancy_regex::Regex>,
}

/// Why a text is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub String);

/// Backtracking steps after which a match is given up: about a millisecond.
const STEPS: usize = 20_000;
/// What the linear engine cannot do: look-around, atomic groups, possessive repetition, back-references and the like.
const BACKTRACKING: [&str; 19] = [
    "(?=", "(?!", "(?<", "(?>", "(?(", "*+", "++", "?+", "}+", "\\1", "\\2", "\\3", "\\4", "\\5",
    "\\6", "\\7", "\\8", "\\9", "\\k",
];
/// Length of the texts that a pattern is tried with for [`Pattern::is_catastrophic`].
const PROBE: usize = 256;
/// Bytes that one compiled pattern may use.
const SIZE: usize = 1 << 20;

impl Pattern {
    /// Compiles `source`, case-insensitively when asked.
    pub fn new(source: &str, ignore_case: bool) -> Result<Self, PatternError> {
        let compiled = fancy_regex::RegexBuilder::new(source)
            .case_insensitive(ignore_case)
            .backtrack_limit(STEPS)
            .delegate_size_limit(SIZE)
            .build()
            .map_err(|error| PatternError(error.to_string()))?;
        Ok(Self { source: source.into(), ignore_case, compiled: Arc::new(compiled) })
    }

    /// The text the pattern was made of.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the case of letters does not matter.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// Whether it matches somewhere in `text`; a match that exceeds the step limit counts as none.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text).unwrap_or(false)
    }

    /// Whether it matches somewhere in `text`; none if that takes more steps than there may be.
    pub fn try_match(&self, text: &str) -> Option<bool> {
        self.compiled.is_match(text).ok()
    }

    /// Whether some text of [`PROBE`] bytes takes more steps than a match may: then such texts lead nowhere, and
    /// whoever wrote the pattern should know. Patterns without look-around and back-references never do.
    pub fn is_catastrophic(&self) -> bool {
        let backtracks = BACKTRACKING.iter().any(|construct| self.source.contains(construct));
        backtracks && self.exceeds_on_probes()
    }

    fn exceeds_on_probes(&self) -> bool {
        let is_plain = |c: &char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_');
        let start: String =
            self.source.trim_start_matches('^').chars().take_while(is_plain).collect();
        let letters: BTreeSet<char> =
            self.source.chars().filter(is_plain).chain(['a', '0']).collect();
        letters.into_iter().any(|letter| {
            let pumped: String = std::iter::repeat_n(letter, PROBE).collect();
            self.compiled.is_match(&format!("{start}{pumped}\u{1}")).is_err()
        })
    }

    /// The capture groups of the first match in `text`; a match that exceeds the step limit counts as none.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<Option<&'t str>>> {
        self.try_captures(text).flatten()
    }

    /// As [`Self::captures`]; none if that takes more steps than there may be.
    pub fn try_captures<'t>(&self, text: &'t str) -> Option<Option<Vec<Option<&'t str>>>> {
        let Some(captures) = self.compiled.captures(text).ok()? else { return Some(None) };
        let group = |group| captures.get(group).map(|found| found.as_str());
        Some(Some((0..captures.len()).map(group).collect()))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.ignore_case == other.ignore_case && self.source == other.source
    }
}

impl Eq for Pattern {}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_pattern_that_backtracks_without_end_is_found_and_bounded() {
        let pattern = |source: &str| Pattern::new(source, true).expect("a pattern");
        for source in ["^/(?:(a|a)\\1?)*z", "^/(?:(?!z)[a-z]*)*9"] {
            assert!(pattern(source).is_catastrophic(), "{source}");
        }
        for source in ["^/(a+)+$", "^/api/v[0-9]+/(.*)", "^/(?!admin)[a-z]+", "^/(x)\\1"] {
            assert!(!pattern(source).is_catastrophic(), "{source}");
        }
    }
}
