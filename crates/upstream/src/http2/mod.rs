//! One try over HTTP/2, as gRPC wants it: many requests share a session.

use super::sent::Sent;
use super::{Connection, Failed, Head, Outgoing, Pool, Target, Try, TryError};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use model::UpstreamKeepAlive;
use model::policy::Timeouts;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use stream::own::Own;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wire::http2::{BodyStream, Budget, Guarded, StreamBody, from_map, poll_send_data, to_map};
use wire::{Body, Frame, Loan, Response, Source, Timer, TrailerRule, lane};

/// Requests that share one session at most, whatever the upstream allows.
const STREAMS: u32 = 100;
/// How long a session may take to end that nobody uses any more.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long sessions stay beside another one that has room for all: a burst opens many at once.
const SPARE: Duration = Duration::from_secs(5);
/// Bytes of an answer that may come before its client takes any.
const WINDOW: u32 = 64 << 10;
/// Bytes of a streamed body that are kept until the upstream answers, for the case that it refuses the stream.
const KEPT: usize = 64 << 10;

/// An HTTP/2 connection to an endpoint.
#[derive(Debug)]
pub(super) struct Session {
    sender: SendRequest<Bytes>,
    since: Instant,
    used: Cell<Instant>,
    requests: Cell<u64>,
    /// One more than the requests in flight.
    load: Rc<Load>,
    /// Gone when the connection is.
    alive: Rc<Cell<bool>>,
    /// What the upstream may send that is of no use.
    budget: Rc<Budget>,
    /// It leads to this machine.
    own: Option<Own>,
    /// Its place among all connections towards upstreams.
    place: Rc<Loan>,
}

/// Says when nobody holds it any more: the pool has no such session, and no request is on it.
#[derive(Debug, Default)]
struct Load(Rc<Notify>);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Session {
    /// Its place.
    pub(super) fn place(&self) -> &Loan {
        &self.place
    }

    /// When it was used last.
    pub(super) fn used(&self) -> Instant {
        self.used.get()
    }

    /// Whether it was used just now, so that it may be again.
    pub(super) fn is_fresh(&self) -> bool {
        self.used.get().elapsed() < SPARE
    }

    /// Ends it for somebody who gets its place at once; what it still has to say goes out within a moment.
    pub(super) fn end(self) {
        self.place.give_back();
    }

    /// Whether it may go: broken, worn out, or idle for too long.
    pub(super) fn is_over(&self, limits: &UpstreamKeepAlive) -> bool {
        let idle = Rc::strong_count(&self.load) == 1 && self.used.get().elapsed() >= limits.idle;
        !self.alive.get() || idle || (self.is_worn(limits) && Rc::strong_count(&self.load) == 1)
    }

    fn is_worn(&self, limits: &UpstreamKeepAlive) -> bool {
        self.requests.get() >= limits.requests || self.since.elapsed() >= limits.age
    }

    /// Whether requests are on their way.
    pub(super) fn is_busy(&self) -> bool {
        Rc::strong_count(&self.load) > 1
    }

    fn has_room(&self) -> bool {
        self.alive.get()
            && Rc::strong_count(&self.load)
                <= (STREAMS as usize).min(self.sender.current_max_send_streams().max(1))
            && self.requests.get() < u64::from(u32::MAX >> 2)
    }
}

