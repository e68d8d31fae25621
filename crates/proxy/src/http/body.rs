//! Bodies as a sequence of frames, wherever they come from.

use super::{Coding, Compressed, Headers, Spool};
use crate::http1::RequestBody;
use crate::http2::StreamBody;
use crate::upstream::{FastCgiBody, ResponseBody, Upgraded};
use bytes::Bytes;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// A piece of a body.
#[derive(Debug)]
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
}

/// A body.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
    /// Bytes that may still come.
    allowed: Option<u64>,
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
}

impl Body {
    fn of(kind: Kind) -> Self {
        Self { kind, allowed: None }
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
    pub fn compressed(body: Self, coding: Coding) -> Self {
        Self::of(Kind::Compressed(Box::new(Compressed::new(body, coding))))
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
            other => Err(Self { kind: other, allowed: self.allowed }),
        }
    }

    /// The body, if it was read whole.
    pub fn into_spool(self) -> Result<Spool, Self> {
        match self.kind {
            Kind::Spool(spool) => Ok(*spool),
            other => Err(Self { kind: other, allowed: self.allowed }),
        }
    }

    /// How much is still to come.
    pub fn length(&self) -> Length {
        match &self.kind {
            Kind::Empty | Kind::Full(None) | Kind::Upgraded(_) => Length::Known(0),
            Kind::Full(Some(data)) => Length::Known(data.len() as u64),
            Kind::Request(body) => body.length(),
            Kind::Stream(body) => body.length(),
            Kind::Spool(spool) => Length::Known(spool.remaining()),
            Kind::Upstream(body) => body.length(),
            Kind::Compressed(_) => Length::Unknown,
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
            | Kind::Compressed(_) => false,
        }
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.length() == Length::Known(0)
    }

    /// The next piece; none at the end.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
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
            Kind::FastCgi(body) => body.poll_frame(cx),
        }
    }

    /// The next piece; none at the end.
    pub async fn frame(&mut self) -> Result<Option<Frame>, BodyError> {
        poll_fn(|cx| self.poll_frame(cx)).await
    }
}
