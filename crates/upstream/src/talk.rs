//! Sends a request over a connection while its answer may come in already, for protocols with one request at a time.
//! Both sides may speak at once: an upstream that answers early still gets the rest of the body.

use super::sent::Sent;
use super::{Connection, TryError};
use bytes::{Buf, Bytes};
use model::policy::Timeouts;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::JoinHandle;
use wire::http1::write;
use wire::{Body, BodyError, Frame, Io, Outbox, Timer, Written, lane};

/// Bytes gathered before they are written.
const COALESCED: usize = 64 << 10;

/// How a body is cut up on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// As it is: its length was said, of which so much is left.
    Plain(u64),
    /// In chunks.
    Chunked,
    /// In records of FastCGI.
    Stdin,
}

/// What finds the head of an answer.
pub(super) trait ReadHead {
    /// The head.
    type Head;

    /// Reads up to the end of the head.
    fn poll_head(
        &mut self,
        connection: &mut Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Head, TryError>>;
}

/// A request on its way out while its answer may come in.
pub(super) struct Talk<A> {
    pub(super) connection: Box<Connection>,
    pub(super) answer: A,
    /// The head of a request without a body until it is sent, mostly at one go.
    first: Option<Written>,
    pub(super) upload: Option<Box<Upload>>,
    timeouts: Timeouts,
}

impl<A: ReadHead> Talk<A> {
    /// A request with this head. Its body is taken, if there is one to send.
    #[inline(always)]
    pub(super) fn new(
        mut connection: Box<Connection>,
        head: Written,
        body: Option<(&mut Body, Coding)>,
        timeouts: Timeouts,
        answer: A,
    ) -> Self {
        let (first, upload) = match body {
            None => (Some(head), None),
            Some((body, coding)) => {
                connection.io.begins();
                let body = Some((std::mem::replace(body, Body::empty()), coding));
                let upload = Upload { body, ..Upload::of(head.freeze(), Sent::default()) };
                (None, Some(Box::new(upload)))
            }
        };
        Self { connection, answer, first, upload, timeouts }
    }

    /// The head of the answer.
    pub(super) async fn head(&mut self) -> Result<A::Head, TryError> {
        let Self { connection, answer, first, upload, timeouts } = self;
        let mut waiting = false;
        poll_fn(|cx| {
            if let Some(head) = first.take() {
                *upload = Upload::unless_sent(&head, &mut connection.io, cx);
            } else if let Some(sending) = upload {
                match sending.poll(&mut connection.io, cx) {
                    Poll::Ready(Ok(())) => {
                        connection.io.handed_over();
                        *upload = None;
                    }
                    Poll::Ready(Err(error @ TryError::RequestBody(_))) => {
                        return Poll::Ready(Err(error));
                    }
                    // The upstream may have answered before it stopped reading.
                    Poll::Ready(Err(_)) | Poll::Pending => {}
                }
            }
            if let Poll::Ready(head) = answer.poll_head(connection, cx) {
                return Poll::Ready(head);
            }
            if let Some(sending) = upload {
                return sending.poll_late(&connection.timer, timeouts.send, cx).map(Err);
            }
            if !std::mem::replace(&mut waiting, true) {
                connection.timer.reset(timeouts.read);
            }
            let late = connection.timer.poll(cx);
            late.map(|_| Err(TryError::Timeout("reading the head of the answer")))
        })
        .await
    }

    /// Whether all of the request was sent.
    pub(super) fn is_sent(&self) -> bool {
        self.first.is_none() && self.upload.is_none()
    }
}

/// A request, as far as it was not sent yet.
#[derive(Debug)]
pub(super) struct Upload {
    outbox: Outbox,
    /// What is not in the outbox yet; none once all of it is.
    body: Option<(Body, Coding)>,
    /// What the upstream took.
    sent: Sent,
}

impl Upload {
    /// What is left of a head.
    fn of(head: Bytes, sent: Sent) -> Self {
        let mut outbox = Outbox::default();
        outbox.push(head);
        Self { outbox, body: None, sent }
    }

