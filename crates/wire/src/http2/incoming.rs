//! Bodies that come in over HTTP/2 and lie in the h2 crate until somebody takes them. It keeps each piece in the buffer
//! that it was read into, so that many small ones are put together where they lie for long.

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

/// The body that comes in on a stream.
#[derive(Debug)]
pub struct Incoming {
    body: RefCell<RecvStream>,
    /// What was taken from the h2 crate and by nobody yet.
    gathered: RefCell<BytesMut>,
    /// Who waits for more of it.
    waiting: RefCell<Option<Waker>>,
}

impl Incoming {
    /// A body that begins.
    pub fn new(body: RecvStream) -> Self {
        Self { body: RefCell::new(body), gathered: RefCell::default(), waiting: RefCell::default() }
    }

    /// Whether nothing more comes.
    pub fn is_end(&self) -> bool {
        self.gathered.borrow().is_empty() && self.body.borrow().is_end_stream()
    }

    /// Whether its sender has said all of it, for whoever wants nothing more: what lies there is thrown away.
    pub fn has_ended(&self) -> bool {
        let mut body = self.body.borrow_mut();
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(_))) = body.poll_data(&mut cx) {}
        let _ = body.poll_trailers(&mut cx);
        body.is_end_stream()
    }

    /// Puts what lies in many pieces into one. It stays in its sender's window until somebody takes it.
    pub fn gather(&self) {
        let (mut body, mut gathered) = (self.body.borrow_mut(), self.gathered.borrow_mut());
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(data))) = body.poll_data(&mut cx) {
            gathered.extend_from_slice(&data);
        }
        // The h2 crate has forgotten who waits.
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    /// The next bytes; none at the end.
    pub fn poll_data(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        if !self.gathered.borrow().is_empty() {
            return Poll::Ready(Some(Ok(self.gathered.take().freeze())));
        }
        let data = self.body.borrow_mut().poll_data(cx);
        if !matches!(data, Poll::Ready(Some(_))) {
            let mut waiting = self.waiting.borrow_mut();
            if !waiting.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waiting = Some(cx.waker().clone());
            }
        }
        data
    }

    /// Does something with the stream itself.
    pub fn with_body<T>(&self, act: impl FnOnce(&mut RecvStream) -> T) -> T {
        act(&mut self.body.borrow_mut())
    }
}

/// All that comes in on a connection, as long as it is there.
#[derive(Debug)]
pub struct AllIncoming<T> {
    all: RefCell<Vec<Weak<T>>>,
    /// How many there were when those that have ended were last taken out.
    live: Cell<usize>,
}

impl<T> Default for AllIncoming<T> {
    fn default() -> Self {
        Self { all: RefCell::default(), live: Cell::default() }
    }
}

impl<T: AsRef<Incoming>> AllIncoming<T> {
    /// One more.
    pub fn add(&self, one: &Rc<T>) {
        let mut all = self.all.borrow_mut();
        if all.len() > 2 * self.live.get() {
            all.retain(|one| one.strong_count() > 0);
            self.live.set(all.len());
        }
        all.push(Rc::downgrade(one));
    }

    /// Puts together what lies in many pieces.
    pub fn gather(&self) {
        let all = self.all.borrow();
        all.iter().filter_map(Weak::upgrade).for_each(|one| (*one).as_ref().gather());
    }
}

impl AsRef<Self> for Incoming {
    fn as_ref(&self) -> &Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Incoming;
    use bytes::Bytes;
    use http::{HeaderMap, Request, Response};
    use std::time::Duration;
    use tokio::io::{DuplexStream, duplex};

    async fn answer(io: DuplexStream) {
        let mut session = h2::server::handshake(io).await.expect("HTTP/2");
        while let Some(Ok((_, mut respond))) = session.accept().await {
            let mut body = respond.send_response(Response::new(()), false).expect("it waits");
            body.send_data(Bytes::from_static(b"body"), false).expect("it is open");
            body.send_trailers(HeaderMap::new()).expect("it is open");
        }
    }

    #[tokio::test]
    async fn a_body_has_ended_with_the_last_word_of_its_sender_though_nobody_took_it() {
        let (own, peer) = duplex(64 << 10);
        tokio::spawn(answer(peer));
        let (mut sender, connection) = h2::client::handshake(own).await.expect("HTTP/2");
        tokio::spawn(connection);
        let request = Request::get("http://a.test/").body(()).expect("a request");
        let (answer, _) = sender.send_request(request, true).expect("it goes out");
        let incoming = Incoming::new(answer.await.expect("an answer").into_body());
        let ended = async {
            while incoming.gathered.borrow().is_empty() {
                tokio::task::yield_now().await;
                incoming.gather();
            }
            while !incoming.has_ended() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it was sent");
        assert!(!incoming.is_end(), "what was gathered is still there");
    }
}
