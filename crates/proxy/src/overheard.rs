//! What a copy hears of a call's body while it is on its way: a stream of gRPC waits for nobody.

use bytes::{Bytes, BytesMut};
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use wire::{Body, BodyError, BodySource, Frame, Length};

/// Bytes of a call that are kept for its copies; of a longer one there is none.
pub(crate) const KEPT: usize = 64 << 10;

/// A body that somebody listens to.
#[derive(Debug)]
struct Overheard {
    body: Body,
    heard: Weak<RefCell<BytesMut>>,
    size: usize,
    /// Told when the body is over; gone when it cannot be had whole any more.
    whole: Option<oneshot::Sender<()>>,
}

/// Who listens.
#[derive(Debug)]
pub(crate) struct Listener {
    heard: Rc<RefCell<BytesMut>>,
    whole: oneshot::Receiver<()>,
}

impl Listener {
    /// The same body, and who listens to it. Whoever stops listening frees what was heard.
    pub(crate) fn of(body: Body) -> (Body, Self) {
        let (tell, whole) = oneshot::channel();
        let heard = Rc::default();
        let source = Overheard { body, heard: Rc::downgrade(&heard), size: 0, whole: Some(tell) };
        (Body::from_source(source), Self { heard, whole })
    }

    /// All bytes once the body is over; none if it broke off, or is too long.
    pub(crate) async fn bytes(self) -> Option<Bytes> {
        self.whole.await.ok()?;
        Some(self.heard.take().freeze())
    }
}

impl Overheard {
    fn note(&mut self, frame: Option<&Frame>) {
        if let Some(Frame::Data(data)) = frame {
            self.size += data.len();
            let heard = self.heard.upgrade().filter(|_| self.size <= KEPT);
            let Some(heard) = heard else {
                self.whole = None;
                return;
            };
            heard.borrow_mut().extend_from_slice(data);
            if !self.body.is_over() {
                return;
            }
        }
        if let Some(whole) = self.whole.take() {
            // Who does not listen any more need not be told.
            let _ = whole.send(());
        }
    }
}

impl BodySource for Overheard {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let frame = ready!(self.body.poll_frame(cx));
        match &frame {
            Ok(frame) if self.whole.is_some() => self.note(frame.as_ref()),
            Ok(_) => {}
            Err(_) => self.whole = None,
        }
        Poll::Ready(frame)
    }

    fn length(&self) -> Length {
        self.body.length()
    }

    fn is_at_hand(&self) -> bool {
        self.body.is_at_hand()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Listener};
    use bytes::Bytes;
    use wire::Body;

    async fn heard(size: usize, read: bool) -> Option<usize> {
        let (mut body, listener) = Listener::of(Body::full(Bytes::from(vec![7; size])));
        if read {
            while body.frame().await.expect("it is at hand").is_some() {}
        }
        drop(body);
        Some(listener.bytes().await?.len())
    }

    #[tokio::test]
    async fn a_body_is_heard_whole_or_not_at_all() {
        assert_eq!(heard(KEPT, true).await, Some(KEPT));
        assert_eq!(heard(KEPT + 1, true).await, None, "too long");
        assert_eq!(heard(5, false).await, None, "it broke off");
    }

    #[tokio::test]
    async fn what_nobody_listens_to_any_more_goes_on() {
        let (mut body, listener) = Listener::of(Body::full(Bytes::from_static(b"body")));
        drop(listener);
        assert!(body.frame().await.expect("it is at hand").is_some());
        assert!(body.frame().await.expect("its end").is_none());
    }
}
