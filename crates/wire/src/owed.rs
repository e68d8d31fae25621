//! What clients of a connection owe: bodies that they announced and do not send. Under pressure whoever owes most and
//! sends nothing goes first (docs/overload.md).

use std::cell::Cell;
use std::cmp::Reverse;

/// Bytes between two looks, of which there are two a second, that count as sending.
const SENDING: u64 = 1024;
/// Looks without them, one after the other, after which nothing more is expected.
const PATIENT: u32 = 2;

/// Requests of a connection whose bodies are waited for, and how much of them comes.
#[derive(Debug, Default)]
pub struct Owed {
    bodies: Cell<u32>,
    /// Bytes since the last look.
    came: Cell<u64>,
    /// Looks that found nothing coming.
    silent: Cell<u32>,
}

impl Owed {
    /// One more body is waited for.
    pub fn wait(&self) {
        self.bodies.set(self.bodies.get() + 1);
    }

    /// One less is.
    pub fn settle(&self) {
        self.bodies.set(self.bodies.get().saturating_sub(1));
    }

    /// So many bytes of bodies came.
    pub fn came(&self, bytes: usize) {
        self.came.set(self.came.get() + bytes as u64);
    }

    /// Looks at it; twice a second.
    pub fn look(&self) {
        let silent = self.came.take() < SENDING && self.bodies.get() > 0;
        self.silent.set(if silent { self.silent.get() + 1 } else { 0 });
    }

    /// How many bodies are owed by somebody who sends nothing.
    fn stalls(&self) -> Option<u32> {
        (self.silent.get() >= PATIENT && self.bodies.get() > 0).then(|| self.bodies.get())
    }
}

/// Whether a request owes more of its body. Once its answer has begun nothing is owed: both sides of a gRPC stream or a
/// long poll may be silent for as long as they like.
#[derive(Debug, Default)]
pub struct Debt {
    owes: Cell<bool>,
    answered: Cell<bool>,
}

impl Debt {
    /// The next request begins.
    pub fn begin(&self, owed: &Owed) {
        self.set(owed, false);
        self.answered.set(false);
    }

    /// Its answer begins.
    pub fn answer(&self, owed: &Owed) {
        self.set(owed, false);
        self.answered.set(true);
    }

    /// Whether its body was just waited for.
    pub fn waits(&self, owed: &Owed, waits: bool) {
        self.set(owed, waits && !self.answered.get());
    }

    fn set(&self, owed: &Owed, owes: bool) {
        match (self.owes.replace(owes), owes) {
            (false, true) => owed.wait(),
            (true, false) => owed.settle(),
            _ => {}
        }
    }
}

/// Those of `all` that go first: a quarter of those that send nothing, of whom those that owe most.
pub fn worst<T>(all: impl Iterator<Item = T>, owed: impl Fn(&T) -> &Owed) -> Vec<T> {
    let mut silent: Vec<(u32, T)> =
        all.filter_map(|one| owed(&one).stalls().map(|bodies| (bodies, one))).collect();
    silent.sort_by_key(|(bodies, _)| Reverse(*bodies));
    silent.truncate(silent.len().div_ceil(4));
    silent.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::{Debt, Owed, SENDING, worst};

    fn owing(bodies: u32) -> Owed {
        let owed = Owed::default();
        (0..bodies).for_each(|_| owed.wait());
        owed
    }

    #[test]
    fn nothing_is_owed_once_the_answer_has_begun() {
        let (owed, debt) = (Owed::default(), Debt::default());
        debt.waits(&owed, true);
        debt.waits(&owed, true);
        assert_eq!(owed.bodies.get(), 1);
        debt.answer(&owed);
        debt.waits(&owed, true);
        assert_eq!(owed.bodies.get(), 0);
        debt.begin(&owed);
        debt.waits(&owed, true);
        assert_eq!(owed.bodies.get(), 1);
    }

    #[test]
    fn who_owes_most_and_sends_nothing_goes_first() {
        let all = [owing(1), owing(120), owing(0), owing(3)];
        let sends = owing(200);
        for _ in 0..3 {
            sends.came(SENDING as usize);
            sends.look();
            all.iter().for_each(Owed::look);
        }
        let found = worst(all.iter().chain([&sends]), |one| one);
        assert_eq!(found.iter().map(|one| one.bodies.get()).collect::<Vec<_>>(), [120]);
        all[1].settle();
        (0..119).for_each(|_| all[1].settle());
        assert_eq!(worst([&all[1], &all[2]].into_iter(), |one| one).len(), 0, "nothing is owed");
    }
}