/// Sends a request over a shared session, or a new one.
pub(super) async fn send(
    pool: &Rc<Pool>,
    target: &Target,
    request: &mut Outgoing<'_>,
    journal: &Rc<Try>,
) -> Result<Response, Failed> {
    let fail = |error, sent, reused| {
        let refused = is_refused(&error);
        Failed { error, sent, refused, reused }
    };
    let mut taken = Taken::default();
    let timeouts = request.policy.timeouts;
    let (Lease { mut sender, load, alive, budget, own }, reused) = match shared(pool, target) {
        Some(lease) => (lease, true),
        None => (
            open(pool, target, request.whose, timeouts.connect)
                .await
                .map_err(|error| fail(error, false, false))?,
            false,
        ),
    };
    // Requests share it: how often each of them has come back, nobody could tell at the other end.
    if own && request.turns > 0 {
        return Err(fail(TryError::Loop, false, false));
    }
    // A session that fails a request as a whole serves no other one.
    let broken = |error: h2::Error| {
        alive.set(alive.get() && error.is_reset());
        TryError::Http2(error)
    };
    journal.connected(reused);
    let Head::Http2(head) = request.head.take() else {
        return Err(fail(TryError::InvalidHeader, false, reused));
    };
    let timer = Timer::new(timeouts.connect);
    let ready = timer.within(timeouts.connect, poll_fn(|cx| sender.poll_ready(cx))).await;
    ready
        .map_err(|_| fail(TryError::Timeout("waiting for a stream"), false, reused))?
        .map_err(|error| fail(broken(error), false, reused))?;
    let bodyless = request.body.is_empty();
    let (head, trailers) = *head;
    budget.asked();
    let (answer, stream) =
        sender.send_request(head, bodyless).map_err(|error| fail(broken(error), false, reused))?;
    let exchange = TwoWay {
        answer,
        way_out: WayOut { stream, pending: None, trailers, budget, taken: Sent::default() },
        body: request.body,
        sent: bodyless,
        taken: &mut taken,
    };
    let response = exchange.run(&timer, timeouts).await;
    let (response, sending) = response.map_err(|error| match error {
        TryError::Http2(error) => {
            let error = broken(error);
            // What was refused and has its body back is as good as never sent.
            let sent = !(is_refused(&error) && taken.give_back(request.body));
            fail(error, sent, reused)
        }
        other => fail(other, true, reused),
    })?;
    journal.answered(response.status().as_u16());
    let in_flight = InFlight { _load: load, _sending: sending };
    Ok(answered(response, in_flight, timeouts.read, journal))
}

/// A place in a session.
pub(super) struct Lease {
    sender: SendRequest<Bytes>,
    load: Rc<Load>,
    alive: Rc<Cell<bool>>,
    budget: Rc<Budget>,
    own: bool,
}

/// A place in a session that has room.
fn shared(pool: &Rc<Pool>, target: &Target) -> Option<Lease> {
    let sessions = pool.sessions().borrow();
    let session = sessions.get(&target.key())?.iter().find(|session| session.has_room())?;
    session.requests.set(session.requests.get() + 1);
    session.used.set(wire::now());
    Some(Lease {
        sender: session.sender.clone(),
        load: session.load.clone(),
        alive: session.alive.clone(),
        budget: session.budget.clone(),
        own: session.own.is_some(),
    })
}

/// Makes a session; its connection is driven by a task of this thread.
pub(super) async fn open(
    pool: &Rc<Pool>,
    target: &Target,
    whose: Option<&Arc<str>>,
    limit: Duration,
) -> Result<Lease, TryError> {
    let Connection { io, own, place, .. } = *Connection::open(pool, target, whose, limit).await?;
    let (guarded, budget) = Guarded::upstream(io);
    let handshake = h2::client::Builder::new()
        .enable_push(false)
        .initial_window_size(WINDOW)
        // All answers together: clients that do not take theirs leave the others of the session what is theirs.
        .initial_connection_window_size(STREAMS * WINDOW)
        .max_header_list_size(64 << 10)
        .handshake(guarded);
    let handshake = tokio::time::timeout(limit, handshake).await;
    let (sender, connection) =
        handshake.map_err(|_| TryError::Timeout("starting HTTP/2"))?.map_err(TryError::Http2)?;
    let alive = Rc::new(Cell::new(true));
    let (ending, spent) = (alive.clone(), budget.clone());
    let (address, at) = (target.address, Rc::downgrade(pool));
    let load = Rc::new(Load::default());
    let (gone, place) = (load.0.clone(), Rc::new(place));
    let held = place.clone();
    tokio::task::spawn_local(async move {
        let mut connection = pin!(connection);
        tokio::select! {
            _ = &mut connection => {}
            // An upstream that reads nothing keeps no connection that nobody uses.
            () = gone.notified() => drop(tokio::time::timeout(FAREWELL, connection).await),
        }
        held.give_back();
        ending.set(false);
        if spent.is_spent() && at.upgrade().is_some_and(|pool| pool.may_tell_of_flood()) {
            tracing::warn!(%address, "an upstream sends frames of HTTP/2 that are of no use, and its session is ended: look at what runs at this address (told once a minute by each thread)");
        }
    });
    let leads_back = own.is_some();
    let now = Instant::now();
    let session = Session {
        sender: sender.clone(),
        since: now,
        used: Cell::new(now),
        requests: Cell::new(1),
        load: load.clone(),
        alive: alive.clone(),
        budget: budget.clone(),
        own,
        place,
    };
    pool.sessions().borrow_mut().entry(target.key()).or_default().push(session);
    Ok(Lease { sender, load, alive, budget, own: leads_back })
}

