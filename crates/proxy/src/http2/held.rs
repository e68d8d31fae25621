//! One budget for all the answers that a connection holds: upstreams are read as fast as the client takes what they
//! send, however many streams it opens.

use crate::connection::Connection;
use bytes::{Buf, Bytes};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes held for a connection before its upstreams are read no further.
const MOST: usize = 1 << 20;
/// A stream whose client takes so much at once gets more all the same, while the connection moves: others that their
/// client lets wait must not stop it. It is half of the smallest usual window, below which clients open it again.
pub(super) const LIVELY: usize = 32 << 10;

/// The budget of a connection.
#[derive(Debug)]
pub(super) struct Held {
    connection: Rc<Connection>,
    /// The system takes no more bytes.
    stuck: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Held {
    pub(super) fn new(connection: Rc<Connection>) -> Rc<Self> {
        Rc::new(Self { connection, stuck: Cell::new(false), waiting: RefCell::default() })
    }

    /// Ready when another piece may be read for a stream, of which `capacity` bytes could go at once.
    pub(super) fn poll_room(
        &self,
        cx: &mut Context<'_>,
        capacity: impl FnOnce(&mut Context<'_>) -> usize,
    ) -> Poll<()> {
        let has_room = self.connection.backlog.held() < MOST;
        if has_room || (!self.stuck.get() && capacity(cx) >= LIVELY) {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Notes whether the system takes bytes.
    pub(super) fn is_stuck(&self, stuck: bool) {
        if self.stuck.replace(stuck) && !stuck {
            self.wake();
        }
    }

    /// A piece of an answer, held until it is gone.
    pub(super) fn piece(self: &Rc<Self>, data: Bytes) -> Piece {
        self.connection.backlog.hold(data.len());
        Piece { size: data.len(), data, held: self.clone() }
    }

    fn wake(&self) {
        self.waiting.take().into_iter().for_each(Waker::wake);
    }
}

/// A piece of an answer on its way; it counts until it is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    data: Bytes,
    size: usize,
    held: Rc<Held>,
}

impl Piece {
    /// Cuts off the first `at` bytes.
    pub(super) fn split_to(&mut self, at: usize) -> Self {
        self.size -= at;
        Self { data: self.data.split_to(at), size: at, held: self.held.clone() }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let backlog = &self.held.connection.backlog;
        backlog.release(self.size);
        // All are woken, in the order in which they came: not for every piece.
        if backlog.held() < MOST / 2 && !self.held.waiting.borrow().is_empty() {
            self.held.wake();
        }
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
    use super::{Held, LIVELY, MOST};
    use crate::connection::Connection;
    use bytes::Bytes;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::rc::Rc;
    use std::task::{Context, Waker};

    #[tokio::test]
    async fn a_full_budget_stops_all_streams_but_one_that_its_client_takes_from() {
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let held = Held::new(Rc::new(Connection::new(1, nobody, nobody, None, None)));
        let has_room = |capacity| {
            let mut cx = Context::from_waker(Waker::noop());
            held.poll_room(&mut cx, |_| capacity).is_ready()
        };
        let mut all = held.piece(Bytes::from(vec![0; MOST]));
        assert!(!has_room(LIVELY - 1) && has_room(LIVELY));
        held.is_stuck(true);
        assert!(!has_room(LIVELY), "the client takes nothing at all");
        drop(all.split_to(1));
        assert!(has_room(0));
        drop(all);
        assert_eq!(held.connection.backlog.held(), 0);
    }
}
