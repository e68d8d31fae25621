//! Patterns that automata can do: linear in the text, whatever the text.

use super::{PatternError, SIZE, Spent, Steps};
use regex_automata::Input;
use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::backtrack::{self, BoundedBacktracker};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::primitives::NonMaxUsize;
use regex_syntax::hir::Hir;
use std::cell::RefCell;

/// Bytes of a table that answers a byte with one look; what needs more is run without.
const TABLE: usize = 16 << 10;
/// Bytes that may be used while the table is made.
const MAKING: usize = 32 << 10;
/// States of an automaton beyond which no table is tried.
const STATES: usize = 512;
/// Cells of working memory of a search that tells groups.
const CELLS: usize = 64 << 10;
/// Bytes of working memory of a search that remembers where it has been.
const VISITED: usize = 16 << 10;

/// A pattern for automata.
#[derive(Debug)]
pub(super) struct Linear {
    states: usize,
    /// Whether its ends hold before a newline that ends the text, too.
    last_line: bool,
    /// For whether it matches.
    table: Option<dense::DFA<Vec<u32>>>,
    /// For its groups, in short texts.
    short: BoundedBacktracker,
    /// For its groups, and where there is no table.
    long: PikeVM,
}

thread_local! {
    /// Working memory of searches: one for all patterns, so that it grows with threads and not with patterns.
    static SCRATCH: RefCell<(Option<backtrack::Cache>, Option<pikevm::Cache>)> = RefCell::default();
}

impl Linear {
    pub(super) fn new(hir: &Hir, matching: bool, last_line: bool) -> Result<Self, PatternError> {
        let config = thompson::Config::new().utf8(false).shrink(false).nfa_size_limit(Some(SIZE));
        let wrong = |error: &dyn std::fmt::Display| PatternError::of_ours(error.to_string());
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir);
        let nfa = nfa.map_err(|error| match error.size_limit() {
            Some(most) => PatternError::of_ours(format!(
                "it takes more than {} KiB when it is compiled; split it into several",
                most >> 10
            )),
            None => wrong(&error),
        })?;
        let states = nfa.states().len();
        if states * nfa.group_info().slot_len() > CELLS {
            return Err(PatternError::of_ours("it has too many groups for its length".to_owned()));
        }
        let table = (matching && states <= STATES).then(|| table(&nfa)).flatten();
        let visited = backtrack::Config::new().visited_capacity(VISITED);
        let short = BoundedBacktracker::builder().configure(visited).build_from_nfa(nfa.clone());
        let long = PikeVM::new_from_nfa(nfa).map_err(|error| wrong(&error))?;
        Ok(Self { states, last_line, table, short: short.map_err(|error| wrong(&error))?, long })
    }

    /// Bytes that it keeps.
    pub(super) fn size(&self) -> usize {
        let table = self.table.as_ref().map_or(0, |table| table.memory_usage());
        size_of::<Self>() + self.long.get_nfa().memory_usage() + table
    }

    /// Steps that a match in a text of `length` bytes takes at most, if no newline ends it.
    pub(super) fn most_steps(&self, length: usize) -> usize {
        let each = if self.table.is_some() { 1 } else { self.states };
        each.saturating_mul(length + 1)
    }

    pub(super) fn is_match(&self, text: &[u8], steps: &Steps) -> Result<bool, Spent> {
        let look = |text| match &self.table {
            Some(table) => look_up(table, text, steps),
            None => self.search(text, &mut [], steps),
        };
        let found = look(text)?;
        match self.without_newline(text) {
            Some(line) if !found => look(line),
            _ => Ok(found),
        }
    }

    /// The text that is looked at, too, if nothing matches in all of it: up to a newline that ends it. What has to
    /// read that newline behind such an end, as `$\n` does, would find no match, and is none for automata.
    fn without_newline<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        text.strip_suffix(b"\n").filter(|_| self.last_line)
    }

    /// The first match and its groups: where each starts and ends.
    pub(super) fn captures(
        &self,
        text: &[u8],
        steps: &Steps,
    ) -> Result<Option<Vec<Option<usize>>>, Spent> {
        let mut slots = vec![None; self.long.get_nfa().group_info().slot_len()];
        let mut found = self.search(text, &mut slots, steps)?;
        if let Some(line) = self.without_newline(text) {
            // What starts first is the match.
            let mut others = vec![None; slots.len()];
            if self.search(line, &mut others, steps)? && (!found || others[0] < slots[0]) {
                (found, slots) = (true, others);
            }
        }
        Ok(found.then(|| slots.into_iter().map(|slot| slot.map(NonMaxUsize::get)).collect()))
    }

    fn search(
        &self,
        text: &[u8],
        slots: &mut [Option<NonMaxUsize>],
        steps: &Steps,
    ) -> Result<bool, Spent> {
        steps.take(self.states.saturating_mul(text.len() + 1))?;
        let input = Input::new(text).earliest(slots.is_empty());
        SCRATCH.with_borrow_mut(|(short, long)| {
            if text.len() <= self.short.max_haystack_len() {
                let cache = short.get_or_insert_with(|| self.short.create_cache());
                cache.reset(&self.short);
                let found = self.short.try_search_slots(cache, &input, slots);
                return found.map(|found| found.is_some()).map_err(|_| Spent);
            }
            let cache = long.get_or_insert_with(|| self.long.create_cache());
            cache.reset(&self.long);
            Ok(self.long.search_slots(cache, &input, slots).is_some())
        })
    }
}

/// The table, where it is small.
fn table(nfa: &NFA) -> Option<dense::DFA<Vec<u32>>> {
    let config = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .match_kind(MatchKind::LeftmostFirst)
        .accelerate(false)
        .dfa_size_limit(Some(TABLE))
        .determinize_size_limit(Some(MAKING));
    dense::Builder::new().configure(config).build_from_nfa(nfa).ok()
}

/// Whether there is a match: ends with the byte that decides.
fn look_up(table: &dense::DFA<Vec<u32>>, text: &[u8], steps: &Steps) -> Result<bool, Spent> {
    let start = table.start_state_forward(&Input::new(text));
    let mut state = start.map_err(|_| Spent)?;
    for (at, byte) in text.iter().enumerate() {
        state = table.next_state(state, *byte);
        if table.is_special_state(state) {
            let is_match = table.is_match_state(state);
            if is_match || table.is_dead_state(state) {
                return steps.take(at + 1).map(|()| is_match);
            }
        }
    }
    steps.take(text.len() + 1)?;
    Ok(table.is_match_state(table.next_eoi_state(state)))
}
