//! The bytes of one HTTP/2 stream.

use super::from_map;
use crate::http::{BodyError, Frame, Length, trailers};
use crate::timer::Timer;
use crate::upstream::{InFlight, Try};
use bytes::Bytes;
use h2::{RecvStream, SendStream};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The body that a stream brings.
#[derive(Debug)]
pub struct StreamBody {
    stream: RecvStream,
    remaining: Option<u64>,
    idle: Duration,
    timer: Timer,
    waiting: bool,
    stage: Stage,
    journal: Option<Rc<Try>>,
    /// Counts the request as in flight on its session, and goes on sending its body.
    _in_flight: Option<InFlight>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Data,
    Trailers,
    Done,
}

impl StreamBody {
    /// The body of a client's request.
    pub fn of_request(stream: RecvStream, length: Option<u64>, idle: Duration) -> Self {
        Self::new(stream, length, idle, None, None)
    }

    /// The body of an upstream's answer.
    pub(crate) fn of_answer(
        stream: RecvStream,
        length: Option<u64>,
        idle: Duration,
        in_flight: InFlight,
        journal: Rc<Try>,
    ) -> Self {
        Self::new(stream, length, idle, Some(in_flight), Some(journal))
    }

    fn new(
        stream: RecvStream,
        remaining: Option<u64>,
        idle: Duration,
        in_flight: Option<InFlight>,
        journal: Option<Rc<Try>>,
    ) -> Self {
        let timer = Timer::new(idle);
        Self {
            stream,
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
            _ if self.stream.is_end_stream() => Length::Known(0),
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
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) => return Poll::Ready(self.take(data).map(Some)),
                Some(Err(_)) => return Poll::Ready(Err(BodyError::Aborted)),
                None => self.stage = Stage::Trailers,
            }
        }
        if self.stage == Stage::Done {
            return Poll::Ready(Ok(None));
        }
        let fields = ready!(self.stream.poll_trailers(cx)).map_err(|_| BodyError::Aborted)?;
        self.stage = Stage::Done;
        let mut fields = fields.map(|map| from_map(&map)).unwrap_or_default();
        trailers::strip(&mut fields);
        Poll::Ready(Ok((!fields.is_empty()).then_some(Frame::Trailers(fields))))
    }

    /// What is taken makes room for as much again (RFC 9113 section 5.2).
    fn take(&mut self, data: Bytes) -> Result<Frame, BodyError> {
        let released = self.stream.flow_control().release_capacity(data.len());
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

/// Sends `pending` as the peer's window allows; ready when all of it is gone.
pub(crate) fn poll_send_data(
    stream: &mut SendStream<Bytes>,
    pending: &mut Option<Bytes>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), h2::Error>> {
    while let Some(data) = pending {
        if data.is_empty() {
            *pending = None;
            break;
        }
        stream.reserve_capacity(data.len());
        let granted = match stream.capacity() {
            0 => match ready!(stream.poll_capacity(cx)) {
                Some(granted) => granted?,
                None => return Poll::Ready(Err(h2::Reason::CANCEL.into())),
            },
            granted => granted,
        };
        let piece = data.split_to(granted.min(data.len()));
        stream.send_data(piece, false)?;
    }
    Poll::Ready(Ok(()))
}