/// A request on its way out while its answer may come in.
struct TwoWay<'r> {
    answer: ResponseFuture,
    way_out: WayOut,
    body: &'r mut Body,
    sent: bool,
    taken: &'r mut Taken,
}

/// What a request's body goes out on.
struct WayOut {
    stream: SendStream<Bytes>,
    pending: Option<Bytes>,
    trailers: Option<TrailerRule>,
    budget: Rc<Budget>,
    /// What the session took.
    taken: Sent,
}

/// What was taken off a body, as long as it may be wanted back.
#[derive(Debug, Default)]
struct Taken {
    frames: Vec<Frame>,
    bytes: usize,
    /// It was too much to be kept.
    lost: bool,
}

impl Taken {
    fn note(&mut self, frame: &Frame) {
        if let Frame::Data(data) = frame {
            self.bytes += data.len();
        }
        self.lost |= self.bytes > KEPT;
        if self.lost { self.frames.clear() } else { self.frames.push(frame.clone()) }
    }

    /// Gives everything back, if everything is there.
    fn give_back(self, body: &mut Body) -> bool {
        if !self.lost {
            body.give_back(self.frames);
        }
        !self.lost
    }
}

/// Whether the upstream says that it has not begun with the request (RFC 9113 section 8.7).
fn is_refused(error: &TryError) -> bool {
    let TryError::Http2(error) = error else { return false };
    let reason = error.reason();
    error.is_remote()
        && (error.is_reset() && reason == Some(Reason::REFUSED_STREAM)
            || error.is_go_away() && reason == Some(Reason::NO_ERROR))
}

impl TwoWay<'_> {
    /// The head of the answer, and what goes on sending the body if that is not over: both sides of a gRPC stream may
    /// speak at the same time.
    async fn run(
        mut self,
        timer: &Timer,
        timeouts: Timeouts,
    ) -> Result<(http::Response<RecvStream>, Option<Sending>), TryError> {
        let mut waiting = false;
        let answer = poll_fn(|cx| {
            if !self.sent {
                match self.way_out.poll_send(self.body, Some(self.taken), cx) {
                    Poll::Ready(Ok(())) => self.sent = true,
                    Poll::Ready(Err(error @ TryError::RequestBody(_))) => {
                        self.way_out.stream.send_reset(Reason::CANCEL);
                        return Poll::Ready(Err(error));
                    }
                    // The upstream may have answered before it stopped reading.
                    Poll::Ready(Err(_)) => self.sent = true,
                    Poll::Pending => {}
                }
            }
            if let Poll::Ready(answer) = Pin::new(&mut self.answer).poll(cx) {
                return Poll::Ready(answer.map_err(TryError::Http2));
            }
            if !self.sent {
                return self.way_out.poll_late(timer, timeouts.send, cx).map(Err);
            }
            if !std::mem::replace(&mut waiting, true) {
                timer.reset(timeouts.read);
            }
            let late = timer.poll(cx);
            late.map(|_| Err(TryError::Timeout("reading the head of the answer")))
        });
        let answer = answer.await?;
        let body = std::mem::replace(self.body, Body::empty());
        let rest = (!self.sent).then(|| Sending::start(self.way_out, body, timeouts.send));
        Ok((answer, rest))
    }
}

/// The stream that an answer comes in.
#[derive(Debug)]
struct AnswerStream {
    stream: RecvStream,
    journal: Rc<Try>,
    /// Counts the request as in flight on its session, and goes on sending its body.
    _in_flight: InFlight,
}

