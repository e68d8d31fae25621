//! Bodies as a sequence of frames, wherever they come from.

use super::{Coding, Compressed, Headers, Pace, Spool, Squeezed, Substituted};
use crate::http1::RequestBody;
use crate::http2::StreamBody;
use crate::limits::Slot;
use crate::upstream::{FastCgiBody, ResponseBody, Upgraded};
use bytes::Bytes;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A piece of a body.
#[derive(Clone, Debug)]
pub enum Frame {
    /// Some of its bytes.
    Data(Bytes),
    /// The fields after it.
    Trailers(Headers),
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes.
    Known(u64),
    /// Known at its end only.
    Unknown,
}

/// Why a body ended before its end. Nothing that was made of it may be ended as if it were whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The sender broke its framing.
    #[error("the body breaks its own framing")]
    Malformed,
    /// The sender closed or reset.
    #[error("the sender closed before the end of the body")]
    Aborted,
    /// The sender was silent, or slower than anyone has to wait for.
    #[error("the sender took too long")]
    Timeout,
    /// It is larger than allowed.
    #[error("the body is too large")]
    TooLarge,
    /// The file that holds it could not be used.
    #[error("the body's temporary file failed")]
    Storage,
    /// There are as many bytes in temporary files as there may be, of its namespace or of all.
    #[error("there is no room for the body among the temporary files (docs/limits.md)")]
    NoRoom,
}

/// A body.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
    /// Bytes that may still come.
    allowed: Option<u64>,
    /// How it is sent, where it may not just go.
    sending: Option<Box<Sending>>,
    /// What was taken and given back: it comes first.
    returned: VecDeque<Frame>,
}

/// How a body is sent.
#[derive(Debug)]
struct Sending {
    pace: Option<Pace>,
    /// What was read and may not go yet.
    rest: Bytes,
    /// Given back with the last piece, so that whoever got all of it may ask again.
    _slot: Option<Slot>,
}

#[derive(Debug)]
enum Kind {
    Empty,
    Full(Option<Bytes>),
    Request(RequestBody),
    Stream(Box<StreamBody>),
    Spool(Box<Spool>),
    Upstream(Box<ResponseBody>),
    FastCgi(Box<FastCgiBody>),
    Upgraded(Box<Upgraded>),
    Compressed(Box<Compressed>),
    Substituted(Box<Substituted>),
    Followed(Box<Followed>),
}

/// A body with fields behind it, and behind its own.
#[derive(Debug)]
struct Followed {
    body: Body,
    trailers: Option<Headers>,
}

impl Followed {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let mut end = match ready!(self.body.poll_frame(cx))? {
            Some(Frame::Data(data)) => return Poll::Ready(Ok(Some(Frame::Data(data)))),
            Some(Frame::Trailers(own)) => Some(own),
            None => None,
        };
        if let Some(trailers) = self.trailers.take() {
            let all = end.get_or_insert_default();
            trailers.iter().for_each(|field| all.push(field.name.clone(), field.value.clone()));
        }
        Poll::Ready(Ok(end.map(Frame::Trailers)))
    }
}

impl Body {
    fn of(kind: Kind) -> Self {
        Self { kind, allowed: None, sending: None, returned: VecDeque::new() }
    }

    /// The same body, which is too large if it brings more than `allowed` bytes.
    pub fn limited(self, allowed: Option<u64>) -> Self {
        Self { allowed, ..self }
    }

    /// No bytes.
    pub fn empty() -> Self {
        Self::of(Kind::Empty)
    }

    /// These bytes.
    pub fn full(data: Bytes) -> Self {
        if data.is_empty() { Self::empty() } else { Self::of(Kind::Full(Some(data))) }
    }

    /// The body of an HTTP/1 request.
    pub fn request(body: RequestBody) -> Self {
        Self::of(Kind::Request(body))
    }

    /// The body of an HTTP/2 message.
    pub fn stream(body: StreamBody) -> Self {
        Self::of(Kind::Stream(Box::new(body)))
    }

    /// A body that was read whole.
    pub fn spool(spool: Spool) -> Self {
        Self::of(Kind::Spool(Box::new(spool)))
    }

    /// The body of an HTTP/1 answer.
    pub fn upstream(body: ResponseBody) -> Self {
        Self::of(Kind::Upstream(Box::new(body)))
    }

    /// The same body, compressed.
    pub fn compressed(body: Self, coding: Coding, count: Rc<Squeezed>) -> Self {
        Self::of(Kind::Compressed(Box::new(Compressed::new(body, coding, count))))
    }

    /// A body with texts in it replaced.
    pub fn substituted(body: Substituted) -> Self {
        Self::of(Kind::Substituted(Box::new(body)))
    }

    /// A body with these fields behind it, and behind its own.
    pub fn followed(body: Self, trailers: Headers) -> Self {
        Self::of(Kind::Followed(Box::new(Followed { body, trailers: Some(trailers) })))
    }

    /// The body of a FastCGI answer.
    pub fn fastcgi(body: FastCgiBody) -> Self {
        Self::of(Kind::FastCgi(Box::new(body)))
    }

    /// A connection that stopped being HTTP (101).
    pub fn upgraded(upgraded: Upgraded) -> Self {
        Self::of(Kind::Upgraded(Box::new(upgraded)))
    }

