//! The body of a FastCGI answer on its way in.

use super::{Records, Said};
use crate::incoming::Incoming;
use bytes::Bytes;
use std::task::{Context, Poll, ready};
use wire::{BodyError, BodySource, Frame, Length};

/// The body of an answer on its way in.
#[derive(Debug)]
pub(super) struct FastCgiBody {
    /// None once the answer is over.
    pub(super) incoming: Option<Incoming>,
    pub(super) records: Records,
    /// What came together with the head.
    pub(super) first: Bytes,
    /// What Content-Length leaves to come, if it was sent.
    pub(super) remaining: Option<u64>,
}

impl BodySource for FastCgiBody {
    /// How much is to come. A body that has its length is over only once the responder is: it may have work to do
    /// after its answer, which a connection that ends would break off.
    fn length(&self) -> Length {
        match (&self.incoming, self.remaining) {
            (None, _) => Length::Known(0),
            (Some(_), Some(remaining)) if remaining > 0 => Length::Known(remaining),
            (Some(_), _) => Length::Unknown,
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let first = std::mem::take(&mut self.first);
        if let Some(data) = self.counted(first) {
            return Poll::Ready(Ok(Some(Frame::Data(data))));
        }
        loop {
            let Some(incoming) = &mut self.incoming else { return Poll::Ready(Ok(None)) };
            let said = self.records.next(incoming.buffer());
            match said.map_err(|_| BodyError::Malformed)? {
                Some(Said::Stdout(data)) => match self.counted(data) {
                    Some(data) => return Poll::Ready(Ok(Some(Frame::Data(data)))),
                    None => continue,
                },
                Some(Said::Stderr(data)) => {
                    incoming.complains(&data);
                    continue;
                }
                Some(Said::End) => return Poll::Ready(self.end()),
                None => {}
            }
            // A connection that ends after the whole body ends like any other: the responder is done.
            match ready!(incoming.poll_read(cx, usize::MAX)) {
                Ok(1..) => {}
                Ok(0) | Err(BodyError::Aborted) if self.remaining == Some(0) => {
                    return Poll::Ready(self.end());
                }
                Ok(0) => {
                    incoming.break_off();
                    return Poll::Ready(Err(BodyError::Aborted));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl FastCgiBody {
    /// The part of a piece that belongs to the body: what goes beyond its length is dropped (as nginx does).
    fn counted(&mut self, mut data: Bytes) -> Option<Bytes> {
        if let Some(remaining) = &mut self.remaining {
            data.truncate(usize::try_from(*remaining).unwrap_or(usize::MAX));
            *remaining -= data.len() as u64;
        }
        if let Some(incoming) = &mut self.incoming {
            incoming.received(data.len());
            // What goes to standard error, or beyond the length, is no progress of the answer.
            if !data.is_empty() {
                incoming.goes_on();
            }
        }
        (!data.is_empty()).then_some(data)
    }

    /// The responder is done; whether the body is whole.
    fn end(&mut self) -> Result<Option<Frame>, BodyError> {
        if let Some(incoming) = self.incoming.take() {
            incoming.end(None);
        }
        match self.remaining {
            Some(missing) if missing > 0 => Err(BodyError::Aborted),
            _ => Ok(None),
        }
    }
}
