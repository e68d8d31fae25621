//! The connection that an answer comes in over, while the rest of its request may still go out.

use super::talk::{Sending, Upload};
use super::{Connection, Pool, Try, TryError};
use bytes::BytesMut;
use model::policy::Timeouts;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use wire::{BodyError, Io, Pipe};

/// The connection of an answer whose body is on its way in.
#[derive(Debug)]
pub(super) struct Incoming {
    connection: Box<Connection>,
    /// What goes on sending the request.
    sending: Option<Sending>,
    /// Whether all of the request reached the upstream, as far as is known.
    whole: bool,
    read: Duration,
    /// The deadline for the next piece is set.
    waiting: bool,
    journal: Rc<Try>,
}

impl Incoming {
    /// What comes after a head; the rest of the request goes on beside it.
    pub(super) fn new(
        connection: Box<Connection>,
        rest: Option<Upload>,
        timeouts: Timeouts,
        journal: Rc<Try>,
    ) -> Self {
        let (connection, sending) = match rest {
            None => (connection, None),
            Some(rest) => {
                let connection = *connection;
                let (io, other) = connection.io.shared();
                let connection = Box::new(Connection { io, ..connection });
                (connection, Some(rest.go_on(other, timeouts.send)))
            }
        };
        Self { connection, sending, whole: true, read: timeouts.read, waiting: false, journal }
    }

    /// What was read and not used yet.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.connection.buffer
    }

    /// Something of the answer came: what comes next has a deadline of its own.
    pub(super) fn goes_on(&mut self) {
        self.waiting = false;
    }

    /// Notes bytes of the body.
    pub(super) fn received(&self, count: usize) {
        self.journal.received.set(self.journal.received.get() + count as u64);
    }

    /// Notes what was written to the standard error of a FastCGI responder.
    pub(crate) fn complains(&self, data: &[u8]) {
        self.journal.complains(data);
    }

    /// Reads more; zero at the end of the connection. The deadline for it stays until the answer
    /// [goes on](Self::goes_on).
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        expected: usize,
    ) -> Poll<Result<usize, BodyError>> {
        self.poll_with(cx, |io, buffer, cx| io.poll_read_body(cx, buffer, expected))
    }

    /// Whether what comes next may be passed on without a look: over a connection in clear that nobody else has a
    /// handle on, and of which nothing was read ahead.
    pub(super) fn is_unseen(&self) -> bool {
        matches!(self.connection.io, Io::Plain(_)) && self.connection.buffer.is_empty()
    }

    /// Fills an empty pipe with up to `most` bytes; zero at the end of the connection.
    pub(super) fn poll_fill(
        &mut self,
        pipe: &mut Pipe,
        most: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, BodyError>> {
        self.poll_with(cx, |io, _, cx| pipe.poll_fill(io, most, cx))
    }

    /// Has `read` read something, within the time that there is for it. The try is over where that fails.
    fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Io, &mut BytesMut, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<Result<usize, BodyError>> {
        let read = self.poll_in_time(cx, read);
        if let Poll::Ready(Err(_)) = read {
            self.journal.end();
        }
        read
    }

    fn poll_in_time(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Io, &mut BytesMut, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<Result<usize, BodyError>> {
        self.look_after_sending(cx)?;
        let Connection { io, buffer, timer, .. } = &mut *self.connection;
        match read(io, buffer, cx) {
            Poll::Ready(Ok(count)) => Poll::Ready(Ok(count)),
            Poll::Ready(Err(_)) => Poll::Ready(Err(BodyError::Aborted)),
            // Whoever does not have the whole request yet need not answer.
            Poll::Pending if self.sending.is_some() => Poll::Pending,
            Poll::Pending => {
                if !std::mem::replace(&mut self.waiting, true) {
                    timer.reset(self.read);
                }
                ready!(timer.poll(cx));
                Poll::Ready(Err(BodyError::Timeout))
            }
        }
    }

    /// A request that broke off breaks its answer off. An upstream that takes no more of it may still answer.
    fn look_after_sending(&mut self, cx: &mut Context<'_>) -> Result<(), BodyError> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        let Poll::Ready(ended) = sending.poll(cx) else { return Ok(()) };
        self.sending = None;
        self.whole = ended.is_ok();
        match ended {
            Err(TryError::RequestBody(_)) => Err(BodyError::Aborted),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The answer breaks off.
    pub(super) fn break_off(&self) {
        self.journal.end();
    }

    /// The answer is over. Its connection goes back to the pool if it can serve again: not if the upstream has
    /// answered without having the whole request (nginx: the rest is not sent either).
    pub(super) fn end(mut self, pool: Option<&Pool>) {
        self.journal.end();
        let Some(pool) = pool else { return };
        // It may have ended since it was last asked.
        let ended = self.look_after_sending(&mut Context::from_waker(Waker::noop()));
        if ended.is_err() || self.sending.is_some() || !self.whole {
            return;
        }
        if !matches!(self.connection.io, Io::Shared(_)) {
            return pool.put(self.connection);
        }
        let connection = *self.connection;
        if let Some(io) = connection.io.unshared() {
            pool.put(Box::new(Connection { io, ..connection }));
        }
    }
}