    /// Sends a head that no body follows; what is left is sent later, as any other request, and so is what failed: the
    /// upstream may have answered before it stopped reading.
    #[inline]
    fn unless_sent(head: &[u8], io: &mut Io, cx: &mut Context<'_>) -> Option<Box<Self>> {
        let mut left = head;
        if let Poll::Ready(Ok(())) = io.poll_write_all(cx, &mut left)
            && let Poll::Ready(Ok(())) = io.poll_flush_all(cx)
        {
            return None;
        }
        let mut sent = Sent::default();
        sent.took(head.len() - left.len());
        Some(Box::new(Self::of(Bytes::copy_from_slice(left), sent)))
    }

    /// Sends what there is; ready when all of it is gone.
    fn poll(&mut self, io: &mut Io, cx: &mut Context<'_>) -> Poll<Result<(), TryError>> {
        loop {
            if let Some((body, coding)) = &mut self.body
                && self.outbox.remaining() < COALESCED
            {
                match body.poll_frame(cx).map_err(TryError::RequestBody)? {
                    Poll::Ready(frame) => {
                        let last = push(&mut self.outbox, frame, coding)?;
                        if last || (matches!(coding, Coding::Plain(_)) && body.is_empty()) {
                            coding.ends()?;
                            self.body = None;
                        }
                        continue;
                    }
                    Poll::Pending if !self.outbox.has_remaining() => {
                        ready!(io.poll_flush_all(cx)).map_err(|_| TryError::Closed)?;
                        return Poll::Pending;
                    }
                    Poll::Pending => {}
                }
            }
            let before = self.outbox.remaining();
            let written = io.poll_write_all(cx, &mut self.outbox);
            self.sent.took(before - self.outbox.remaining());
            ready!(written).map_err(|_| TryError::Closed)?;
            if self.body.is_none() {
                return io.poll_flush_all(cx).map_err(|_| TryError::Closed);
            }
        }
    }

    /// Ready when the upstream takes nothing for longer than `limit`.
    fn poll_late(
        &mut self,
        timer: &Timer,
        limit: Duration,
        cx: &mut Context<'_>,
    ) -> Poll<TryError> {
        let waits = self.outbox.has_remaining() || self.body.is_none();
        self.sent.poll_late(waits, timer, limit, cx)
    }

    /// Goes on beside the answer, with another handle on its connection.
    pub(super) fn go_on(mut self: Box<Self>, mut io: Io, limit: Duration) -> Sending {
        Sending(tokio::task::spawn_local(lane::in_turn(async move {
            let timer = Timer::new(limit);
            poll_fn(|cx| match self.poll(&mut io, cx) {
                Poll::Ready(sent) => Poll::Ready(sent),
                Poll::Pending => self.poll_late(&timer, limit, cx).map(Err),
            })
            .await
        })))
    }
}

/// The body is not as long as was said: what is missing would be taken off the next request of the connection, and
/// what is too much for one.
const NOT_AS_SAID: TryError = TryError::RequestBody(BodyError::Malformed);

impl Coding {
    /// The body is at its end.
    fn ends(self) -> Result<(), TryError> {
        if matches!(self, Self::Plain(1..)) { Err(NOT_AS_SAID) } else { Ok(()) }
    }
}

/// Queues a piece of a body; whether it was the last.
fn push(outbox: &mut Outbox, frame: Option<Frame>, coding: &mut Coding) -> Result<bool, TryError> {
    match (frame, coding) {
        (Some(Frame::Data(data)), Coding::Plain(left)) => {
            *left = left.checked_sub(data.len() as u64).ok_or(NOT_AS_SAID)?;
            outbox.push(data);
        }
        (Some(Frame::Data(data)), Coding::Chunked) => write::chunk(outbox, data),
        (Some(Frame::Data(data)), Coding::Stdin) => super::fastcgi::stdin(data, outbox),
        // Trailers of a request end here, as in nginx: merged into the head they would say what heads may not.
        (Some(Frame::Trailers(_)), _) => {}
        (None, Coding::Plain(_)) => return Ok(true),
        (None, Coding::Chunked) => {
            outbox.push(write::last_chunk(None));
            return Ok(true);
        }
        (None, Coding::Stdin) => {
            super::fastcgi::end_of_stdin(outbox);
            return Ok(true);
        }
    }
    Ok(false)
}

/// The rest of a request on its way out while its answer comes in. It stops when this is dropped.
#[derive(Debug)]
pub(super) struct Sending(JoinHandle<Result<(), TryError>>);

impl Sending {
    /// How it ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TryError>> {
        Pin::new(&mut self.0).poll(cx).map(|ended| ended.unwrap_or(Err(TryError::Closed)))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cause, Head, Outgoing, Pool, Target, Try, TryError, send};
    use bytes::Bytes;
    use http::Method;
    use model::policy::Policy;
    use std::net::Ipv4Addr;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use wire::{Body, BodyError, BodySource, Frame, Length, Room};

