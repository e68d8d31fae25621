//! One try over HTTP/1.

use super::connect::goes_on;
use super::incoming::Incoming;
use super::talk::{Coding, ReadHead, Talk, Upload};
use super::unfinished::Unfinished;
use super::{Connection, Failed, Head, Outgoing, Pool, Target, Try, TryError};
use bytes::BytesMut;
use http::{Method, StatusCode};
use model::policy::Timeouts;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use wire::http1::{
    BadResponse, Decoder, Framing, ResponseHead, cut_response, has_empty_line, head_end,
    mended_head, parse_response,
};
use wire::{
    Body, BodyError, BodySource, Control, Frame, Interim, Length, Pipe, Response, Source, Upgraded,
};

/// Interim answers (1xx) that an upstream may send before its answer.
const INTERIM: usize = 16;

/// Sends a request over a kept or a new connection.
pub(super) async fn send(
    pool: &Rc<Pool>,
    target: &Target,
    request: &mut Outgoing<'_>,
    journal: &Rc<Try>,
) -> Result<Response, Failed> {
    let timeouts = request.policy.timeouts;
    let kept = pool.take(target, request.whose, !request.method.is_idempotent());
    let reused = kept.is_some();
    let mut connection = match kept {
        Some(connection) => connection,
        // Boxed: what a handshake needs is not for those who find a connection.
        None => Box::pin(Connection::open(pool, target, request.whom(), timeouts.connect))
            .await
            .map_err(|error| Failed { error, sent: false, refused: false, reused: false })?,
    };
    goes_on(connection.own.as_ref(), request.cause.hops).map_err(|error| Failed {
        error,
        sent: false,
        refused: false,
        reused: false,
    })?;
    journal.connected(reused);
    journal.text.set(connection.text);
    connection.requests += 1;
    let Head::Http1(head, length) = request.head.take() else {
        let error = TryError::InvalidHeader;
        return Err(Failed { error, sent: false, refused: false, reused });
    };
    let coding = match length {
        Length::Known(0) => None,
        Length::Known(length) => Some(Coding::Plain(length)),
        Length::Unknown => Some(Coding::Chunked),
    };
    let heads = Heads {
        method: request.method,
        upgrade: request.upgrade,
        interim: 0,
        pass_on: request.interim,
        limit: request.policy.body.response_header,
        scanned: 0,
        unfinished: Unfinished::new(pool, request.whom()),
    };
    let body = coding.map(|coding| (&mut *request.body, coding));
    let mut talk = Talk::new(connection, head, body, timeouts, heads);
    let mut answer = talk.head().await;
    // What is left of a body would be taken for the other protocol.
    if matches!(&answer, Ok(head) if head.status == StatusCode::SWITCHING_PROTOCOLS)
        && !talk.is_sent()
    {
        answer = Err(TryError::InvalidHeader);
    }
    let head = answer.map_err(|error| Failed { error, sent: true, refused: false, reused })?;
    journal.answered(head.status.as_u16());
    let Talk { connection, upload: rest, .. } = talk;
    let incoming = (connection, request.cause.book);
    Ok(answered(pool, incoming, head, rest, timeouts, journal))
}

/// Finds the head of the answer, past interim ones.
struct Heads<'a> {
    method: &'a Method,
    upgrade: bool,
    interim: usize,
    pass_on: &'a dyn Fn(Interim),
    limit: usize,
    /// Bytes in which no end was found: a head that comes in many pieces is looked through once.
    scanned: usize,
    unfinished: Unfinished<'a>,
}

impl ReadHead for Heads<'_> {
    type Head = ResponseHead;

    fn poll_head(
        &mut self,
        connection: &mut Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, TryError>> {
        let Connection { io, buffer, .. } = connection;
        loop {
            if let Some(head) = self.take_head(buffer)? {
                match self.judge(head)? {
                    None => continue,
                    Some(head) => return Poll::Ready(Ok(head)),
                }
            }
            match ready!(io.poll_read_head(cx, buffer)) {
                // In the midst of a head, too (nginx: an `error`, no `invalid_header`).
                Ok(0) | Err(_) => return Poll::Ready(Err(TryError::Closed)),
                Ok(_) => {}
            }
        }
    }
}

