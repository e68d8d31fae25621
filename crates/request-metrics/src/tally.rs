//! Connections of clients and what they are at, as nginx's stub_status counts them.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one thread says of its connections. Only that thread writes.
#[derive(Debug, Default)]
pub struct Tally {
    accepted: AtomicU64,
    refused: AtomicU64,
    requests: AtomicU64,
    active: AtomicU64,
    reading: AtomicU64,
    writing: AtomicU64,
    waiting: AtomicU64,
    idle_upstream: AtomicU64,
}

/// What all threads say of their connections.
#[derive(Debug, Default)]
pub struct Tallies(Mutex<Vec<Arc<Tally>>>);

impl Tallies {
    /// A thread begins to count; its number.
    pub fn join(&self) -> (usize, Arc<Tally>) {
        let mut threads = self.0.lock();
        let tally = Arc::new(Tally::default());
        threads.push(tally.clone());
        (threads.len(), tally)
    }

    /// What the connections of clients are at.
    pub fn connections(&self) -> Connections {
        let threads = self.0.lock().clone();
        Connections::of(threads.iter().map(|tally| &**tally))
    }
}

/// What connections are at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that were accepted.
    pub accepted: u64,
    /// Those of them that were closed at once since there were too many.
    pub refused: u64,
    /// Requests that were begun.
    pub requests: u64,
    /// Connections that are open.
    pub active: u64,
    /// Those without a request so far, handshakes included.
    pub reading: u64,
    /// Requests that are being answered.
    pub writing: u64,
    /// Connections between two requests.
    pub waiting: u64,
    /// Connections to upstreams that wait for a request.
    pub idle_upstream: u64,
}

fn add(cell: &AtomicU64) {
    cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Tally {
    /// A connection was accepted, and whether it may stay.
    pub fn accepted(&self, stays: bool) {
        add(&self.accepted);
        if !stays {
            add(&self.refused);
        }
    }

    /// A request was begun.
    pub fn request(&self) {
        add(&self.requests);
    }

    /// What connections are at now, by the requests that each has had and those that it is busy with.
    pub fn look(&self, connections: impl Iterator<Item = (u64, u32)>, idle: usize) {
        let [mut active, mut reading, mut writing, mut waiting] = [0u64; 4];
        for (requests, busy) in connections {
            active += 1;
            writing += u64::from(busy);
            match (requests, busy) {
                (0, 0) => reading += 1,
                (_, 0) => waiting += 1,
                _ => {}
            }
        }
        self.active.store(active, Ordering::Relaxed);
        self.reading.store(reading, Ordering::Relaxed);
        self.writing.store(writing, Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
        self.idle_upstream.store(idle as u64, Ordering::Relaxed);
    }
}

impl Connections {
    /// What all threads say together.
    fn of<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
            sum.accepted += get(&tally.accepted);
            sum.refused += get(&tally.refused);
            sum.requests += get(&tally.requests);
            sum.active += get(&tally.active);
            sum.reading += get(&tally.reading);
            sum.writing += get(&tally.writing);
            sum.waiting += get(&tally.waiting);
            sum.idle_upstream += get(&tally.idle_upstream);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::{Connections, Tally};

    #[test]
    fn connections_are_told_apart_by_what_they_are_at() {
        let tally = Tally::default();
        tally.accepted(true);
        tally.accepted(false);
        tally.request();
        // One in its handshake, one between two requests, one with two streams.
        tally.look([(0, 0), (3, 0), (5, 2)].into_iter(), 7);
        let (active, reading, writing, waiting) = (3, 1, 2, 1);
        let now = Connections {
            accepted: 2,
            refused: 1,
            requests: 1,
            active,
            reading,
            writing,
            waiting,
            idle_upstream: 7,
        };
        assert_eq!(Connections::of([&tally].into_iter()), now);
    }
}