    /// A body of these pieces, the last one first.
    #[derive(Debug)]
    struct Pieces(Vec<&'static [u8]>);

    impl BodySource for Pieces {
        fn poll_frame(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
            Poll::Ready(Ok(self.0.pop().map(|piece| Frame::Data(Bytes::from_static(piece)))))
        }

        fn length(&self) -> Length {
            Length::Unknown
        }
    }

    /// An upstream that answers once what came ends like this; all that came, and what became of the question.
    async fn asked(
        method: Method,
        head: (Bytes, Length),
        mut body: Body,
        end: &[u8],
    ) -> (Result<u16, TryError>, Vec<u8>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let upstream = async {
            let (mut tcp, _) = listener.accept().await.expect("a connection");
            let mut came = Vec::new();
            while !came.ends_with(end) {
                if tcp.read_buf(&mut came).await.is_ok_and(|count| count == 0) {
                    break;
                }
            }
            let answered = tcp.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            drop(answered);
            came
        };
        let asking = async {
            let mut outgoing = Outgoing {
                method: &method,
                head: Head::Http1(head.0.into(), head.1),
                body: &mut body,
                upgrade: false,
                interim: &|_| {},
                policy: &Policy::default(),
                whose: None,
                cause: Cause::default(),
            };
            let target = Target { address, tls: None };
            let pool = Rc::new(Pool::new(Arc::new(Room::new(9))));
            let journal = Rc::new(Try::new(address));
            let answer = send(&pool, &target, &mut outgoing, &journal).await;
            answer.map(|answer| answer.status.as_u16()).map_err(|failed| failed.error)
        };
        tokio::join!(asking, upstream)
    }

    #[tokio::test]
    async fn a_body_is_sent_that_is_as_long_as_its_head_says_and_no_other() {
        for (pieces, length) in [
            (&[&b"lo"[..], b"hel"][..], Ok(5)),
            (&[b"hel"], Err(3)),
            (&[b"lo, you", b"hel"], Err(3)),
            (&[b"hello, you"], Err(0)),
        ] {
            let head = Bytes::from_static(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n");
            let body = Body::from_source(Pieces(pieces.to_vec()));
            let head = (head, Length::Known(5));
            let (answer, came) = asked(Method::POST, head, body, b"\r\n\r\nhello").await;
            let start = came.windows(4).position(|part| part == b"\r\n\r\n");
            let came = came.len() - start.map_or(came.len(), |start| start + 4);
            match length {
                Ok(length) => assert!(answer.is_ok() && came == length, "{answer:?} {came}"),
                Err(most) => {
                    let error = answer.expect_err("it is not as long as was said");
                    let is_malformed = matches!(error, TryError::RequestBody(BodyError::Malformed));
                    assert!(is_malformed && came <= most, "{error} {came}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_head_without_a_body_is_sent_whole_however_much_goes_at_once() {
        for padding in [0, 8 << 20] {
            let head = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(padding));
            let sent = (Bytes::from(head.clone()), Length::Known(0));
            let (answer, came) = asked(Method::GET, sent, Body::empty(), b"\r\n\r\n").await;
            assert!(matches!(answer, Ok(204)) && came == head.as_bytes(), "{answer:?}");
        }
    }
}
