//! The body of a FastCGI answer on its way in.

use super::{Complaints, Connection, Records, Said, Try};
use crate::http::{BodyError, Frame, Length};
use bytes::Bytes;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The body of an answer on its way in.
#[derive(Debug)]
pub struct FastCgiBody {
    /// None once the answer is over.
    pub(super) connection: Option<Connection>,
    pub(super) records: Records,
    /// What came together with the head.
    pub(super) first: Bytes,
    /// What Content-Length leaves to come, if it was sent.
    pub(super) remaining: Option<u64>,
    pub(super) read: Duration,
    /// The deadline for the next piece is set.
    pub(super) waiting: bool,
    pub(super) complaints: Complaints,
    pub(super) journal: Rc<Try>,
}

impl FastCgiBody {
    /// How much is to come. A body that has its length is over only once the responder is: it may have work to do
    /// after its answer, which a connection that ends would break off.
    pub(crate) fn length(&self) -> Length {
        match (&self.connection, self.remaining) {
            (None, _) => Length::Known(0),
            (Some(_), Some(remaining)) if remaining > 0 => Length::Known(remaining),
            (Some(_), _) => Length::Unknown,
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame>, BodyError>> {
        let first = std::mem::take(&mut self.first);
        if let Some(data) = self.counted(first) {
            return Poll::Ready(Ok(Some(Frame::Data(data))));
        }
        loop {
            let Some(connection) = &mut self.connection else { return Poll::Ready(Ok(None)) };
            let said = self.records.next(&mut connection.buffer);
            match said.map_err(|_| BodyError::Malformed)? {
                Some(Said::Stdout(data)) => match self.counted(data) {
                    Some(data) => return Poll::Ready(Ok(Some(Frame::Data(data)))),
                    None => continue,
                },
                Some(Said::Stderr(data)) => {
                    self.complaints.hear(&data);
                    continue;
                }
                Some(Said::End) => return Poll::Ready(self.end()),
                None => {}
            }
            match connection.io.poll_read_body(cx, &mut connection.buffer, usize::MAX) {
                Poll::Ready(Ok(0) | Err(_)) if self.remaining == Some(0) => {
                    return Poll::Ready(self.end());
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

    /// The part of a piece that belongs to the body: what goes beyond its length is dropped (as nginx does).
    fn counted(&mut self, mut data: Bytes) -> Option<Bytes> {
        if let Some(remaining) = &mut self.remaining {
            data.truncate(usize::try_from(*remaining).unwrap_or(usize::MAX));
            *remaining -= data.len() as u64;
        }
        self.journal.received.set(self.journal.received.get() + data.len() as u64);
        (!data.is_empty()).then_some(data)
    }

    /// The responder is done; whether the body is whole.
    fn end(&mut self) -> Result<Option<Frame>, BodyError> {
        self.connection = None;
        self.journal.end();
        match self.remaining {
            Some(missing) if missing > 0 => Err(BodyError::Aborted),
            _ => Ok(None),
        }
    }
}
