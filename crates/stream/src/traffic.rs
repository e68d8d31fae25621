//! What went through a port: sessions and bytes, for `/metrics`.

use crate::room::Place;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
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

/// A client's connection whose bytes are counted, and whose place knows when there were some.
pub(crate) struct Counted<'a, S> {
    pub(crate) inner: &'a mut S,
    /// Where they are counted, if they are.
    pub(crate) session: Option<&'a Session>,
    pub(crate) place: &'a Place,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut *self.inner).poll_read(cx, buffer);
        let bytes = buffer.filled().len() - before;
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
        let written = Pin::new(&mut *self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = written {
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