impl BodyStream for AnswerStream {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        self.stream.poll_data(cx)
    }

    fn with_body<T>(&mut self, act: impl FnOnce(&mut RecvStream) -> T) -> T {
        act(&mut self.stream)
    }

    fn is_end(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn received(&self, bytes: usize) {
        self.journal.received.set(self.journal.received.get() + bytes as u64);
    }

    fn ended(&self) {
        self.journal.end();
    }
}

/// What lasts as long as the answer: the place in the session, and the rest of the request's body.
#[derive(Debug)]
struct InFlight {
    _load: Rc<Load>,
    _sending: Option<Sending>,
}

/// The rest of a request's body on its way out; it stops when the answer is over.
#[derive(Debug)]
struct Sending(JoinHandle<()>);

impl Sending {
    fn start(mut way_out: WayOut, mut body: Body, limit: Duration) -> Self {
        Self(tokio::task::spawn_local(lane::in_turn(async move {
            let timer = Timer::new(limit);
            let sent = poll_fn(|cx| match way_out.poll_send(&mut body, None, cx) {
                Poll::Ready(sent) => Poll::Ready(sent),
                Poll::Pending => way_out.poll_late(&timer, limit, cx).map(Err),
            });
            let sent = sent.await;
            if sent.is_err() {
                // What broke off on one side is not completed on the other.
                way_out.stream.send_reset(Reason::CANCEL);
            }
        })))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl WayOut {
    /// Sends what there is of a body; ready when all of it is gone.
    fn poll_send(
        &mut self,
        body: &mut Body,
        mut taken: Option<&mut Taken>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TryError>> {
        let Self { stream, pending, trailers, budget, taken: session } = self;
        loop {
            let last = pending.as_ref().is_some_and(|data| !data.is_empty()) && body.is_over();
            let before = pending.as_ref().map_or(0, Bytes::len);
            let sent = poll_send_data(stream, pending, last, budget, cx);
            session.took(before - pending.as_ref().map_or(0, Bytes::len));
            ready!(sent).map_err(TryError::Http2)?;
            if last {
                return Poll::Ready(Ok(()));
            }
            let frame = ready!(body.poll_frame(cx)).map_err(TryError::RequestBody)?;
            if let (Some(taken), Some(frame)) = (&mut taken, &frame) {
                taken.note(frame);
            }
            let sent = match (frame, &trailers) {
                (Some(Frame::Data(data)), _) => {
                    *pending = Some(data);
                    continue;
                }
                (Some(Frame::Trailers(mut fields)), Some(rule)) => {
                    rule.apply(&mut fields);
                    stream.send_trailers(to_map(&fields))
                }
                (Some(Frame::Trailers(_)) | None, _) => stream.send_data(Bytes::new(), true),
            };
            return Poll::Ready(sent.map_err(TryError::Http2));
        }
    }

    /// Ready when the session takes nothing for longer than `limit`.
    fn poll_late(
        &mut self,
        timer: &Timer,
        limit: Duration,
        cx: &mut Context<'_>,
    ) -> Poll<TryError> {
        let waits = self.pending.is_some();
        self.taken.poll_late(waits, timer, limit, cx)
    }
}

fn answered(
    response: http::Response<RecvStream>,
    in_flight: InFlight,
    read: Duration,
    journal: &Rc<Try>,
) -> Response {
    let (parts, stream) = response.into_parts();
    let mut headers = from_map(&parts.headers);
    let length = headers.text("content-length").and_then(|text| text.parse().ok());
    headers.remove("content-length");
    let ended = stream.is_end_stream();
    let body = if ended {
        Body::empty()
    } else {
        let stream = AnswerStream { stream, journal: journal.clone(), _in_flight: in_flight };
        Body::from_source(StreamBody::new(stream, length, read))
    };
    if ended {
        journal.end();
    }
    Response {
        status: parts.status,
        reason: None,
        headers,
        body,
        source: Source::Upstream,
        announced_length: length.filter(|_| ended),
        close: false,
    }
}

#[cfg(test)]
mod tests;
