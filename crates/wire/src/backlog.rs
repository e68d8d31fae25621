//! What a connection holds of answers that its client does not take: who holds most and moves least goes first when
//! memory is scarce (docs/overload.md).

use std::cell::Cell;
use std::cmp::Reverse;

/// Less than this is not worth an end.
const WORTH: usize = 16 << 10;
/// Looks, of which there are two a second, in which an honest client takes what waits for it.
const HONEST: u64 = 20;

/// What is held for a client, and how much of it goes.
#[derive(Debug, Default)]
pub struct Backlog {
    held: Cell<usize>,
    /// Bytes that went since the last look, and between the last two.
    moved: Cell<u64>,
    speed: Cell<u64>,
    /// Looks that found it holding something, one after the other.
    looks: Cell<u32>,
}

impl Backlog {
    /// Bytes that wait.
    pub fn held(&self) -> usize {
        self.held.get()
    }

    /// So many more wait.
    pub fn hold(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
    }

    /// So many of them went.
    pub fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes));
        self.moved.set(self.moved.get() + bytes as u64);
    }

    /// So many of them will never go.
    pub fn forget(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes));
    }

    /// Bytes that went between the last two looks.
    pub fn speed(&self) -> u64 {
        self.speed.get()
    }

    /// Looks at it; twice a second.
    pub fn look(&self) {
        self.speed.set(self.moved.take());
        self.looks.set(if self.held.get() < WORTH { 0 } else { self.looks.get() + 1 });
    }

    /// After how many looks all that waits would have gone, if they are too many; known after two of them.
    fn stalls(&self) -> Option<u64> {
        let looks = self.held.get() as u64 / self.speed.get().max(1);
        (self.held.get() >= WORTH && self.looks.get() > 1 && looks > HONEST).then_some(looks)
    }
}

/// Those of `all` that go first: a quarter of those that stall, of whom the slowest with the most.
pub fn worst<T>(all: impl Iterator<Item = T>, backlog: impl Fn(&T) -> &Backlog) -> Vec<T> {
    let mut stalled: Vec<(u64, T)> =
        all.filter_map(|one| backlog(&one).stalls().map(|looks| (looks, one))).collect();
    stalled.sort_by_key(|(looks, _)| Reverse(*looks));
    stalled.truncate(stalled.len().div_ceil(4));
    stalled.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::{Backlog, worst};

    fn looked_at(held: usize, moved: usize) -> Backlog {
        let backlog = Backlog::default();
        backlog.hold(held);
        backlog.look();
        backlog.hold(moved);
        backlog.release(moved);
        backlog.look();
        backlog
    }

    fn held_by_the_worst(all: &[Backlog]) -> Vec<usize> {
        worst(all.iter(), |one| one).into_iter().map(Backlog::held).collect()
    }

    #[test]
    fn who_holds_most_and_moves_least_goes_first() {
        let all =
            [(100 << 10, 0), (900 << 10, 0), (1 << 20, 1 << 20), (950 << 10, 5000), (20 << 10, 0)];
        let all = all.map(|(held, moved)| looked_at(held, moved));
        assert_eq!(held_by_the_worst(&all), [900 << 10]);
        assert_eq!(held_by_the_worst(&all[2..3]), [0; 0], "it takes what it gets");
    }

    #[test]
    fn who_holds_little_or_only_for_a_moment_stays() {
        assert_eq!(held_by_the_worst(&[looked_at(1000, 0)]), [0; 0]);
        let newcomer = Backlog::default();
        newcomer.hold(1 << 20);
        newcomer.look();
        assert_eq!(held_by_the_worst(&[newcomer]), [0; 0]);
        let taken = looked_at(1 << 20, 0);
        taken.release(1 << 20);
        assert_eq!(held_by_the_worst(&[taken]), [0; 0]);
    }
}
