//! The content of a page: all of it at once, or in pieces that are made as they are sent.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The content of a page.
pub enum Content {
    /// All of it.
    Whole(Bytes),
    /// Each piece is asked for when the one before it is on its way.
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
}

impl Content {
    /// Content in pieces, for what is too long to be held at once.
    pub fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self::Pieces(Box::new(pieces.filter(|piece| !piece.is_empty())))
    }
}

impl<T: Into<Bytes>> From<T> for Content {
    fn from(whole: T) -> Self {
        Self::Whole(whole.into())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => f.debug_tuple("Whole").field(&bytes.len()).finish(),
            Self::Pieces(_) => f.write_str("Pieces"),
        }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Self::Whole(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Self::Pieces(pieces) => pieces.next(),
        };
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}
