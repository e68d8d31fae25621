//! Work of many pieces, on a thread that shares its core with whoever serves requests.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// Work without a break at most.
const PIECE: Duration = Duration::from_micros(500);
/// What breaks may cost in a second: where others have work all the time, each break is as long as their turn.
const COST: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);

/// The breaks that a thread has had.
#[derive(Clone, Copy, Debug)]
struct Breaks {
    /// When the last one ended.
    last: Instant,
    /// When the second began that is counted.
    since: Instant,
    /// What they cost in it.
    cost: Duration,
}

thread_local! {
    static BREAKS: Cell<Option<Breaks>> = const { Cell::new(None) };
}

/// Between two pieces of work: lets others on the same core go before it, once in a while. A thread that is nicer than
/// others has less of the core than they, but what it has it has for milliseconds in a row: Linux lets nobody go before
/// a thread whose slice has begun (`RUN_TO_PARITY`), whoever wakes up meanwhile.
pub fn between_pieces() {
    let now = Instant::now();
    let mut breaks = BREAKS.get().unwrap_or(Breaks { last: now, since: now, cost: Duration::ZERO });
    if breaks.is_due(now) {
        thread::yield_now();
        breaks.was(now, Instant::now());
    }
    BREAKS.set(Some(breaks));
}

impl Breaks {
    fn is_due(&mut self, now: Instant) -> bool {
        if now - self.since >= SECOND {
            (self.since, self.cost) = (now, Duration::ZERO);
        }
        now - self.last >= PIECE && self.cost < COST
    }

    fn was(&mut self, from: Instant, to: Instant) {
        self.last = to;
        self.cost += to - from;
    }
}

#[cfg(test)]
mod tests {
    use super::{Breaks, COST, Duration, Instant, PIECE, SECOND};

    #[test]
    fn breaks_are_seldom_and_cost_half_of_the_time_at_most() {
        let start = Instant::now();
        let mut breaks = Breaks { last: start, since: start, cost: Duration::ZERO };
        assert!(!breaks.is_due(start + PIECE / 2));
        // Whoever else is there needs a while each time.
        let (mut now, mut count) = (start, 0);
        while now + PIECE < start + SECOND {
            now += PIECE;
            if breaks.is_due(now) {
                breaks.was(now, now + COST / 5);
                (now, count) = (now + COST / 5, count + 1);
            }
        }
        assert_eq!(count, 5);
        assert!(breaks.is_due(start + 2 * SECOND), "each second has its own");
    }
}
