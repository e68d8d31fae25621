//! The bytes of one HTTP/2 stream.

use super::from_map;
use super::held::Piece;
use super::stream::ClientStream;
use crate::http::{BodyError, Frame, Length, trailers};
use crate::timer::Timer;
use crate::upstream::{InFlight, Try};
use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The body that a stream brings.
#[derive(Debug)]
pub struct StreamBody {
    source: Source,
    remaining: Option<u64>,
    idle: Duration,
    timer: Timer,
    waiting: bool,
    stage: Stage,
    journal: Option<Rc<Try>>,
    /// Counts the request as in flight on its session, and goes on sending its body.
    _in_flight: Option<InFlight>,
}

/// Where it comes from.
#[derive(Debug)]
enum Source {
    /// A client: whoever answers the request has to do with the stream, too.
    Client(Rc<ClientStream>),
    /// An upstream.
    Upstream(RecvStream),
}

impl Source {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        match self {
            Self::Client(stream) => stream.poll_data(cx),
            Self::Upstream(stream) => stream.poll_data(cx),
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut RecvStream) -> T) -> T {
        match self {
            Self::Client(stream) => stream.with_body(act),
            Self::Upstream(stream) => act(stream),
        }
    }

    fn is_end(&self) -> bool {
        match self {
            Self::Client(stream) => stream.is_end(),
            Self::Upstream(stream) => stream.is_end_stream(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Data,
    Trailers,
    Done,
}

impl StreamBody {
    /// The body of a client's request.
    pub(super) fn of_request(
        stream: Rc<ClientStream>,
        length: Option<u64>,
        idle: Duration,
    ) -> Self {
        Self::new(Source::Client(stream), length, idle, None, None)
    }

    /// The body of an upstream's answer.
    pub(crate) fn of_answer(
        stream: RecvStream,
        length: Option<u64>,
        idle: Duration,
        in_flight: InFlight,
        journal: Rc<Try>,
    ) -> Self {
        Self::new(Source::Upstream(stream), length, idle, Some(in_flight), Some(journal))
    }

    fn new(
        source: Source,
        remaining: Option<u64>,
        idle: Duration,
        in_flight: Option<InFlight>,
        journal: Option<Rc<Try>>,
    ) -> Self {
        let timer = Timer::new(idle);
        Self {
            source,
            remaining,
            idle,
            timer,
            waiting: false,
            stage: Stage::Data,
            journal,
            _in_flight: in_flight,
        }
    }

    pub(crate) fn length(&self) -> Length {
        match (self.stage, self.remaining) {
            (Stage::Done, _) => Length::Known(0),
            _ if self.source.is_end() => Length::Known(0),
            // Only the end of the stream shows that nothing comes after all.
            (_, Some(remaining @ 1..)) => Length::Known(remaining),
            _ => Length::Unknown,
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame>, BodyError>> {
        let frame = self.poll_stream(cx);
        match &frame {
            Poll::Ready(Ok(Some(_))) => self.waiting = false,
            Poll::Ready(_) => {
                self.stage = Stage::Done;
                if let Some(journal) = &self.journal {
                    journal.end();
                }
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

    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        if self.stage == Stage::Data {
            match ready!(self.source.poll_data(cx)) {
                Some(Ok(data)) => return Poll::Ready(self.take(data).map(Some)),
                Some(Err(_)) => return Poll::Ready(Err(BodyError::Aborted)),
                None => self.stage = Stage::Trailers,
            }
        }
        if self.stage == Stage::Done {
            return Poll::Ready(Ok(None));
        }
        let fields = self.source.with(|stream| stream.poll_trailers(cx));
        let fields = ready!(fields).map_err(|_| BodyError::Aborted)?;
        self.stage = Stage::Done;
        let mut fields = fields.map(|map| from_map(&map)).unwrap_or_default();
        trailers::strip(&mut fields);
        Poll::Ready(Ok((!fields.is_empty()).then_some(Frame::Trailers(fields))))
    }

    /// What is taken makes room for as much again (RFC 9113 section 5.2).
    fn take(&mut self, data: Bytes) -> Result<Frame, BodyError> {
        let size = data.len();
        let released = self.source.with(|stream| stream.flow_control().release_capacity(size));
        released.map_err(|_| BodyError::Aborted)?;
        if let Some(remaining) = &mut self.remaining {
            *remaining = remaining.checked_sub(data.len() as u64).ok_or(BodyError::Malformed)?;
        }
        if let Some(journal) = &self.journal {
            journal.received.set(journal.received.get() + data.len() as u64);
        }
        Ok(Frame::Data(data))
    }
}

/// Bytes that can be sent piece by piece.
pub(crate) trait Pieces: Buf {
    /// Cuts off the first `at` bytes to send them.
    fn cut(&mut self, at: usize) -> Self;
}

impl Pieces for Bytes {
    fn cut(&mut self, at: usize) -> Self {
        self.split_to(at)
    }
}

impl Pieces for Piece {
    fn cut(&mut self, at: usize) -> Self {
        self.send_off(at)
    }
}

/// Sends `pending` as the peer's window allows; ready when all of it is gone.
pub(crate) fn poll_send_data<B: Pieces>(
    stream: &mut SendStream<B>,
    pending: &mut Option<B>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), h2::Error>> {
    while let Some(data) = pending {
        let size = data.remaining();
        if size == 0 {
            *pending = None;
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
        stream.send_data(piece, false)?;
    }
    Poll::Ready(Ok(()))
}
