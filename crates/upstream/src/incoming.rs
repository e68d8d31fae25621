//! The connection that an answer comes in over, while the rest of its request may still go out.

use super::talk::{Sending, Upload};
use super::{Connection, Pool, Try, TryError};
use bytes::BytesMut;
use model::policy::Timeouts;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use wire::{BodyError, Control, Counted, Io, Pipe};

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
    /// Where counts what stays of it while nothing comes.
    book: Option<Rc<Control>>,
    counted: Option<Counted>,
}

impl Incoming {
    /// What comes after a head; the rest of the request goes on beside it.
    pub(super) fn new(
        mut connection: Box<Connection>,
        rest: Option<Box<Upload>>,
        timeouts: Timeouts,
        journal: Rc<Try>,
        book: Option<&Rc<Control>>,
    ) -> Self {
        let sending = rest.map(|rest| rest.go_on(connection.io.share(), timeouts.send));
        Self {
            connection,
            sending,
            whole: true,
            read: timeouts.read,
            waiting: false,
            journal,
            book: book.cloned(),
            counted: None,
        }
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
        matches!(*self.connection.io, Io::Plain(_)) && self.connection.buffer.is_empty()
    }

    /// Fills an empty pipe with up to `most` bytes; zero at the end of the connection.
    pub(super) fn poll_fill(
        &mut self,
        pipe: &mut Pipe,
        most: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, BodyError>> {
        self.poll_with(cx, |io, buffer, cx| {
            // Nothing more comes this way.
            *buffer = BytesMut::new();
            pipe.poll_fill(io, most, cx)
        })
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
        let outcome = read(io, buffer, cx);
        if outcome.is_pending() {
            Counted::keep(&mut self.counted, self.book.as_ref(), buffer.capacity());
        }
        match outcome {
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
        if self.whole {
            self.connection.io.handed_over();
        }
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
        if self.connection.io.unshare() {
            pool.put(self.connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Head, Outgoing, Pool, Target, Try, send};
    use bytes::Bytes;
    use http::Method;
    use model::policy::Policy;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use wire::{Body, Control, Frame, Length, Room};

    const SIZE: usize = 20_000;

    #[tokio::test]
    async fn what_a_body_keeps_while_nothing_comes_counts_and_is_given_back_once_it_can_be() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.expect("a connection");
            let _ = tcp.read(&mut [0; 1024]).await;
            tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("written");
            (tcp.write_all(&[b'x'; SIZE]).await.expect("written"), tcp)
        });
        let (pool, book) = (Rc::new(Pool::new(Arc::new(Room::new(9)))), Rc::<Control>::default());
        let mut outgoing = Outgoing {
            method: &Method::GET,
            head: Head::Http1(
                Bytes::from_static(b"GET / HTTP/1.1\r\n\r\n").into(),
                Length::Known(0),
            ),
            body: &mut Body::empty(),
            upgrade: false,
            interim: &|_| {},
            policy: &Policy::default(),
            whose: None,
            cause: Cause { hops: 0, book: Some(&book) },
        };
        let target = Target { address, tls: None };
        let answer = send(&pool, &target, &mut outgoing, &Rc::new(Try::new(address))).await;
        let mut body = answer.expect("it answers").body;
        let mut pieces: Vec<Bytes> = Vec::new();
        while pieces.iter().map(Bytes::len).sum::<usize>() < SIZE {
            let Ok(Some(Frame::Data(data))) = body.frame().await else { panic!("some data") };
            pieces.push(data);
        }
        let _connection = server.await.expect("no panic");
        let mut waits = || {
            let poll = body.poll_frame(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(poll, Poll::Pending));
            book.under_way.held()
        };
        let held = waits();
        assert!(held > 16 << 10, "{held}: a piece lies somewhere");
        drop(pieces);
        assert_eq!(waits(), 0);
        drop(body);
        assert_eq!(book.under_way.held(), 0);
    }
}
