//! How a phase ends a request.

use crate::error::Error;
use wire::Response;

/// Why a phase ends the request: it has an answer, or it failed.
#[derive(Debug)]
pub(crate) enum Stop {
    /// This is the answer.
    Answer(Box<Response>),
    /// There is none; [`Error::status`] says what the client is told.
    Fail(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

impl From<Response> for Stop {
    fn from(response: Response) -> Self {
        Self::Answer(Box::new(response))
    }
}
