//! Patterns that need backtracking (look-around, back-references, atomic groups): compiled to instructions.

use super::{PatternError, SIZE, syntax};
use fancy_regex::{BacktrackingControlVerb, Expr, LookAround};
use regex_syntax::hir::{ClassBytes, Look};

/// An instruction. Without a word on what is next, the one after it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// One byte of the set with this number.
    One(u32),
    /// Go on at the first, later perhaps at the second one.
    Split(u32, u32),
    /// Go on there.
    Jump(u32),
    /// Remember this place in a slot.
    Save(u32),
    /// Another round from there, unless this one read nothing since the place in the slot.
    Round(u32, u32),
    /// The place is of this kind.
    Look(Look),
    /// At the end, or before the newline that ends the text.
    AtLastLine,
    /// The text of a group once more, perhaps in another case.
    Again(u32, bool),
    /// The group has matched.
    Matched(u32),
    /// The part that follows, up to its `Done`, on its own; then go on there.
    Part(Part, u32),
    /// The part that follows is the question: go on at the first if it matches, else at the second one.
    If(u32, u32),
    /// The end of the pattern or of a part.
    Done,
    /// No match.
    Fail,
}

/// What a part is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// `(?>…)`: no way back into it.
    Atomic,
    /// `(?=…)`
    Ahead,
    /// `(?!…)`
    NotAhead,
    /// `(?<=…)`: of so many bytes at least and at most.
    Behind(u16, u16),
    /// `(?<!…)`
    NotBehind(u16, u16),
}

/// A pattern as instructions.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) sets: Vec<[u64; 4]>,
    /// Where groups start and end, the whole match first.
    pub(super) groups: usize,
    /// Those, and places that instructions remember.
    pub(super) slots: usize,
}

impl Program {
    pub(super) fn new(expr: &Expr) -> Result<Self, PatternError> {
        let groups = 2 * (1 + groups_of(expr));
        let program = Self { ops: Vec::new(), sets: Vec::new(), groups, slots: groups };
        let mut compiler = Compiler { program, group: 0 };
        compiler.add(expr)?;
        compiler.push(Op::Done)?;
        compiler.program.ops.shrink_to_fit();
        compiler.program.sets.shrink_to_fit();
        Ok(compiler.program)
    }

    /// Bytes that it keeps.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>()
            + self.ops.len() * size_of::<Op>()
            + self.sets.len() * size_of::<[u64; 4]>()
    }
}

fn groups_of(expr: &Expr) -> usize {
    let own = usize::from(matches!(expr, Expr::Group(_)));
    own + expr.children_iter().map(groups_of).sum::<usize>()
}

struct Compiler {
    program: Program,
    /// The last group that was opened.
    group: usize,
}

impl Compiler {
    fn push(&mut self, op: Op) -> Result<usize, PatternError> {
        if self.program.size() > SIZE {
            return Err(PatternError::of_ours(format!("it takes more than {} KiB", SIZE >> 10)));
        }
        self.program.ops.push(op);
        Ok(self.program.ops.len() - 1)
    }

    fn here(&self) -> u32 {
        number(self.program.ops.len())
    }

    fn add(&mut self, expr: &Expr) -> Result<(), PatternError> {
        match expr {
            Expr::Empty => {}
            Expr::Concat(parts) => parts.iter().try_for_each(|part| self.add(part))?,
            Expr::Alt(parts) => self.alternatives(parts)?,
            Expr::Group(inner) => {
                self.group += 1;
                let slot = number(2 * self.group);
                self.push(Op::Save(slot))?;
                self.add(inner)?;
                self.push(Op::Save(slot + 1))?;
            }
            Expr::Repeat { child, lo, hi, greedy } => self.repeat(child, *lo, *hi, *greedy)?,
            Expr::LookAround(inner, kind) => {
                let part = match kind {
                    LookAround::LookAhead => Part::Ahead,
                    LookAround::LookAheadNeg => Part::NotAhead,
                    LookAround::LookBehind => {
                        let (least, most) = width(inner);
                        Part::Behind(least, most)
                    }
                    LookAround::LookBehindNeg => {
                        let (least, most) = width(inner);
                        Part::NotBehind(least, most)
                    }
                };
                self.part(part, inner)?;
            }
            Expr::AtomicGroup(inner) => self.part(Part::Atomic, inner)?,
            Expr::Conditional { condition, true_branch, false_branch } => {
                self.condition(condition, true_branch, false_branch)?;
            }
            Expr::Backref { group, casei } => {
                let slot = self.slot_of(*group)?;
                self.push(Op::Again(slot, *casei))?;
            }
            Expr::BackrefExistsCondition { group, relative_recursion_level: None } => {
                let slot = self.slot_of(*group)?;
                self.push(Op::Matched(slot))?;
            }
            Expr::KeepOut => drop(self.push(Op::Save(0))?),
            // A search always begins at the start of the text.
            Expr::ContinueFromPreviousMatchEnd => drop(self.push(Op::Look(Look::Start))?),
            Expr::BacktrackingControlVerb(BacktrackingControlVerb::Fail) => {
                self.push(Op::Fail)?;
            }
            Expr::Assertion(assertion) => {
                let op = syntax::look(*assertion).map_or(Op::AtLastLine, Op::Look);
                self.push(op)?;
            }
            leaf => {
                let Some(bytes) = syntax::one(leaf)? else {
                    return Err(PatternError::of_ours(
                        "it has a construct that is not supported".to_owned(),
                    ));
                };
                bytes.iter().try_for_each(|set| self.one(set))?;
            }
        }
        Ok(())
    }

