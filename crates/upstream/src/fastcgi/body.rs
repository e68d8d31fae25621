//! The body of a FastCGI answer on its way in.

use super::{BadRecord, Records, Said};
use crate::incoming::Incoming;
use bytes::{Bytes, BytesMut};
use std::task::{Context, Poll, ready};
use wire::{BodyError, BodySource, Frame, Length};

/// Content of one record that is copied to be handed on together with that of others; more is worth a piece of its own.
const SMALL: usize = 4 << 10;

/// The body of an answer on its way in.
#[derive(Debug)]
pub(super) struct FastCgiBody {
    /// None once the answer is over.
    pub(super) incoming: Option<Incoming>,
    pub(super) records: Records,
    /// What comes next and was taken already: at first what came together with the head.
    pub(super) next: Option<Result<Said, BadRecord>>,
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
        loop {
            let said = match self.next.take() {
                Some(said) => said.map(Some),
                None => {
                    let Some(incoming) = &mut self.incoming else { return Poll::Ready(Ok(None)) };
                    self.records.next(incoming.buffer())
                }
            };
            let said = said.map_err(|_| BodyError::Malformed)?;
            let Some(incoming) = &mut self.incoming else { return Poll::Ready(Ok(None)) };
            match said {
                Some(Said::Stdout(data)) => match self.together(data) {
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
    /// This piece with small ones that came behind it, as far as all of it belongs to the body: what an answer costs
    /// depends on its bytes, not on how many records its sender made of them.
    fn together(&mut self, first: Bytes) -> Option<Bytes> {
        let Some(incoming) = self.incoming.as_mut().filter(|_| first.len() <= SMALL) else {
            return self.counted(first);
        };
        let mut joined = BytesMut::new();
        self.next = loop {
            match self.records.next(incoming.buffer()) {
                Ok(None) => break None,
                Ok(Some(Said::Stdout(data))) if data.len() <= SMALL => {
                    if joined.is_empty() {
                        joined.extend_from_slice(&first);
                    }
                    joined.extend_from_slice(&data);
                }
                Ok(Some(Said::Stderr(data))) => incoming.complains(&data),
                Ok(Some(said)) => break Some(Ok(said)),
                // What came before is still to be had.
                Err(bad) => break Some(Err(bad)),
            }
        };
        self.counted(if joined.is_empty() { first } else { joined.freeze() })
    }

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
