//! One try over HTTP/2, as gRPC wants it: many requests share a session.

mod heads;
mod session;

pub(crate) use session::Session;
#[cfg(test)]
pub(crate) use session::open_one;

use super::sent::Sent;
use super::{Failed, Head, Outgoing, Pool, Target, Try, TryError};
use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderName, HeaderValue, StatusCode};
use model::policy::Timeouts;
use session::{Claim, Lease, Part, SMALL, lease};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::JoinHandle;
use wire::http2::{BodyStream, Incoming, StreamBody, from_map, poll_send_data, to_map};
use wire::{Body, BodyError, Frame, Length, Response, Source, Timer, TrailerRule, lane};

/// Bytes of a streamed body that are kept until the upstream answers, for the case that it refuses the stream.
const KEPT: usize = 64 << 10;
/// Bytes of a head that hardly a server refuses. Some end the session of who sends more, with all that is on it.
const HEAD: usize = 8 << 10;

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
    let Head::Http2(head) = request.head.take() else {
        return Err(fail(TryError::InvalidHeader, false, false));
    };
    let (head, trailers) = *head;
    let part = part_of(&head, request.body).await;
    let part = part.map_err(|error| fail(TryError::RequestBody(error), false, false))?;
    let leased = lease(pool, target, request.whom(), part, timeouts.connect).await;
    let (Lease { mut sender, claim, own }, reused) =
        leased.map_err(|error| fail(error, false, false))?;
    // Requests share it: how often each of them has come back, nobody could tell at the other end.
    if own && request.cause.hops > 0 {
        claim.over();
        return Err(fail(TryError::Loop, false, false));
    }
    // A session that fails a request as a whole serves no other one.
    let failed = |error| {
        if let TryError::Http2(error) = &error {
            claim.over();
            if !error.is_reset() {
                claim.broken();
            }
            if claim.has_no_room() {
                return TryError::Heads;
            }
        }
        error
    };
    journal.connected(reused);
    let timer = Timer::new(timeouts.connect);
    let bodyless = request.body.is_empty();
    claim.budget().asked();
    let (answer, stream) = sender
        .send_request(head, bodyless)
        .map_err(|error| fail(failed(TryError::Http2(error)), false, reused))?;
    claim.asked(answer.stream_id(), request.cause.book);
    let (pending, session) = (None, Sent::default());
    let way_out = WayOut { stream, pending, trailers, claim: claim.clone(), session };
    let body = &mut *request.body;
    let exchange = TwoWay { answer, way_out, body, sent: bodyless, taken: &mut taken };
    let response = exchange.run(&timer, timeouts).await;
    let (response, sending) = response.map_err(|error| {
        let error = failed(error);
        // What was refused and has its body back is as good as never sent.
        let sent = !(is_refused(&error) && taken.give_back(request.body));
        fail(error, sent, reused)
    })?;
    journal.answered(response.status().as_u16());
    let in_flight = InFlight { claim, sending };
    Ok(answered(response, in_flight, timeouts.read, journal))
}

/// What a request with this head and body may leave lying in a session.
async fn part_of(head: &http::Request<()>, body: &mut Body) -> Result<Part, BodyError> {
    // As servers count it (RFC 9113 section 6.5.2).
    let field = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 32;
    let target = head.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let authority = head.uri().authority().map_or(0, |authority| authority.as_str().len());
    if target + authority + head.headers().iter().map(field).sum::<usize>() > HEAD {
        return Ok(Part::Any);
    }
    let bytes = match body.length() {
        Length::Known(length) => usize::try_from(length).ok(),
        Length::Unknown => at_hand(body).await?,
    };
    Ok(bytes.filter(|bytes| *bytes <= SMALL).map_or(Part::Any, Part::Bytes))
}

/// Bytes of a body that has come whole, and is small: nearly every message of gRPC that is no stream.
async fn at_hand(body: &mut Body) -> Result<Option<usize>, BodyError> {
    let (mut frames, mut bytes) = (Vec::new(), 0);
    let mut whole = gather(body, &mut frames, &mut bytes).await?;
    if whole == Whole::NotYet {
        // It may have come meanwhile, in a read of its own.
        tokio::task::yield_now().await;
        whole = gather(body, &mut frames, &mut bytes).await?;
    }
    body.give_back(frames);
    Ok((whole == Whole::Yes).then_some(bytes))
}

/// Whether a body has come whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    NotYet,
    /// It is too much, or has trailers.
    No,
}

/// Takes what there is of a body, while that is little.
async fn gather(
    body: &mut Body,
    frames: &mut Vec<Frame>,
    bytes: &mut usize,
) -> Result<Whole, BodyError> {
    poll_fn(|cx| {
        while *bytes <= SMALL {
            let frame = match body.poll_frame(cx) {
                Poll::Ready(Ok(Some(frame))) => frame,
                Poll::Ready(Ok(None)) => return Poll::Ready(Ok(Whole::Yes)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Ready(Ok(Whole::NotYet)),
            };
            let length = match &frame {
                Frame::Data(data) => Some(data.len()),
                Frame::Trailers(_) => None,
            };
            frames.push(frame);
            let Some(length) = length else { break };
            *bytes += length;
            if body.is_over() {
                return Poll::Ready(Ok(Whole::Yes));
            }
        }
        Poll::Ready(Ok(Whole::No))
    })
    .await
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
    claim: Rc<Claim>,
    /// What the session took.
    session: Sent,
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
    stream: Rc<Incoming>,
    journal: Rc<Try>,
    /// Counts the request as in flight on its session, and goes on sending its body.
    in_flight: InFlight,
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        // What came whole is not broken off by a client that does not take it.
        if self.stream.has_ended() {
            self.in_flight.over();
        }
    }
}

impl BodyStream for AnswerStream {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let data = self.stream.poll_data(cx);
        if matches!(&data, Poll::Ready(Some(Err(error))) if error.is_remote()) {
            // Nothing is broken off that the upstream has ended itself.
            self.in_flight.claim.over();
        }
        data
    }

    fn with_body<T>(&mut self, act: impl FnOnce(&mut RecvStream) -> T) -> T {
        self.stream.with_body(act)
    }

    fn is_end(&self) -> bool {
        self.stream.is_end()
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
    claim: Rc<Claim>,
    sending: Option<Sending>,
}

impl InFlight {
    /// The answer is over; what is still being sent then is broken off.
    fn over(&self) {
        if self.sending.as_ref().is_none_or(|Sending(task)| task.is_finished()) {
            self.claim.over();
        }
    }
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
        let Self { stream, pending, trailers, claim, session } = self;
        loop {
            let last = pending.as_ref().is_some_and(|data| !data.is_empty()) && body.is_over();
            let before = pending.as_ref().map_or(0, Bytes::len);
            let sent = poll_send_data(stream, pending, last, claim.budget(), cx);
            let gone = before - pending.as_ref().map_or(0, Bytes::len);
            session.took(gone);
            claim.sent(gone);
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
        self.session.poll_late(waits, timer, limit, cx)
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
    // One of 204 says nothing, and whoever reads it all the same would take the next answer for its body.
    let length = match parts.status {
        StatusCode::NO_CONTENT => None,
        _ => headers.text("content-length").and_then(|text| text.parse().ok()),
    };
    headers.remove("content-length");
    let ended = stream.is_end_stream();
    let body = if ended {
        in_flight.over();
        Body::empty()
    } else {
        let stream = in_flight.claim.incoming(stream);
        let stream = AnswerStream { stream, journal: journal.clone(), in_flight };
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
