//! The bytes of one HTTP/2 stream.

use super::{Budget, from_map};
use crate::{BodyError, BodySource, Frame, Length, Timer, trailers};
use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use std::fmt::Debug;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The longest body of which an upstream is told how long it is.
const LONGEST: u64 = i64::MAX.cast_unsigned();

/// A stream that brings a body.
pub trait BodyStream: Debug {
    /// The next bytes; none at the end.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>>;

    /// Does something with the stream itself.
    fn with_body<T>(&mut self, act: impl FnOnce(&mut RecvStream) -> T) -> T;

    /// Whether nothing more comes.
    fn is_end(&self) -> bool;

    /// Notes so many bytes of the body.
    fn received(&self, _bytes: usize) {}

    /// Notes that the body is over, whole or not.
    fn ended(&self) {}
}

/// The body that a stream brings.
#[derive(Debug)]
pub struct StreamBody<S> {
    stream: S,
    remaining: Option<u64>,
    idle: Duration,
    timer: Timer,
    waiting: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Data,
    Trailers,
    Done,
}

impl<S: BodyStream> StreamBody<S> {
    /// A body of `length` bytes, if that is known; `idle` is the time between two pieces of it.
    pub fn new(stream: S, length: Option<u64>, idle: Duration) -> Self {
        let (timer, stage) = (Timer::new(idle), Stage::Data);
        Self { stream, remaining: length, idle, timer, waiting: false, stage }
    }
}

impl<S: BodyStream> BodySource for StreamBody<S> {
    fn length(&self) -> Length {
        match (self.stage, self.remaining) {
            (Stage::Done, _) => Length::Known(0),
            _ if self.stream.is_end() => Length::Known(0),
            // Only the end of the stream shows that nothing comes after all. What is no length in 64 bits with a sign
            // is not passed on.
            (_, Some(remaining @ 1..=LONGEST)) => Length::Known(remaining),
            _ => Length::Unknown,
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let frame = self.poll_stream(cx);
        match &frame {
            Poll::Ready(Ok(Some(_))) => self.waiting = false,
            Poll::Ready(_) => {
                self.stage = Stage::Done;
                self.stream.ended();
            }
            Poll::Pending => {
                if !std::mem::replace(&mut self.waiting, true) {
                    self.timer.reset(self.idle);
                }
                ready!(self.timer.poll(cx));
                self.stage = Stage::Done;
                return Poll::Ready(Err(BodyError::Timeout));
            }
        }
        frame
    }
}

impl<S: BodyStream> StreamBody<S> {
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        while self.stage == Stage::Data {
            match ready!(self.stream.poll_data(cx)) {
                // The frame that ends a stream may have no bytes, and is no piece then.
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => return Poll::Ready(self.take(data).map(Some)),
                Some(Err(_)) => return Poll::Ready(Err(BodyError::Aborted)),
                None => self.stage = Stage::Trailers,
            }
        }
        if self.stage == Stage::Done {
            return Poll::Ready(Ok(None));
        }
        let fields = self.stream.with_body(|stream| stream.poll_trailers(cx));
        let fields = ready!(fields).map_err(|_| BodyError::Aborted)?;
        self.stage = Stage::Done;
        let mut fields = fields.map(|map| from_map(&map)).unwrap_or_default();
        trailers::strip(&mut fields);
        Poll::Ready(Ok((!fields.is_empty()).then_some(Frame::Trailers(fields))))
    }

    /// What is taken makes room for as much again (RFC 9113 section 5.2).
    fn take(&mut self, data: Bytes) -> Result<Frame, BodyError> {
        let size = data.len();
        let released = self.stream.with_body(|stream| stream.flow_control().release_capacity(size));
        released.map_err(|_| BodyError::Aborted)?;
        if let Some(remaining) = &mut self.remaining {
            *remaining = remaining.checked_sub(data.len() as u64).ok_or(BodyError::Malformed)?;
        }
        self.stream.received(data.len());
        Ok(Frame::Data(data))
    }
}

/// Bytes that can be sent piece by piece.
pub trait Pieces: Buf {
    /// Cuts off the first `at` bytes to send them.
    fn cut(&mut self, at: usize) -> Self;
}

impl Pieces for Bytes {
    fn cut(&mut self, at: usize) -> Self {
        self.split_to(at)
    }
}

/// Sends `pending` as the peer's window allows; ready when all of it is gone, which the peer may say it has. The stream
/// ends with it if it is the `last`.
pub fn poll_send_data<B: Pieces>(
    stream: &mut SendStream<B>,
    pending: &mut Option<B>,
    last: bool,
    budget: &Budget,
    cx: &mut Context<'_>,
) -> Poll<Result<(), h2::Error>> {
    while let Some(data) = pending {
        let size = data.remaining();
        if size == 0 {
            *pending = None;
            budget.sent();
            break;
        }
        stream.reserve_capacity(size);
        let granted = match stream.capacity() {
            0 => match ready!(stream.poll_capacity(cx)) {
                Some(granted) => granted?,
                None => return Poll::Ready(Err(h2::Reason::CANCEL.into())),
            },
            granted => granted,
        };
        let piece = data.cut(granted.min(size));
        stream.send_data(piece, last && granted >= size)?;
    }
    Poll::Ready(Ok(()))
}
