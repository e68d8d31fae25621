//! One try over HTTP/1.

use super::{Connection, Failed, Head, Outgoing, Pool, Target, Try, TryError};
use crate::http::{Body, BodyError, Frame, Interim, Length, Response, Source};
use crate::http1::{
    BadResponse, Decoder, Framing, ResponseHead, has_bare_newline, head_end, parse_response, write,
};
use crate::io::Io;
use crate::outbox::Outbox;
use bytes::{Buf, Bytes, BytesMut};
use http::{Method, StatusCode};
use model::policy::Timeouts;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Interim answers (1xx) that an upstream may send before its answer.
const INTERIM: usize = 16;

/// Sends a request over a kept or a new connection.
pub(super) async fn send(
    pool: &Rc<Pool>,
    target: &Target,
    request: &mut Outgoing<'_>,
    journal: &Rc<Try>,
) -> Result<Response, Failed> {
    let Timeouts { connect, .. } = request.policy.timeouts;
    let kept = pool.take(target, !request.method.is_idempotent());
    let reused = kept.is_some();
    let mut connection = match kept {
        Some(connection) => connection,
        // Boxed: what a handshake needs is not for those who find a connection.
        None => Box::pin(Connection::open(target, connect)).await.map_err(|error| Failed {
            error,
            sent: false,
            refused: false,
            reused: false,
        })?,
    };
    journal.connected(reused);
    connection.requests += 1;
    let Head::Http1(head) = request.head.clone() else {
        let error = TryError::InvalidHeader;
        return Err(Failed { error, sent: false, refused: false, reused });
    };
    let mut exchange = Exchange::new(connection, head, request);
    let answer = exchange.run().await;
    let whole = exchange.sent;
    let connection = exchange.connection;
    let head = answer.map_err(|error| Failed { error, sent: true, refused: false, reused })?;
    journal.answered(head.status.as_u16());
    Ok(answered(pool, connection, head, whole, request, journal))
}

/// A request on its way out while its answer may come in.
struct Exchange<'a, 'r> {
    connection: Connection,
    outbox: Outbox,
    method: &'a Method,
    body: &'r mut Body,
    chunked: bool,
    upgrade: bool,
    /// Everything is in the outbox.
    queued: bool,
    sent: bool,
    interim: usize,
    pass_on: &'a dyn Fn(Interim),
    timeouts: Timeouts,
    limit: usize,
}

impl<'a, 'r> Exchange<'a, 'r> {
    fn new(connection: Connection, head: Bytes, request: &'r mut Outgoing<'a>) -> Self {
        let mut outbox = Outbox::default();
        outbox.push(head);
        let request_is_empty = request.body.is_empty();
        Self {
            connection,
            outbox,
            method: request.method,
            chunked: request.body.length() == Length::Unknown,
            body: request.body,
            upgrade: request.upgrade,
            queued: request_is_empty,
            sent: false,
            interim: 0,
            pass_on: request.interim,
            timeouts: request.policy.timeouts,
            limit: request.policy.body.response_header,
        }
    }

