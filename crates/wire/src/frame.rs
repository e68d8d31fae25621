//! The pieces that bodies come in, and what brings them.

use super::{Headers, Pipe};
use bytes::Bytes;
use std::fmt::Debug;
use std::task::{Context, Poll};

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

/// What brings a body from somewhere: a connection, a stream, another body.
pub trait BodySource: Debug {
    /// The next piece; none at the end.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>>;

    /// How much is still to come.
    fn length(&self) -> Length;

    /// Whether all of it was read from the connection already.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// Bytes that come next over a connection in clear, and may be passed on without a look at them.
    fn unseen(&self) -> u64 {
        0
    }

    /// Fills an empty pipe with some of those.
    fn poll_fill(&mut self, _: &mut Pipe, _: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        Poll::Ready(Err(BodyError::Aborted))
    }
}
