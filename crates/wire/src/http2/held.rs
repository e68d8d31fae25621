//! One budget for all the answers that a connection holds: upstreams are read as fast as the client takes what they
//! send, however many streams it opens.

use super::body::Pieces;
use crate::Control;
use bytes::{Buf, Bytes};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes held for a connection before its upstreams are read no further.
const MOST: usize = 1 << 20;
/// Where streams that their client lets wait hold all of that, others go on as long as no more than this is on its way,
const MOVING: usize = 128 << 10;
/// and so much of theirs could go at once: half of the smallest usual window, below which clients open it again.
pub const LIVELY: usize = 32 << 10;

/// Bytes of interim answers of one request.
const INTERIMS: usize = 64 << 10;

/// The budget of a connection.
#[derive(Debug)]
pub struct Held {
    control: Rc<Control>,
    /// Bytes that only wait for the system to take them; others wait for their stream's window.
    moving: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

impl Held {
    /// All of it, for a connection that begins.
    pub fn new(control: Rc<Control>) -> Rc<Self> {
        Rc::new(Self { control, moving: Cell::new(0), waiting: RefCell::default() })
    }

    /// Whether more may be held, whoever's it is.
    pub fn has_room(&self) -> bool {
        self.control.backlog.held() < MOST
    }

    /// Ready when another piece may be read for a stream, of which `capacity` bytes could go at once. Who waits gives
    /// back what `capacity` took of the connection's window.
    pub fn poll_room(
        &self,
        cx: &mut Context<'_>,
        capacity: impl FnOnce(&mut Context<'_>) -> usize,
    ) -> Poll<()> {
        if self.has_room() || (self.moving.get() < MOVING && capacity(cx) >= LIVELY) {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Wakes who waits, in the order in which they came: not for every piece.
    fn wake(&self) {
        if self.control.backlog.held() < MOST / 2 || self.moving.get() < MOVING / 2 {
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    /// A piece of an answer, held until it is gone.
    pub fn piece(self: &Rc<Self>, data: Bytes) -> Piece {
        self.control.backlog.hold(data.len());
        Piece { size: data.len(), moves: false, data, lead: None, held: self.clone() }
    }

    /// A long head of an answer, held until the piece that it is given to is gone: nobody tells when heads are, and
    /// they wait for no window.
    pub fn lead(self: &Rc<Self>, size: usize) -> Lead {
        self.control.backlog.hold(size);
        Lead { size, held: self.clone() }
    }

    /// Whether one more interim answer of this size may go, of a stream of which so many bytes went before. They count
    /// as its request's until [`Self::give_back`].
    pub fn takes_interim(&self, before: &Cell<usize>, size: usize) -> bool {
        let all = before.get() + size;
        let takes = all <= INTERIMS && self.has_room();
        if takes {
            self.control.under_way.hold(size);
            before.set(all);
        }
        takes
    }

    /// The stream with interim answers of this size is over.
    pub fn give_back(&self, interims: usize) {
        self.control.under_way.release(interims);
    }
}

/// A long head that is on its way.
#[derive(Debug)]
pub struct Lead {
    size: usize,
    held: Rc<Held>,
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.held.control.backlog.release(self.size);
        self.held.wake();
    }
}

/// A piece of an answer; it counts until it is dropped.
#[derive(Debug)]
pub struct Piece {
    data: Bytes,
    size: usize,
    moves: bool,
    lead: Option<Lead>,
    held: Rc<Held>,
}

impl Piece {
    /// Lets a head go with it.
    pub fn led_by(mut self, lead: Option<Lead>) -> Self {
        self.lead = lead;
        self
    }

    /// Cuts off the first `at` bytes to send them.
    pub fn send_off(&mut self, at: usize) -> Self {
        self.size -= at;
        self.held.moving.set(self.held.moving.get() + at);
        let lead = self.lead.take();
        Self { data: self.data.split_to(at), size: at, moves: true, lead, held: self.held.clone() }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let Held { control, moving, .. } = &*self.held;
        // What a reset threw away was not taken.
        let left = if self.moves { self.data.remaining() } else { self.size };
        control.backlog.release(self.size - left);
        control.backlog.forget(left);
        if self.moves {
            moving.set(moving.get() - self.size);
        }
        self.held.wake();
    }
}

impl Pieces for Piece {
    fn cut(&mut self, at: usize) -> Self {
        self.send_off(at)
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.data.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.data
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, INTERIMS, LIVELY, MOST, MOVING};
    use crate::Control;
    use bytes::Bytes;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::task::{Context, Waker};

    #[tokio::test]
    async fn a_full_budget_stops_all_streams_but_one_that_its_client_takes_from() {
        let held = Held::new(Rc::<Control>::default());
        let has_room = |capacity| {
            let mut cx = Context::from_waker(Waker::noop());
            held.poll_room(&mut cx, |_| capacity).is_ready()
        };
        let mut stalled = held.piece(Bytes::from(vec![0; MOST]));
        assert!(!has_room(LIVELY - 1) && has_room(LIVELY));
        let moving = stalled.send_off(MOVING);
        assert!(!has_room(LIVELY), "the client takes nothing at all");
        drop(moving);
        assert!(has_room(0));
        drop(stalled);
        assert_eq!((held.control.backlog.held(), held.moving.get()), (0, 0));
    }

    #[tokio::test]
    async fn a_long_head_is_held_until_what_comes_behind_it_is_gone() {
        let control = Rc::<Control>::default();
        let held = Held::new(control.clone());
        let mut piece = held.piece(Bytes::from_static(b"body")).led_by(Some(held.lead(1000)));
        assert_eq!(control.backlog.held(), 1004);
        let first = piece.send_off(2);
        drop(piece);
        assert_eq!(control.backlog.held(), 1002);
        drop(first);
        assert_eq!(control.backlog.held(), 0);
    }

    #[tokio::test]
    async fn interim_answers_of_a_stream_have_a_bound_and_none_goes_where_much_lies() {
        let control = Rc::<Control>::default();
        let (held, went) = (Held::new(control.clone()), Cell::new(0));
        assert!(held.takes_interim(&went, INTERIMS) && !held.takes_interim(&went, 1));
        assert_eq!(control.under_way.held(), INTERIMS);
        held.give_back(went.take());
        assert_eq!(control.under_way.held(), 0);
        let _all = held.piece(Bytes::from(vec![0; MOST]));
        assert!(!held.takes_interim(&went, 1));
    }

    #[tokio::test]
    async fn who_waits_for_room_is_woken_once_half_of_it_is_free() {
        let held = Held::new(Rc::<Control>::default());
        let mut all = held.piece(Bytes::from(vec![0; MOST]));
        let all_of_it: Vec<_> = (0..16).map(|_| all.send_off(MOST / 16)).collect();
        let tasks = tokio::task::LocalSet::new();
        let waiting = tasks.run_until(async {
            let room = std::future::poll_fn(|cx| held.poll_room(cx, |_| LIVELY));
            tokio::task::spawn_local(async move { drop(all_of_it) });
            room.await;
        });
        tokio::time::timeout(std::time::Duration::from_secs(10), waiting)
            .await
            .expect("it is woken");
        assert_eq!(held.control.backlog.held(), 0);
    }
}