impl Heads<'_> {
    /// Takes a whole head off the buffer, if there is one.
    #[inline]
    fn take_head(&mut self, buffer: &mut BytesMut) -> Result<Option<ResponseHead>, TryError> {
        // In one look, unless it comes in pieces or has something to judge in its lines, as what can be mended has.
        if self.scanned == 0
            && let Some(head) = cut_response(buffer, self.limit, self.method)
        {
            return head.map(Some).map_err(|BadResponse| TryError::InvalidHeader);
        }
        self.look_for_head(buffer)
    }

    #[inline(never)]
    fn look_for_head(&mut self, buffer: &mut BytesMut) -> Result<Option<ResponseHead>, TryError> {
        match head_end(buffer, self.scanned) {
            // What looks like its end may stand in a body, behind a head whose lines end with LF.
            Some(end) if end > self.limit && !has_empty_line(&buffer[..self.limit], 0) => {
                Err(TryError::HeadTooLarge(self.limit))
            }
            Some(end) => {
                let head = buffer.split_to(end).freeze();
                self.scanned = 0;
                match parse_response(&head, self.method) {
                    Ok(head) => Ok(Some(head)),
                    Err(BadResponse) => self.mended(&head, buffer).map(Some),
                }
            }
            None if buffer.is_empty() => Ok(None),
            // A line that does not end in CR LF would keep us waiting for one that does.
            None if has_empty_line(buffer, self.scanned) => {
                let head = buffer.split().freeze();
                self.scanned = 0;
                self.mended(&head, buffer).map(Some)
            }
            None if buffer.len() > self.limit => Err(TryError::HeadTooLarge(self.limit)),
            None => {
                self.scanned = buffer.len();
                self.unfinished.holds(buffer.capacity())?;
                Ok(None)
            }
        }
    }

    /// A head that is none as it stands; what lies behind its end goes back into the buffer.
    #[cold]
    fn mended(&self, bytes: &[u8], buffer: &mut BytesMut) -> Result<ResponseHead, TryError> {
        let (end, head) = mended_head(bytes).ok_or(TryError::InvalidHeader)?;
        if head.len() > self.limit {
            return Err(TryError::HeadTooLarge(self.limit));
        }
        let behind = buffer.split();
        buffer.extend_from_slice(&bytes[end..]);
        buffer.extend_from_slice(&behind);
        parse_response(&head, self.method).map_err(|BadResponse| TryError::InvalidHeader)
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

/// The answer as phases see it, its body still attached to the connection where there is one.
fn answered(
    pool: &Rc<Pool>,
    (mut connection, book): (Box<Connection>, Option<&Rc<Control>>),
    head: ResponseHead,
    rest: Option<Box<Upload>>,
    timeouts: Timeouts,
    journal: &Rc<Try>,
) -> Response {
    let mut response = Response {
        status: head.status,
        reason: head.reason,
        headers: head.headers,
        body: Body::empty(),
        source: Source::Upstream,
        announced_length: head.announced_length,
        close: false,
    };
    connection.answered(head.framing == Framing::None);
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        let Connection { io, buffer, place, .. } = *connection;
        let io = io.into_io();
        response.body = Body::upgraded(Upgraded { io, buffer, idle: timeouts.read, place });
        return response;
    }
    if matches!(head.framing, Framing::None | Framing::Length(0)) {
        journal.end();
        // Who has answered without having the whole request gets no other one.
        if head.keep_alive && rest.is_none() {
            pool.put(connection);
        }
        return response;
    }
    if let (Framing::Length(length), None) = (head.framing, &rest)
        && connection.buffer.len() as u64 >= length
    {
        // All of it came with the head: the connection is free at once.
        let body = connection.buffer.split_to(length as usize).freeze();
        journal.received.set(length);
        journal.end();
        if head.keep_alive {
            pool.put(connection);
        }
        response.body = Body::full(body);
        return response;
    }
    response.body = Body::from_source(ResponseBody {
        incoming: Some(Incoming::new(connection, rest, timeouts, journal.clone(), book)),
        decoder: Decoder::new(head.framing),
        framing: head.framing,
        pool: Some(pool.clone()).filter(|_| head.keep_alive),
    });
    response
}

/// The body of an answer on its way in.
#[derive(Debug)]
struct ResponseBody {
    /// None once the answer is over.
    incoming: Option<Incoming>,
    decoder: Decoder,
    framing: Framing,
    /// Where the connection goes afterwards, if it can serve again.
    pool: Option<Rc<Pool>>,
}

impl BodySource for ResponseBody {
    fn length(&self) -> Length {
        match (&self.decoder, self.framing) {
            (Decoder::Done, _) => Length::Known(0),
            (Decoder::Length(remaining), _) => Length::Known(*remaining),
            _ => Length::Unknown,
        }
    }

    fn unseen(&self) -> u64 {
        match (&self.decoder, &self.incoming) {
            (Decoder::Length(remaining), Some(incoming)) if incoming.is_unseen() => *remaining,
            _ => 0,
        }
    }

    fn poll_fill(&mut self, pipe: &mut Pipe, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        let (Decoder::Length(remaining), Some(incoming)) = (&mut self.decoder, &mut self.incoming)
        else {
            return Poll::Ready(Err(BodyError::Aborted));
        };
        let count = ready!(incoming.poll_fill(pipe, *remaining, cx))?;
        incoming.goes_on();
        if count == 0 {
            incoming.break_off();
            return Poll::Ready(Err(BodyError::Aborted));
        }
        incoming.received(count);
        *remaining -= count as u64;
        if *remaining == 0 {
            self.decoder = Decoder::Done;
            self.release();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(Ok(None)) };
        loop {
            let frame = self.decoder.decode(incoming.buffer());
            let frame = frame.map_err(|_| BodyError::Malformed)?;
            if let Some(Frame::Data(data)) = &frame {
                incoming.received(data.len());
            }
            if self.decoder.is_done() {
                self.release();
                return Poll::Ready(Ok(frame));
            }
            if frame.is_some() {
                return Poll::Ready(Ok(frame));
            }
            let read = ready!(incoming.poll_read(cx, self.decoder.expected()))?;
            incoming.goes_on();
            if read == 0 {
                if !matches!(self.decoder, Decoder::Close) {
                    incoming.break_off();
                    return Poll::Ready(Err(BodyError::Aborted));
                }
                self.decoder = Decoder::Done;
            }
        }
    }
}

impl ResponseBody {
    /// The connection's part is over.
    fn release(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            incoming.end(self.pool.as_deref());
        }
    }
}
