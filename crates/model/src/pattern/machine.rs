//! Runs the instructions of a pattern that backtracks, and counts them.

use super::backtrack::{Op, Part, Program};
use super::{Spent, Steps};
use regex_automata::util::look::LookMatcher;
use regex_syntax::hir::Look;

/// Ways back that are remembered at most.
const TRAIL: usize = 1 << 16;
/// A slot that nothing was written to.
const NOWHERE: usize = usize::MAX;

/// Where to go on when a way turns out wrong, and what to make undone before.
#[derive(Clone, Copy, Debug)]
enum Back {
    Way { op: usize, at: usize },
    Slot { slot: usize, was: usize },
}

struct Machine<'a> {
    program: &'a Program,
    text: &'a [u8],
    steps: &'a Steps,
    slots: Vec<usize>,
    trail: Vec<Back>,
    looks: LookMatcher,
}

impl Program {
    /// The first match and its groups: where each starts and ends.
    pub(super) fn search(
        &self,
        text: &[u8],
        steps: &Steps,
    ) -> Result<Option<Vec<Option<usize>>>, Spent> {
        let slots = vec![NOWHERE; self.slots];
        let looks = LookMatcher::new();
        let mut machine = Machine { program: self, text, steps, slots, trail: Vec::new(), looks };
        let anchored = matches!(self.ops.first(), Some(Op::Look(Look::Start)));
        for start in 0..=if anchored { 0 } else { text.len() } {
            machine.slots[0] = start;
            if let Some(end) = machine.run(0, start, None)? {
                machine.slots.truncate(self.groups);
                // `\K` in a look-ahead may have moved the start beyond it.
                machine.slots[0] = machine.slots[0].min(end);
                machine.slots[1] = end;
                let place = |slot: usize| (slot != NOWHERE).then_some(slot);
                return Ok(Some(machine.slots.into_iter().map(place).collect()));
            }
        }
        Ok(None)
    }
}

