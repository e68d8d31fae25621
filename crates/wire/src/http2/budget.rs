//! Counts what an HTTP/2 peer sends besides requests or answers, where the h2 crate has no bound of its own: PING,
//! SETTINGS, WINDOW_UPDATE, PRIORITY, RST_STREAM and empty DATA (CVE-2019-9512, -9515, -9513, -9518), and answers
//! that a client asks for and does not want (docs/limits.md).

use std::cell::Cell;
use tokio::time::Instant;

/// What a connection may spend at once; a second gives some of it back, and useful traffic does, too.
const BUDGET: i64 = 1000;
const PER_SECOND: i64 = 100;
/// Useful bytes that earn one more frame; as many of no use cost one more.
pub(super) const EARNED_BY: i64 = 512;
/// What a request earns for the session that it goes out on.
const ASKED: i64 = 16;
/// What a piece of a body earns that went to the peer: as much as two windows, a PING, and as much again. gRPC in Go
/// answers each small message so, however many there are in a second. Earned for pieces and not for frames: with a
/// window of a byte the peer could make as many frames of one piece as it likes.
const SENT: i64 = 8;
/// Answers that a client may break off at once, and each second; one that it takes whole gives one back.
const RESETS: i64 = 200;
const RESETS_PER_SECOND: i64 = 5;

/// What is left of a connection's budget.
#[derive(Debug)]
pub struct Budget {
    left: Cell<i64>,
    refilled: Cell<Instant>,
    /// Answers that may still be broken off, and since when that number holds.
    resets: Cell<i64>,
    resets_at: Cell<Instant>,
}

impl Default for Budget {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            left: Cell::new(BUDGET),
            refilled: Cell::new(now),
            resets: Cell::new(RESETS),
            resets_at: Cell::new(now),
        }
    }
}

impl Budget {
    /// Whether the peer sent more than anyone needs.
    pub fn is_spent(&self) -> bool {
        self.left.get() < 0 || self.resets.get() < 0
    }

    /// A request goes out to the upstream.
    pub fn asked(&self) {
        self.earn(ASKED);
    }

    /// A piece of a body went to the peer.
    pub fn sent(&self) {
        self.earn(SENT);
    }

    /// The client took an answer whole.
    pub fn completed(&self) {
        self.resets.set((self.resets.get() + 1).min(RESETS));
    }

    /// The client broke off an answer that was being made: work for nothing, which the request itself does not pay for
    /// (rapid reset at any pace, CVE-2023-44487).
    pub fn reset(&self) {
        let seconds = self.resets_at.get().elapsed().as_secs();
        if seconds > 0 {
            self.resets_at.set(Instant::now());
        }
        let back = i64::try_from(seconds).unwrap_or(RESETS).saturating_mul(RESETS_PER_SECOND);
        self.resets.set(self.resets.get().saturating_add(back).min(RESETS) - 1);
    }

    pub(super) fn earn(&self, frames: i64) {
        self.left.set(self.left.get().saturating_add(frames).min(BUDGET));
    }

    /// Books what is of no use.
    pub fn spend(&self, cost: i64) {
        if self.left.get() < cost {
            let seconds = self.refilled.replace(Instant::now()).elapsed().as_secs();
            self.earn(i64::try_from(seconds).unwrap_or(0).saturating_mul(PER_SECOND));
        }
        self.left.set(self.left.get() - cost);
    }
}

#[cfg(test)]
mod tests {
    use super::{ASKED, BUDGET, Budget, RESETS, RESETS_PER_SECOND};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_broken_off_are_bounded_at_any_pace() {
        let budget = Budget::default();
        for _ in 0..RESETS {
            budget.reset();
        }
        assert!(!budget.is_spent(), "a browser leaves a page");
        budget.completed();
        budget.reset();
        assert!(!budget.is_spent(), "an answer that was taken gives one back");
        for _ in 0..2 * RESETS_PER_SECOND {
            tokio::time::advance(Duration::from_millis(200)).await;
            budget.reset();
        }
        assert!(!budget.is_spent(), "at this pace it may go on");
        let mut paced = 0;
        while !budget.is_spent() {
            tokio::time::advance(Duration::from_millis(100)).await;
            budget.reset();
            paced += 1;
        }
        assert!(paced <= 20, "{paced}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_earns_what_its_answer_may_cost() {
        let budget = Budget::default();
        budget.spend(BUDGET);
        budget.asked();
        assert_eq!(budget.left.get(), ASKED);
    }
}
