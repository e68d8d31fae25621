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

    /// A piece of an answer, held until it is gone.
    pub fn piece(self: &Rc<Self>, data: Bytes) -> Piece {
        self.control.backlog.hold(data.len());
        Piece { size: data.len(), moves: false, data, held: self.clone() }
    }
}

/// A piece of an answer; it counts until it is dropped.
#[derive(Debug)]
pub struct Piece {
    data: Bytes,
    size: usize,
    moves: bool,
    held: Rc<Held>,
}

impl Piece {
    /// Cuts off the first `at` bytes to send them.
    pub fn send_off(&mut self, at: usize) -> Self {
        self.size -= at;
        self.held.moving.set(self.held.moving.get() + at);
        Self { data: self.data.split_to(at), size: at, moves: true, held: self.held.clone() }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let Held { control, moving, waiting } = &*self.held;
        // What a reset threw away was not taken.
        let left = if self.moves { self.data.remaining() } else { self.size };
        control.backlog.release(self.size - left);
        control.backlog.forget(left);
        if self.moves {
            moving.set(moving.get() - self.size);
        }
        // All are woken, in the order in which they came: not for every piece.
        if control.backlog.held() < MOST / 2 || moving.get() < MOVING / 2 {
            waiting.take().into_iter().for_each(Waker::wake);
        }
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
    use super::{Held, LIVELY, MOST, MOVING};
    use crate::Control;
    use bytes::Bytes;
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
