//! Regular expressions with PCRE's meaning over bytes, bounded in memory when they are made and in steps when they run.

mod backtrack;
mod brackets;
mod dialect;
mod error;
mod escapes;
mod linear;
mod machine;
mod sets;
mod shared;
mod steps;
mod syntax;
#[cfg(test)]
mod tests;

use backtrack::Program;
pub use error::PatternError;
use linear::Linear;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
pub use steps::{Spent, Steps};
pub use syntax::{fixed_end, fixed_start, start_with_dots};

/// A compiled regular expression: look-around and back-references as in PCRE without UTF, so that a character is a
/// byte and `\w` is ASCII. Patterns that need neither run in linear time. The same text is compiled once.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<Compiled>);

/// A groups' text, where the group took part in the match.
type Groups<'t> = Vec<Option<&'t [u8]>>;

#[derive(Debug)]
struct Compiled {
    source: Arc<str>,
    ignore_case: bool,
    engine: Engine,
    catastrophic: OnceLock<bool>,
}

#[derive(Debug)]
enum Engine {
    Linear(Box<Linear>),
    Backtracking(Program),
}

/// What a pattern is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Use {
    /// To tell whether it matches.
    Match,
    /// To tell its groups.
    Captures,
}

/// Bytes that one compiled pattern may use, its table for matching not counted.
const SIZE: usize = 64 << 10;
/// Length of the texts that a pattern is tried with for [`Pattern::is_catastrophic`].
const PROBE: usize = 256;
/// Steps that one of them may take, and all of them.
const PROBE_STEPS: usize = 30_000;
const ALL_PROBES: usize = 60_000;

impl Pattern {
    /// Compiles `source`, case-insensitively when asked.
    pub fn new(source: &str, ignore_case: bool) -> Result<Self, PatternError> {
        shared::get(source, ignore_case, Use::Match)
    }

    /// The same for a pattern whose groups are asked for rather than whether it matches.
    pub fn for_captures(source: &str, ignore_case: bool) -> Result<Self, PatternError> {
        shared::get(source, ignore_case, Use::Captures)
    }

    /// Whether `source` reads as a regular expression; costs time by its length, and keeps nothing.
    pub fn check(source: &str) -> Result<(), PatternError> {
        let expr = syntax::parse(source, true)?;
        match syntax::whole(&expr) {
            Ok(_) | Err(syntax::Not::Linear) => Ok(()),
            Err(syntax::Not::Valid(error)) => Err(error),
        }
    }

    /// The names of the groups of `source`, in the order in which they open, with none for those without; up to where
    /// it does not read as a regular expression.
    pub fn names(source: &str) -> Vec<Option<String>> {
        dialect::groups(source)
    }

    /// Bytes that it keeps in memory, however many share it.
    pub fn size(&self) -> usize {
        let engine = match &self.0.engine {
            Engine::Linear(linear) => linear.size(),
            Engine::Backtracking(program) => program.size(),
        };
        size_of::<Compiled>() + 2 * self.0.source.len() + engine
    }

    /// Steps that a match in a text of `length` bytes takes at most, if no newline ends it; none if only running it
    /// tells.
    pub fn most_steps(&self, length: usize) -> Option<usize> {
        match &self.0.engine {
            Engine::Linear(linear) => Some(linear.most_steps(length)),
            Engine::Backtracking(_) => None,
        }
    }

    /// The text the pattern was made of.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Whether the case of letters does not matter.
    pub fn ignores_case(&self) -> bool {
        self.0.ignore_case
    }

    /// Whether it matches somewhere in `text`.
    pub fn try_match(&self, text: &[u8], steps: &Steps) -> Result<bool, Spent> {
        match &self.0.engine {
            Engine::Linear(linear) => linear.is_match(text, steps),
            Engine::Backtracking(program) => Ok(program.search(text, steps)?.is_some()),
        }
    }

    /// Whether it matches somewhere in `text`, for what is no part of a request; what is too hard to tell does not.
    pub fn is_match(&self, text: &str) -> bool {
        self.try_match(text.as_bytes(), &Steps::default()).unwrap_or(false)
    }

    /// The capture groups of the first match in `text`, the whole match first.
    pub fn captures<'t>(&self, text: &'t [u8], steps: &Steps) -> Result<Option<Groups<'t>>, Spent> {
        let slots = match &self.0.engine {
            Engine::Linear(linear) => linear.captures(text, steps)?,
            Engine::Backtracking(program) => program.search(text, steps)?,
        };
        let group = |ends: &[Option<usize>]| match ends {
            [Some(start), Some(end)] => text.get(*start..*end),
            _ => None,
        };
        Ok(slots.map(|slots| slots.chunks(2).map(group).collect()))
    }

    /// Whether some text of [`PROBE`] bytes takes more steps than a match should: then such texts may be answered with
    /// an error, and whoever wrote the pattern should know. Patterns without look-around and back-references never do.
    pub fn is_catastrophic(&self) -> bool {
        match &self.0.engine {
            Engine::Linear(_) => false,
            Engine::Backtracking(_) => {
                *self.0.catastrophic.get_or_init(|| self.exceeds_on_probes())
            }
        }
    }

    fn exceeds_on_probes(&self) -> bool {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_');
        let source = self.source();
        let start: String = source.trim_start_matches('^').chars().take_while(is_plain).collect();
        let letters: BTreeSet<char> = source.chars().filter(is_plain).chain(['a', '0']).collect();
        let mut left = ALL_PROBES;
        for letter in letters {
            let pumped: String = std::iter::repeat_n(letter, PROBE).collect();
            let steps = Steps::new(PROBE_STEPS.min(left));
            let ended = self.try_match(format!("{start}{pumped}\u{1}").as_bytes(), &steps);
            if ended.is_err() {
                return left >= PROBE_STEPS;
            }
            left = left.saturating_sub(PROBE_STEPS.min(left) - steps.left());
        }
        false
    }
}

impl Compiled {
    fn new(source: &str, ignore_case: bool, purpose: Use) -> Result<Self, PatternError> {
        let expr = syntax::parse(source, ignore_case)?;
        let engine = match syntax::whole(&expr) {
            Ok((hir, last_line)) => {
                let matching = purpose == Use::Match;
                Engine::Linear(Box::new(Linear::new(&hir, matching, last_line)?))
            }
            Err(syntax::Not::Linear) => Engine::Backtracking(Program::new(&expr)?),
            Err(syntax::Not::Valid(error)) => return Err(error),
        };
        Ok(Self { source: source.into(), ignore_case, engine, catastrophic: OnceLock::new() })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.ignore_case == other.0.ignore_case && self.0.source == other.0.source)
    }
}

impl Eq for Pattern {}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.source)
    }
}