impl Machine<'_> {
    /// Runs from an instruction to the `Done` of its part; says where that is in the text, which is `end` if there is
    /// one. No way leads back into it afterwards.
    fn run(&mut self, op: usize, at: usize, end: Option<usize>) -> Result<Option<usize>, Spent> {
        let base = self.trail.len();
        let (mut op, mut at) = (op, at);
        loop {
            self.steps.take(1)?;
            if matches!(self.program.ops[op], Op::Done) && end.is_none_or(|end| end == at) {
                // What was written stays, and can be undone by whoever goes back beyond this part.
                let ways = self.trail.split_off(base);
                let slots = ways.into_iter().filter(|back| matches!(back, Back::Slot { .. }));
                self.trail.extend(slots);
                return Ok(Some(at));
            }
            match self.step(op, at)? {
                Some(next) => (op, at) = next,
                None => match self.back(base) {
                    Some(next) => (op, at) = next,
                    None => return Ok(None),
                },
            }
        }
    }

    /// What follows an instruction; none if it does not match.
    fn step(&mut self, op: usize, at: usize) -> Result<Option<(usize, usize)>, Spent> {
        let next = op + 1;
        let here = |holds: bool| holds.then_some((next, at));
        Ok(match self.program.ops[op] {
            Op::One(set) => {
                let set = &self.program.sets[set as usize];
                let has = |byte: u8| set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1;
                self.text.get(at).is_some_and(|byte| has(*byte)).then_some((next, at + 1))
            }
            Op::Split(first, second) => {
                self.remember(Back::Way { op: second as usize, at })?;
                Some((first as usize, at))
            }
            Op::Jump(to) => Some((to as usize, at)),
            Op::Save(slot) => {
                let slot = slot as usize;
                self.remember(Back::Slot { slot, was: self.slots[slot] })?;
                self.slots[slot] = at;
                Some((next, at))
            }
            Op::Round(slot, start) => {
                if self.slots[slot as usize] == at {
                    Some((next, at))
                } else {
                    Some((start as usize, at))
                }
            }
            Op::Look(look) => here(self.is_at(look, at)),
            Op::AtLastLine => here(matches!(self.text[at..], [] | [b'\n'])),
            Op::Again(slot, ignore_case) => {
                self.again(slot as usize, ignore_case, at)?.map(|at| (next, at))
            }
            Op::Matched(slot) => here(self.slots[slot as usize + 1] != NOWHERE),
            Op::Part(part, then) => self.part(part, next, at)?.map(|at| (then as usize, at)),
            Op::If(yes, no) => match self.run(next, at, None)? {
                Some(_) => Some((yes as usize, at)),
                None => Some((no as usize, at)),
            },
            Op::Done | Op::Fail => None,
        })
    }

    /// Runs a part on its own; says where to go on in the text.
    fn part(&mut self, part: Part, op: usize, at: usize) -> Result<Option<usize>, Spent> {
        let base = self.trail.len();
        let (found, wanted) = match part {
            Part::Atomic => return self.run(op, at, None),
            Part::Ahead => (self.run(op, at, None)?.is_some(), true),
            Part::NotAhead => (self.run(op, at, None)?.is_some(), false),
            Part::Behind(least, most) => (self.behind(op, at, least, most)?, true),
            Part::NotBehind(least, most) => (self.behind(op, at, least, most)?, false),
        };
        if found && !wanted {
            while self.back(base).is_some() {}
        }
        Ok((found == wanted).then_some(at))
    }

    fn behind(&mut self, op: usize, at: usize, least: u16, most: u16) -> Result<bool, Spent> {
        let first = if most == u16::MAX { 0 } else { at.saturating_sub(most.into()) };
        let Some(last) = at.checked_sub(least.into()) else { return Ok(false) };
        for start in (first..=last).rev() {
            if self.run(op, start, Some(at))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where the text of a group ends, if it is here once more.
    fn again(&self, slot: usize, ignore_case: bool, at: usize) -> Result<Option<usize>, Spent> {
        let Some(group) = self.text.get(self.slots[slot]..self.slots[slot + 1]) else {
            return Ok(None);
        };
        self.steps.take(group.len())?;
        let end = at + group.len();
        let Some(text) = self.text.get(at..end) else { return Ok(None) };
        let same = if ignore_case { text.eq_ignore_ascii_case(group) } else { text == group };
        Ok(same.then_some(end))
    }

    fn is_at(&self, look: Look, at: usize) -> bool {
        let (looks, text) = (&self.looks, self.text);
        match look {
            Look::Start => looks.is_start(text, at),
            Look::End => looks.is_end(text, at),
            Look::StartLF => looks.is_start_lf(text, at),
            Look::EndLF => looks.is_end_lf(text, at),
            Look::StartCRLF => looks.is_start_crlf(text, at),
            Look::EndCRLF => looks.is_end_crlf(text, at),
            Look::WordAscii | Look::WordUnicode => looks.is_word_ascii(text, at),
            Look::WordAsciiNegate | Look::WordUnicodeNegate => looks.is_word_ascii_negate(text, at),
            Look::WordStartAscii | Look::WordStartUnicode => looks.is_word_start_ascii(text, at),
            Look::WordEndAscii | Look::WordEndUnicode => looks.is_word_end_ascii(text, at),
            Look::WordStartHalfAscii | Look::WordStartHalfUnicode => {
                looks.is_word_start_half_ascii(text, at)
            }
            Look::WordEndHalfAscii | Look::WordEndHalfUnicode => {
                looks.is_word_end_half_ascii(text, at)
            }
        }
    }

    fn remember(&mut self, back: Back) -> Result<(), Spent> {
        if self.trail.len() == TRAIL {
            return Err(Spent);
        }
        self.trail.push(back);
        Ok(())
    }

    /// The last way that was not tried yet, of those that were remembered since `base`.
    fn back(&mut self, base: usize) -> Option<(usize, usize)> {
        while self.trail.len() > base {
            match self.trail.pop()? {
                Back::Way { op, at } => return Some((op, at)),
                Back::Slot { slot, was } => self.slots[slot] = was,
            }
        }
        None
    }
}