    async fn run(&mut self) -> Result<ResponseHead, TryError> {
        let mut unsent = usize::MAX;
        let mut armed = false;
        poll_fn(|cx| {
            if !self.sent {
                match self.poll_send(cx) {
                    Poll::Ready(Ok(())) => {
                        self.sent = true;
                        armed = false;
                    }
                    Poll::Ready(Err(error @ TryError::RequestBody(_))) => {
                        return Poll::Ready(Err(error));
                    }
                    // The upstream may have answered before it stopped reading.
                    Poll::Ready(Err(_)) | Poll::Pending => {}
                }
            }
            if let Poll::Ready(head) = self.poll_head(cx) {
                return Poll::Ready(head);
            }
            let writing = self.outbox.remaining();
            if !self.sent && writing == 0 {
                // The client's own time-outs govern.
                return Poll::Pending;
            }
            if !armed || writing < unsent {
                (armed, unsent) = (true, writing);
                self.connection.timer.reset(if self.sent {
                    self.timeouts.read
                } else {
                    self.timeouts.send
                });
            }
            let step =
                if self.sent { "reading the head of the answer" } else { "sending the request" };
            self.connection.timer.poll(cx).map(|_| Err(TryError::Timeout(step)))
        })
        .await
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TryError>> {
        loop {
            if !self.queued && self.outbox.remaining() < COALESCED {
                match self.body.poll_frame(cx).map_err(TryError::RequestBody)? {
                    Poll::Ready(frame) => {
                        self.queued = self.push(frame);
                        continue;
                    }
                    Poll::Pending if !self.outbox.has_remaining() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            let written = self.connection.io.poll_write_all(cx, &mut self.outbox);
            ready!(written).map_err(|_| TryError::Closed)?;
            if self.queued {
                let flushed = self.connection.io.poll_flush_all(cx);
                return flushed.map_err(|_| TryError::Closed);
            }
        }
    }

    /// Queues a piece of the body; whether it was the last.
    fn push(&mut self, frame: Option<Frame>) -> bool {
        match (frame, self.chunked) {
            (Some(Frame::Data(data)), true) => {
                self.outbox.push(write::chunk_line(data.len()));
                self.outbox.push(data);
                self.outbox.push(&b"\r\n"[..]);
            }
            (Some(Frame::Data(data)), false) => self.outbox.push(data),
            (Some(Frame::Trailers(trailers)), true) => {
                self.outbox.push(write::last_chunk(Some(&trailers)));
                return true;
            }
            (None, true) => {
                self.outbox.push(write::last_chunk(None));
                return true;
            }
            (Some(Frame::Trailers(_)) | None, false) => return true,
        }
        !self.chunked && self.body.is_empty()
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHead, TryError>> {
        loop {
            let Connection { io, buffer, .. } = &mut self.connection;
            match head_end(buffer, 0) {
                Some(end) if end > self.limit => return Poll::Ready(Err(TryError::InvalidHeader)),
                Some(end) => {
                    let head = buffer.split_to(end).freeze();
                    let head = parse_response(&head, self.method);
                    match self.judge(head.map_err(|BadResponse| TryError::InvalidHeader)?) {
                        Ok(None) => continue,
                        Ok(Some(head)) => return Poll::Ready(Ok(head)),
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
                // A line that does not end in CR LF would keep us waiting for one that does.
                None if has_bare_newline(buffer) || buffer.len() > self.limit => {
                    return Poll::Ready(Err(TryError::InvalidHeader));
                }
                None => {}
            }
            match ready!(io.poll_read_head(cx, buffer)) {
                Ok(0) if buffer.is_empty() => return Poll::Ready(Err(TryError::Closed)),
                Ok(0) => return Poll::Ready(Err(TryError::InvalidHeader)),
                Ok(_) => {}
                Err(_) => return Poll::Ready(Err(TryError::Closed)),
            }
        }
    }

    /// Passes interim answers on; a change of protocols must have been asked for.
    fn judge(&mut self, head: ResponseHead) -> Result<Option<ResponseHead>, TryError> {
        if !head.status.is_informational() {
            return Ok(Some(head));
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return if self.upgrade { Ok(Some(head)) } else { Err(TryError::InvalidHeader) };
        }
        self.interim += 1;
        if self.interim > INTERIM {
            return Err(TryError::InvalidHeader);
        }
        // Whether the client shall go on with its body is not for the upstream to say: it gets that body in any case.
        if head.status != StatusCode::CONTINUE {
            (self.pass_on)(Interim { status: head.status, headers: head.headers });
        }
        Ok(None)
    }
}

/// Bytes gathered before they are written.
const COALESCED: usize = 64 << 10;

/// The answer as phases see it, its body still attached to the connection where there is one.
fn answered(
    pool: &Rc<Pool>,
    connection: Connection,
    head: ResponseHead,
    whole: bool,
    request: &Outgoing<'_>,
    journal: &Rc<Try>,
) -> Response {
    let mut response = Response {
        status: head.status,
        reason: Some(head.reason).filter(|reason| !reason.is_empty()),
        headers: head.headers,
        body: Body::empty(),
        source: Source::Upstream,
        announced_length: head.announced_length,
        close: false,
    };
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        let Connection { io, buffer, .. } = connection;
        response.body = Body::upgraded(Upgraded { io, buffer, idle: request.policy.timeouts.read });
        return response;
    }
    let keep = head.keep_alive && whole;
    let body = ResponseBody {
        connection: Some(connection),
        decoder: Decoder::new(head.framing),
        framing: head.framing,
        keep,
        read: request.policy.timeouts.read,
        waiting: false,
        pool: pool.clone(),
        journal: journal.clone(),
    };
    match head.framing {
        Framing::None | Framing::Length(0) => body.finish(),
        _ => response.body = Body::upstream(body),
    }
    response
}

/// A connection that stopped being HTTP.
#[derive(Debug)]
pub struct Upgraded {
    /// The bytes' way.
    pub io: Io,
    /// What came after the head.
    pub buffer: BytesMut,
    /// How long it may be silent in both directions (`proxy-read-timeout`).
    pub idle: Duration,
}

/// The body of an answer on its way in.
#[derive(Debug)]
pub struct ResponseBody {
    connection: Option<Connection>,
    decoder: Decoder,
    framing: Framing,
    keep: bool,
    read: Duration,
    /// The deadline for the next piece is set.
    waiting: bool,
    pool: Rc<Pool>,
    journal: Rc<Try>,
}

impl ResponseBody {
    pub(crate) fn length(&self) -> Length {
        match (&self.decoder, self.framing) {
            (Decoder::Done, _) => Length::Known(0),
            (Decoder::Length(remaining), _) => Length::Known(*remaining),
            _ => Length::Unknown,
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame>, BodyError>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Ok(None)) };
        loop {
            let frame = self.decoder.decode(&mut connection.buffer);
            match frame.map_err(|_| BodyError::Malformed)? {
                Some(Frame::Data(data)) => {
                    self.journal.received.set(self.journal.received.get() + data.len() as u64);
                    if self.decoder.is_done() {
                        self.release();
                    }
                    return Poll::Ready(Ok(Some(Frame::Data(data))));
                }
                Some(Frame::Trailers(trailers)) => {
                    self.release();
                    return Poll::Ready(Ok(Some(Frame::Trailers(trailers))));
                }
                None if self.decoder.is_done() => {
                    self.release();
                    return Poll::Ready(Ok(None));
                }
                None => {}
            }
            match connection.io.poll_read_body(cx, &mut connection.buffer, self.decoder.expected())
            {
                Poll::Ready(Ok(0)) if matches!(self.decoder, Decoder::Close) => {
                    self.decoder = Decoder::Done;
                    self.keep = false;
                }
                Poll::Ready(Ok(0) | Err(_)) => {
                    self.journal.end();
                    return Poll::Ready(Err(BodyError::Aborted));
                }
                Poll::Ready(Ok(_)) => self.waiting = false,
                Poll::Pending => {
                    if !std::mem::replace(&mut self.waiting, true) {
                        connection.timer.reset(self.read);
                    }
                    ready!(connection.timer.poll(cx));
                    self.journal.end();
                    return Poll::Ready(Err(BodyError::Timeout));
                }
            }
        }
    }

    /// The connection's part is over: it goes back to the pool if it can serve again.
    fn release(&mut self) {
        self.journal.end();
        if let Some(connection) = self.connection.take().filter(|_| self.keep) {
            self.pool.put(connection);
        }
    }

    /// Gives the connection back where no body is to come.
    fn finish(mut self) {
        self.release();
    }
}
