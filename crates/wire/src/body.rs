//! Bodies as a sequence of frames, wherever they come from.

use super::{BodyError, BodySource, Frame, Length, Pace, Pipe, Spool, Upgraded};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// A body.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
    /// Bytes that may still come.
    allowed: Option<u64>,
    /// How it is sent, where it may not just go.
    sending: Option<Box<Sending>>,
    /// What was taken and given back: it comes first.
    returned: Option<Box<Returned>>,
}

/// What was given back, in its order. Hardly a body has it, so it takes no room in the others.
#[derive(Debug)]
struct Returned {
    frames: VecDeque<Frame>,
}

/// How a body is sent.
#[derive(Debug)]
struct Sending {
    pace: Option<Pace>,
    /// What was read and may not go yet.
    rest: Bytes,
    /// Given back with the last piece, so that whoever got all of it may ask again.
    _slot: Option<Box<dyn Debug>>,
}

#[derive(Debug)]
enum Kind {
    Empty,
    Full(Option<Bytes>),
    Source(Box<dyn BodySource>),
    Spool(Box<Spool>),
    Upgraded(Box<Upgraded>),
}

impl Body {
    fn of(kind: Kind) -> Self {
        Self { kind, allowed: None, sending: None, returned: None }
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

    /// What `source` brings.
    pub fn from_source(source: impl BodySource + 'static) -> Self {
        Self::of(Kind::Source(Box::new(source)))
    }

    /// A body that was read whole.
    pub fn spool(spool: Spool) -> Self {
        Self::of(Kind::Spool(Box::new(spool)))
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

    /// All of it, if that is there, may go at once and is no more than `most` bytes.
    pub fn take_small(&mut self, most: usize) -> Option<Bytes> {
        let is_plain = self.is_plain();
        match &mut self.kind {
            Kind::Full(data) if is_plain => data.take_if(|data| data.len() <= most),
            _ => None,
        }
    }

    /// Whether it goes as it comes.
    fn is_plain(&self) -> bool {
        self.allowed.is_none() && self.sending.is_none() && self.returned.is_none()
    }

    /// Bytes that come next over a connection in clear, and may be passed on without a look at them.
    pub fn unseen(&self) -> u64 {
        match &self.kind {
            Kind::Source(source) if self.is_plain() => source.unseen(),
            _ => 0,
        }
    }

    /// Fills an empty pipe with some of those.
    pub fn poll_fill(
        &mut self,
        pipe: &mut Pipe,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        match &mut self.kind {
            Kind::Source(source) => source.poll_fill(pipe, cx),
            _ => Poll::Ready(Err(BodyError::Aborted)),
        }
    }

    /// The same body, sent at a pace, and holding on to its client's `slot` until it is at its end.
    pub fn pace(&mut self, pace: Option<Pace>, slot: Option<Box<dyn Debug>>) {
        if (pace.is_some() || slot.is_some()) && !self.is_empty() {
            self.sending = Some(Box::new(Sending { pace, rest: Bytes::new(), _slot: slot }));
        }
    }

    /// Takes back what nobody made use of, in its order.
    pub fn give_back(&mut self, frames: Vec<Frame>) {
        let left = self.returned.take().map(|returned| returned.frames).unwrap_or_default();
        let frames: VecDeque<_> = frames.into_iter().chain(left).collect();
        self.returned = (!frames.is_empty()).then(|| Box::new(Returned { frames }));
    }

    /// How much is still to come.
    pub fn length(&self) -> Length {
        if self.returned.as_ref().is_some_and(|returned| !returned.frames.is_empty()) {
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
            Kind::Source(source) => source.length(),
            Kind::Spool(spool) => Length::Known(spool.remaining()),
        }
    }

    /// Whether all of it was read from the connection already.
    pub fn is_at_hand(&self) -> bool {
        match &self.kind {
            Kind::Source(source) => source.is_at_hand(),
            Kind::Empty | Kind::Full(_) | Kind::Spool(_) => true,
            Kind::Upgraded(_) => false,
        }
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.length() == Length::Known(0)
    }

    /// Whether what came last was the last: no bytes and no trailers are to come. A body that ends without having said
    /// so is not known to be over.
    pub fn is_over(&self) -> bool {
        match &self.kind {
            Kind::Spool(spool) => spool.is_over() && self.is_empty(),
            Kind::Upgraded(_) => false,
            Kind::Empty | Kind::Full(_) | Kind::Source(_) => self.is_empty(),
        }
    }

    /// The next piece; none at the end.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        if let Some(frame) = self.returned.as_mut().and_then(|returned| returned.frames.pop_front())
        {
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
            Kind::Source(source) => source.poll_frame(cx),
            Kind::Spool(spool) => spool.poll_frame(cx),
        }
    }

    /// The next piece; none at the end.
    pub async fn frame(&mut self) -> Result<Option<Frame>, BodyError> {
        poll_fn(|cx| self.poll_frame(cx)).await
    }
}
