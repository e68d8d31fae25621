//! How the process speaks with the task of a connection: it asks it to end, more or less politely, and looks at what it
//! holds.

use crate::backlog::Backlog;
use crate::owed::Owed;
use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};
use std::time::Duration;

/// How long the system keeps what a client does not take of answers, once its connection has ended (docs/limits.md).
pub(crate) const UNHURRIED: Duration = Duration::from_secs(30);
/// The same where memory or places were scarce.
const HURRIED: Duration = Duration::from_secs(10);

/// What the process tells a client's connection, and what it knows of it.
#[derive(Debug, Default)]
pub struct Control {
    closing: Cell<bool>,
    over: Cell<bool>,
    cut: Cell<bool>,
    resets: Cell<bool>,
    hurries: Cell<bool>,
    /// What it holds of answers.
    pub backlog: Backlog,
    /// What it waits for of requests.
    pub owed: Owed,
    /// What its requests under way hold: heads over HTTP/2 with all that goes with a stream, and encoders.
    pub under_way: Backlog,
    /// Bytes of that which are encoders'.
    pub encoders: Cell<u64>,
    /// Bytes of its last head over HTTP/1, where there is one at a time; with what TLS holds while one is not whole.
    pub head: Cell<usize>,
    /// While its next head has begun and is not whole, or TLS holds something: one, and one more for each look of the
    /// process since then. Else 0.
    pub unfinished: Cell<u8>,
    /// Bytes of the certificates that its client has shown, each of which is in memory twice.
    pub certificates: Cell<usize>,
    waker: RefCell<Option<Waker>>,
}

impl Control {
    /// Looks how long it has been sending a head.
    pub fn look_at_head(&self) {
        let looks = self.unfinished.get();
        self.unfinished.set(if looks == 0 { 0 } else { looks.saturating_add(1) });
    }

    /// Asks the connection to end: at once if idle, else after the request it is busy with.
    pub fn close_when_idle(&self) {
        // It is asked time and again.
        if !self.closing.replace(true) {
            self.wake();
        }
    }

    /// The same where memory or places are scarce: the system keeps for little time what its client does not take.
    pub fn make_way(&self) {
        self.hurries.set(true);
        self.close_when_idle();
    }

    /// How long a client may take nothing of what is sent once its connection has ended.
    pub(crate) fn waits_for_the_last(&self) -> Duration {
        if self.hurries.get() { HURRIED } else { UNHURRIED }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Whether it was asked to end.
    pub fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Says that there is no more time: whoever can take leave in a word does so now.
    pub fn end(&self) {
        self.closing.set(true);
        if !self.over.replace(true) {
            self.wake();
        }
    }

    /// Ends it at once, whatever it is busy with.
    pub fn cut(&self) {
        self.closing.set(true);
        if !self.cut.replace(true) {
            self.wake();
        }
    }

    /// The same, and what the system keeps for it goes at once, too: of a connection that is closed it keeps what the
    /// client does not take, for minutes.
    pub fn reset(&self) {
        self.resets.set(true);
        self.cut();
    }

    /// Whether it is to end with a reset.
    pub fn resets(&self) -> bool {
        self.resets.get()
    }

    /// Whether it was asked to end; the task is woken when it is.
    pub fn poll_closing(&self, cx: &Context<'_>) -> bool {
        self.poll_set(&self.closing, cx)
    }

    /// Whether there is no more time; who waits for [`Self::poll_cut`] is woken when that is so, too.
    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Whether it must end at once; the task is woken when that is so.
    pub fn poll_cut(&self, cx: &Context<'_>) -> bool {
        self.poll_set(&self.cut, cx)
    }

    fn poll_set(&self, flag: &Cell<bool>, cx: &Context<'_>) -> bool {
        if flag.get() {
            return true;
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        false
    }
}
