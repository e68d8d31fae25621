//! A body with fields behind it, and behind its own.

use super::{Body, BodyError, BodySource, Frame, Headers, Length};
use std::task::{Context, Poll, ready};

/// A body with fields behind it, and behind its own.
#[derive(Debug)]
pub struct Followed {
    body: Body,
    trailers: Option<Headers>,
}

impl Followed {
    /// `body` with `trailers` behind it.
    pub fn new(body: Body, trailers: Headers) -> Self {
        Self { body, trailers: Some(trailers) }
    }
}

impl BodySource for Followed {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let mut end = match ready!(self.body.poll_frame(cx))? {
            Some(Frame::Data(data)) => return Poll::Ready(Ok(Some(Frame::Data(data)))),
            Some(Frame::Trailers(own)) => Some(own),
            None => None,
        };
        if let Some(trailers) = self.trailers.take() {
            let all = end.get_or_insert_default();
            trailers.iter().for_each(|field| all.push(field.name, field.value));
        }
        Poll::Ready(Ok(end.map(Frame::Trailers)))
    }

    fn length(&self) -> Length {
        Length::Unknown
    }
}