    fn slot_of(&self, group: usize) -> Result<u32, PatternError> {
        if group == 0 || group >= self.program.groups / 2 {
            return Err(PatternError::of_ours(format!(
                "it refers to group {group}, which it does not have"
            )));
        }
        Ok(number(2 * group))
    }

    fn one(&mut self, set: &ClassBytes) -> Result<(), PatternError> {
        let mut bits = [0_u64; 4];
        for range in set.iter() {
            for byte in range.start()..=range.end() {
                bits[usize::from(byte >> 6)] |= 1 << (byte & 63);
            }
        }
        let sets = &mut self.program.sets;
        let known = sets.iter().position(|known| *known == bits);
        let place = known.unwrap_or_else(|| {
            sets.push(bits);
            sets.len() - 1
        });
        self.push(Op::One(number(place))).map(drop)
    }

    fn alternatives(&mut self, parts: &[Expr]) -> Result<(), PatternError> {
        let mut ends = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            if place + 1 == parts.len() {
                self.add(part)?;
                break;
            }
            let split = self.push(Op::Fail)?;
            self.add(part)?;
            ends.push(self.push(Op::Fail)?);
            self.program.ops[split] = Op::Split(number(split + 1), self.here());
        }
        let end = self.here();
        ends.into_iter().for_each(|place| self.program.ops[place] = Op::Jump(end));
        Ok(())
    }

    fn repeat(
        &mut self,
        child: &Expr,
        lo: usize,
        hi: usize,
        greedy: bool,
    ) -> Result<(), PatternError> {
        let group = self.group;
        let split =
            |on: u32, out: u32| if greedy { Op::Split(on, out) } else { Op::Split(out, on) };
        for _ in 0..lo {
            let before = self.here();
            self.group = group;
            self.add(child)?;
            if self.here() == before {
                // Nothing, however often.
                break;
            }
        }
        if hi == usize::MAX {
            let slot = number(self.program.slots);
            self.program.slots += 1;
            let start = self.push(Op::Fail)?;
            self.push(Op::Save(slot))?;
            self.group = group;
            self.add(child)?;
            self.push(Op::Round(slot, number(start)))?;
            self.program.ops[start] = split(number(start + 1), self.here());
        } else {
            let mut splits = Vec::new();
            for _ in lo..hi {
                splits.push(self.push(Op::Fail)?);
                self.group = group;
                self.add(child)?;
            }
            let out = self.here();
            for place in splits {
                self.program.ops[place] = split(number(place + 1), out);
            }
        }
        self.group = group + groups_of(child);
        Ok(())
    }

    fn part(&mut self, part: Part, inner: &Expr) -> Result<(), PatternError> {
        let place = self.push(Op::Fail)?;
        self.add(inner)?;
        self.push(Op::Done)?;
        self.program.ops[place] = Op::Part(part, self.here());
        Ok(())
    }

    fn condition(&mut self, question: &Expr, yes: &Expr, no: &Expr) -> Result<(), PatternError> {
        let place = self.push(Op::Fail)?;
        self.add(question)?;
        self.push(Op::Done)?;
        let then = self.here();
        self.add(yes)?;
        let end = self.push(Op::Fail)?;
        self.program.ops[place] = Op::If(then, self.here());
        self.add(no)?;
        self.program.ops[end] = Op::Jump(self.here());
        Ok(())
    }
}

/// Programs, sets and slots are bounded far below.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// How many bytes an expression reads at least and at most.
pub(super) fn width(expr: &Expr) -> (u16, u16) {
    let times = |width: u16, count: usize| {
        u16::try_from(count)
            .map_or(if width == 0 { 0 } else { u16::MAX }, |count| width.saturating_mul(count))
    };
    match expr {
        Expr::Concat(parts) => parts
            .iter()
            .map(width)
            .fold((0, 0), |sum, part| (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1))),
        Expr::Alt(parts) => parts
            .iter()
            .map(width)
            .fold((u16::MAX, 0), |all, part| (all.0.min(part.0), all.1.max(part.1))),
        Expr::Group(inner) => width(inner),
        Expr::AtomicGroup(inner) => width(inner),
        Expr::Repeat { child, lo, hi, .. } => {
            let (least, most) = width(child);
            (times(least, *lo), times(most, *hi))
        }
        Expr::Literal { .. }
        | Expr::LiteralBytes { .. }
        | Expr::Any { .. }
        | Expr::Delegate { .. } => {
            let bytes = syntax::one(expr).ok().flatten().map_or(1, |bytes| bytes.len());
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
            (bytes, bytes)
        }
        Expr::Backref { .. } | Expr::Conditional { .. } => (0, u16::MAX),
        _ => (0, 0),
    }
}
