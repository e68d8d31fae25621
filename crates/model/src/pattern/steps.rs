//! What the patterns that a request meets may cost together.

use std::cell::Cell;

/// Steps that all patterns together may take for one request: a byte read by an automaton, a state of one at a byte,
/// an instruction of a pattern that backtracks. A step takes a few nanoseconds.
#[derive(Clone, Debug)]
pub struct Steps {
    left: Cell<usize>,
}

/// There were not enough steps left: nobody knows whether the pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent;

impl Steps {
    /// The steps of a request.
    pub const OF_REQUEST: usize = 4_000_000;

    /// So many steps.
    pub const fn new(steps: usize) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// Takes some. Once there were too few, there are none.
    pub fn take(&self, steps: usize) -> Result<(), Spent> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        left.map(drop).ok_or(Spent)
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        self.left.get()
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::new(Self::OF_REQUEST)
    }
}
