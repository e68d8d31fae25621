//! What came of a head, or of a handshake, and is not whole: beyond a little it counts for the connection of its
//! request, and has a bound for all of them and for those of a namespace.

use super::{Cause, Pool, TryError, Whom};
use std::sync::Arc;
use wire::{Counted, Loan};

/// The head of one answer, or the handshake before it, or a message that is asked for.
pub struct Unfinished<'a> {
    pool: &'a Pool,
    pub(super) whom: Whom<'a>,
    counted: Option<Counted>,
    loan: Option<Loan>,
}

impl<'a> Unfinished<'a> {
    /// Nothing has come of it yet.
    pub(super) fn new(pool: &'a Pool, whom: Whom<'a>) -> Self {
        Self { pool, whom, counted: None, loan: None }
    }

    /// The same of what somebody else reads, for a request and this namespace.
    pub fn of(pool: &'a Pool, whose: &'a Arc<str>, cause: Cause<'a>) -> Self {
        Self::new(pool, Whom { namespace: Some(whose), book: cause.book })
    }

    /// So many bytes are held for it now.
    ///
    /// # Errors
    /// There is no more room.
    pub fn holds(&mut self, size: usize) -> Result<(), TryError> {
        Counted::keep(&mut self.counted, self.whom.book, size);
        if self.counted.is_none() {
            return Ok(());
        }
        let lend = || self.pool.heads().lend(&self.whom.namespace.cloned().unwrap_or_default());
        let loan = self.loan.get_or_insert_with(lend);
        let more = (size as u64).saturating_sub(loan.size());
        if more == 0 || loan.grow(more).is_some() { Ok(()) } else { Err(TryError::Heads) }
    }
}