    /// The connection behind a 101.
    pub fn into_upgraded(self) -> Result<Upgraded, Self> {
        match self.kind {
            Kind::Upgraded(upgraded) => Ok(*upgraded),
            other => Err(Self { kind: other, ..self }),
        }
    }

    /// The body, if it was read whole.
    pub fn into_spool(self) -> Result<Spool, Self> {
        match self.kind {
            Kind::Spool(spool) => Ok(*spool),
            other => Err(Self { kind: other, ..self }),
        }
    }

    /// The body, if it was read whole.
    pub fn as_spool(&self) -> Option<&Spool> {
        match &self.kind {
            Kind::Spool(spool) => Some(spool),
            _ => None,
        }
    }

    /// The same body, sent at a pace, and holding its client's slot until it is at its end.
    pub fn pace(&mut self, pace: Option<Pace>, slot: Option<Slot>) {
        if (pace.is_some() || slot.is_some()) && !self.is_empty() {
            self.sending = Some(Box::new(Sending { pace, rest: Bytes::new(), _slot: slot }));
        }
    }

    /// Takes back what nobody made use of, in its order.
    pub fn give_back(&mut self, frames: Vec<Frame>) {
        self.returned = frames.into();
    }

    /// How much is still to come.
    pub fn length(&self) -> Length {
        if !self.returned.is_empty() {
            return Length::Unknown;
        }
        let waiting = self.sending.as_ref().map_or(0, |sending| sending.rest.len() as u64);
        match self.length_to_read() {
            Length::Known(length) => Length::Known(length + waiting),
            Length::Unknown => Length::Unknown,
        }
    }

    fn length_to_read(&self) -> Length {
        match &self.kind {
            Kind::Empty | Kind::Full(None) | Kind::Upgraded(_) => Length::Known(0),
            Kind::Full(Some(data)) => Length::Known(data.len() as u64),
            Kind::Request(body) => body.length(),
            Kind::Stream(body) => body.length(),
            Kind::Spool(spool) => Length::Known(spool.remaining()),
            Kind::Upstream(body) => body.length(),
            Kind::Compressed(_) | Kind::Substituted(_) | Kind::Followed(_) => Length::Unknown,
            Kind::FastCgi(body) => body.length(),
        }
    }

    /// Whether all of it was read from the connection already.
    pub fn is_at_hand(&self) -> bool {
        match &self.kind {
            Kind::Request(body) => body.is_at_hand(),
            Kind::Empty | Kind::Full(_) | Kind::Spool(_) => true,
            Kind::Stream(_)
            | Kind::Upstream(_)
            | Kind::FastCgi(_)
            | Kind::Upgraded(_)
            | Kind::Compressed(_)
            | Kind::Substituted(_)
            | Kind::Followed(_) => false,
        }
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.length() == Length::Known(0)
    }

    /// The next piece; none at the end.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        if let Some(frame) = self.returned.pop_front() {
            return Poll::Ready(Ok(Some(frame)));
        }
        let Some(mut sending) = self.sending.take() else { return self.poll_read(cx) };
        let frame = self.poll_piece(&mut sending, cx);
        let is_over = match &frame {
            Poll::Pending => false,
            Poll::Ready(Ok(Some(_))) => sending.rest.is_empty() && self.is_empty(),
            Poll::Ready(Ok(None) | Err(_)) => true,
        };
        if !is_over {
            self.sending = Some(sending);
        }
        frame
    }

    /// As much of the next piece as may go now.
    fn poll_piece(
        &mut self,
        sending: &mut Sending,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame>, BodyError>> {
        let most = match &mut sending.pace {
            Some(pace) => ready!(pace.poll_turn(cx)),
            None => usize::MAX,
        };
        if sending.rest.is_empty() {
            match ready!(self.poll_read(cx))? {
                Some(Frame::Data(data)) => sending.rest = data,
                other => return Poll::Ready(Ok(other)),
            }
        }
        let piece = sending.rest.split_to(most.min(sending.rest.len()));
        if let Some(pace) = &mut sending.pace {
            pace.went(piece.len());
        }
        Poll::Ready(Ok(Some(Frame::Data(piece))))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let frame = ready!(self.poll_any(cx))?;
        if let (Some(Frame::Data(data)), Some(allowed)) = (&frame, &mut self.allowed) {
            *allowed = allowed.checked_sub(data.len() as u64).ok_or(BodyError::TooLarge)?;
        }
        Poll::Ready(Ok(frame))
    }

    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        match &mut self.kind {
            Kind::Empty | Kind::Upgraded(_) => Poll::Ready(Ok(None)),
            Kind::Full(data) => Poll::Ready(Ok(data.take().map(Frame::Data))),
            Kind::Request(body) => body.poll_frame(cx),
            Kind::Stream(body) => body.poll_frame(cx),
            Kind::Spool(spool) => spool.poll_frame(cx),
            Kind::Upstream(body) => body.poll_frame(cx),
            Kind::Compressed(body) => body.poll_frame(cx),
            Kind::Substituted(body) => body.poll_frame(cx),
            Kind::Followed(body) => body.poll_frame(cx),
            Kind::FastCgi(body) => body.poll_frame(cx),
        }
    }

    /// The next piece; none at the end.
    pub async fn frame(&mut self) -> Result<Option<Frame>, BodyError> {
        poll_fn(|cx| self.poll_frame(cx)).await
    }
}
