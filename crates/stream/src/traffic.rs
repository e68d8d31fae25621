//! What went through a port: sessions and bytes, for `/metrics`.

use crate::room::Place;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What went through a port since it leads to its service.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sessions: AtomicU64,
    active: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// What went through a port since it leads to its service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Connections of TCP and sessions of UDP that began.
    pub sessions: u64,
    /// Those that have not ended.
    pub active: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
}

/// A session, until this is dropped.
#[derive(Debug)]
pub(crate) struct Session(Arc<Counts>);

impl Drop for Session {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counts {
    pub(crate) fn begin(self: &Arc<Self>) -> Session {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        Session(self.clone())
    }

    pub(crate) fn now(&self) -> Traffic {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            sessions: get(&self.sessions),
            active: get(&self.active),
            received: get(&self.received),
            sent: get(&self.sent),
        }
    }
}

impl Session {
    pub(crate) fn received(&self, bytes: usize) {
        self.0.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.0.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Bytes of a connection that are moved, both ways together, before others have their turn: who has much to move
/// delays them by no more, however fast it is.
const AT_ONCE: usize = 64 << 10;

/// A client's connection whose bytes are counted, and whose place knows when there were some.
pub(crate) struct Counted<'a, S> {
    inner: &'a mut S,
    /// Where they are counted, if they are.
    session: Option<&'a Session>,
    place: &'a Place,
    /// Bytes that were moved since others had their turn.
    moved: usize,
}

impl<'a, S> Counted<'a, S> {
    pub(crate) fn new(inner: &'a mut S, session: Option<&'a Session>, place: &'a Place) -> Self {
        Self { inner, session, place, moved: 0 }
    }

    /// Ready when something may be moved; otherwise its task goes behind all others that wait.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.moved < AT_ONCE {
            return Poll::Ready(());
        }
        self.moved = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_turn(cx));
        let before = buffer.filled().len();
        let read = Pin::new(&mut *self.inner).poll_read(cx, buffer);
        let bytes = buffer.filled().len() - before;
        self.moved += bytes;
        if bytes > 0 {
            self.session.inspect(|session| session.received(bytes));
            self.place.heard();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        let written = Pin::new(&mut *self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.moved += count;
            self.session.inspect(|session| session.sent(count));
            self.place.told();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, Counted};
    use crate::holders::Holder;
    use crate::room::Room;
    use model::{StreamPort, Transport};
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, repeat, sink};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn who_has_much_to_move_goes_behind_the_others_again_and_again() {
        let port = StreamPort { transport: Transport::Tcp, number: 1, address: None };
        let whose = Holder::new(&"one".into(), port, IpAddr::V4(Ipv4Addr::LOCALHOST));
        let place = Room::new(8).now(&whose).expect("there is room");
        // As much comes, and goes, as anybody wants.
        let mut endless = tokio::io::join(repeat(7), sink());
        let mut client = Counted::new(&mut endless, None, &place);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let mut piece = [0; 8 << 10];
        for turn in 1..=3 {
            let mut moved = 0;
            while Pin::new(&mut client).poll_read(&mut cx, &mut ReadBuf::new(&mut piece)).is_ready()
            {
                moved += piece.len();
                match Pin::new(&mut client).poll_write(&mut cx, &piece) {
                    Poll::Ready(sent) => moved += sent.expect("it takes all"),
                    Poll::Pending => break,
                }
            }
            assert_eq!((moved, woken.0.load(Ordering::Relaxed)), (AT_ONCE, turn));
        }
    }
}
