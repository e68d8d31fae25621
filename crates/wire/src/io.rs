//! Connections, plain or under TLS, and the two ways of reading from them: heads through a buffer that all
//! connections of a thread share (an idle connection holds none), bodies straight into the connection's own.

use crate::Control;
use crate::control::UNHURRIED;
use crate::now::time_passes;
use crate::server_tls::ServerTls;
use crate::tcp;
use crate::turn;
use crate::under_tls::{HEAVY, UnderTls};
use bytes::{Buf, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::net::sockopt::set_tcp_user_timeout;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a client or an upstream.
#[derive(Debug)]
pub enum Io {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP, towards an upstream.
    Tls(Box<TlsStream<UnderTls>>),
    /// TLS over TCP, of a client.
    Accepted(Box<ServerTls>),
    /// A connection whose first bytes were read already.
    Rewound(BytesMut, Box<Self>),
    /// One of two handles on a connection: its ways in and out belong to tasks of their own.
    Shared(Rc<RefCell<Self>>),
}

/// Bytes read at once into the shared buffer.
const HEAD_READ: usize = 16 << 10;
/// Bytes read at once of a body.
const BODY_READ: usize = 64 << 10;
/// Bytes that are written as one piece.
const JOINED: usize = 2 << 10;
/// Room made at least for a read of a body.
const SMALLEST_READ: usize = 512;
/// Room that a body keeps while it waits for what comes next.
const KEPT: usize = 16 << 10;

thread_local! {
    /// Where small pieces are put together.
    static TOGETHER: RefCell<[u8; JOINED]> = const { RefCell::new([0; JOINED]) };
    /// Room for the next body that something comes of.
    static SPARE: Cell<Option<BytesMut>> = const { Cell::new(None) };
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; HEAD_READ].into_boxed_slice());
}

impl Io {
    /// A connection to an upstream whose handshake is over.
    pub fn secure(mut tls: TlsStream<UnderTls>) -> Self {
        tls.get_mut().0.established();
        Self::Tls(Box::new(tls))
    }

    /// Bytes that TLS holds of what is not complete.
    pub fn held(&self) -> usize {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(tls) => tls.get_ref().0.held(),
            Self::Accepted(tls) => tls.held(),
            Self::Rewound(_, inner) => inner.held(),
            Self::Shared(io) => io.borrow().held(),
        }
    }

    /// Two handles on the same connection.
    pub fn shared(self) -> (Self, Self) {
        let io = Rc::new(RefCell::new(self));
        (Self::Shared(io.clone()), Self::Shared(io))
    }

    /// The connection itself, once there is no other handle on it.
    pub fn unshared(self) -> Option<Self> {
        match self {
            Self::Shared(io) => Rc::into_inner(io).map(RefCell::into_inner),
            own => Some(own),
        }
    }

    /// Reads what there is (up to 16 KiB) and appends it to `buffer`, which needs no room before. Zero at the end.
    pub fn poll_read_head(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        if let Self::Plain(tcp) = self {
            return tcp::poll_append(tcp, cx, buffer, &SHARED);
        }
        SHARED.with_borrow_mut(|shared| {
            let mut read = ReadBuf::new(shared);
            ready!(Pin::new(self).poll_read(cx, &mut read))?;
            buffer.extend_from_slice(read.filled());
            Poll::Ready(Ok(read.filled().len()))
        })
    }

    /// Reads what there is (up to 64 KiB) into `buffer`'s own memory, which grows for `expected` bytes. Where the
    /// thread has moved much since its event loop last came round, that is done in a later turn. Zero at the end. While
    /// nothing comes `buffer` has no more room than a little, unless pieces that were cut off it still lie somewhere.
    pub fn poll_read_body(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        expected: usize,
    ) -> Poll<io::Result<usize>> {
        // A short body, or the end of one, is not worth waiting for.
        if expected > HEAD_READ {
            ready!(turn::poll_room(cx));
        }
        let wanted = expected.clamp(SMALLEST_READ, BODY_READ);
        let is_new = buffer.capacity() - buffer.len() < wanted.min(BODY_READ / 4);
        if is_new {
            if wanted > KEPT && buffer.capacity() == 0 {
                *buffer = SPARE.take().unwrap_or_default();
            }
            buffer.reserve(wanted);
        }
        let mut limited = bytes::BufMut::limit(&mut *buffer, BODY_READ);
        let mut read = std::pin::pin!(tokio::io::AsyncReadExt::read_buf(self, &mut limited));
        let Poll::Ready(read) = Future::poll(read.as_mut(), cx) else {
            waits(buffer, is_new);
            return Poll::Pending;
        };
        let count = *read.as_ref().unwrap_or(&0);
        // Much under TLS counts as it comes.
        if self.is_plain() || count < HEAVY {
            turn::moved(count);
        }
        Poll::Ready(read)
    }

    fn is_plain(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(_) | Self::Accepted(_) => false,
            Self::Rewound(_, inner) => inner.is_plain(),
            Self::Shared(io) => io.borrow().is_plain(),
        }
    }

    /// Writes all of `data`, taking off its front what is gone. Small pieces go out as one: copying a few hundred
    /// bytes costs less than telling the system about two buffers.
    pub fn poll_write_all(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut impl Buf,
    ) -> Poll<io::Result<()>> {
        while data.has_remaining() {
            if data.chunk().len() == data.remaining() {
                let written = ready!(Pin::new(&mut *self).poll_write(cx, data.chunk()))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                data.advance(written);
                continue;
            }
            let mut slices = [io::IoSlice::new(&[]); 16];
            let slices = match data.chunks_vectored(&mut slices) {
                0 => &[],
                count => &slices[..count],
            };
            let mut io = Pin::new(&mut *self);
            let total: usize = slices.iter().map(|slice| slice.len()).sum();
            let written = match slices {
                [] | [_] => ready!(io.as_mut().poll_write(cx, data.chunk()))?,
                _ if total <= JOINED => {
                    let written = TOGETHER.with_borrow_mut(|joined| {
                        join(slices, joined);
                        io.as_mut().poll_write(cx, &joined[..total])
                    });
                    ready!(written)?
                }
                _ => ready!(io.as_mut().poll_write_vectored(cx, slices))?,
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            data.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Pushes out what TLS may still hold.
    #[inline]
    pub fn poll_flush_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Self::Plain(_) = self { Poll::Ready(Ok(())) } else { Pin::new(self).poll_flush(cx) }
    }

    /// Closes the way out.
    pub fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_shutdown(cx)
    }

    /// Whether the peer has closed, as the system knows at this moment, or said what nobody has read: before they close
    /// many say something (an alert of TLS, a 408), and it is no answer to what is sent next. A ticket of TLS that the
    /// event loop has not heard of either ends it as well: nobody can tell.
    pub fn is_closed(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        self.with_tcp(|tcp| rustix::net::recv(tcp, &mut [0; 1][..], flags).err())
            != Some(Errno::AGAIN)
    }

    /// The same behind whatever it has sent before and nobody has read yet.
    #[cold]
    pub(crate) fn has_hung_up(&self) -> bool {
        self.with_tcp(|tcp| {
            let mut asked = [PollFd::new(tcp, PollFlags::RDHUP)];
            matches!(poll(&mut asked, Some(&Timespec::default())), Ok(1..))
        })
    }

    /// Has it end with a reset: the system keeps nothing of what the peer has not taken.
    pub fn reset(&self) {
        // One that has ended by itself holds nothing.
        let _ = self.with_tcp(TcpStream::set_zero_linger);
    }

    /// Says what becomes of the answers that the peer has not taken, for its connection ends.
    #[cold]
    #[inline(never)]
    pub fn leaves(&self, control: &Control) {
        if control.resets() {
            return self.reset();
        }
        self.drops_after(control.waits_for_the_last());
    }

    /// The same of an upstream's connection, which nobody hurries.
    pub fn ends(&self) {
        self.drops_after(UNHURRIED);
    }

    /// Once the peer has taken nothing for so long, the system keeps nothing for it, though the connection is closed.
    fn drops_after(&self, wait: Duration) {
        let wait = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        // One that has ended by itself holds nothing.
        let _ = self.with_tcp(|tcp| set_tcp_user_timeout(tcp, wait));
    }

    fn with_tcp<T>(&self, look: impl FnOnce(&TcpStream) -> T) -> T {
        match self {
            Self::Plain(tcp) => look(tcp),
            Self::Tls(tls) => look(tls.get_ref().0.tcp()),
            Self::Accepted(tls) => look(tls.under().tcp()),
            Self::Rewound(_, inner) => inner.with_tcp(look),
            Self::Shared(io) => io.borrow().with_tcp(look),
        }
    }

    /// Whether the peer has closed, or sent what nobody asked for; never waits.
    pub fn is_stale(&mut self) -> bool {
        let mut buffer = [0; 1];
        if let Self::Plain(tcp) = self {
            // The event loop knows whether anything came; the system is not asked where nothing did.
            let read = tcp.try_read(&mut buffer);
            return !read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        }
        if let Self::Tls(tls) = self {
            tls.get_mut().0.hurries();
        }
        let mut read = ReadBuf::new(&mut buffer);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        Pin::new(self).poll_read(&mut cx, &mut read).is_ready()
    }
}

/// Nothing comes for a buffer: what it does not need is for the next one that something comes for. Of one that is not
/// new pieces may lie somewhere: then the rest of it is for what comes behind them, or each piece, however small, would
/// keep a whole one.
fn waits(buffer: &mut BytesMut, is_new: bool) {
    let more = buffer.capacity() - buffer.len() + 1;
    if (!is_new && !buffer.try_reclaim(more)) || buffer.capacity() <= KEPT {
        return;
    }
    let rest = BytesMut::from(&buffer[..]);
    let mut room = std::mem::replace(buffer, rest);
    room.clear();
    if (BODY_READ..2 * BODY_READ).contains(&room.capacity()) {
        SPARE.set(Some(room));
    }
}

/// Puts pieces that fit behind one another.
fn join(pieces: &[io::IoSlice<'_>], whole: &mut [u8; JOINED]) {
    let mut at = 0;
    for piece in pieces {
        whole[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
}

/// Tickets of TLS 1.3 that a server may send over one connection: each costs a client more than its server, and
/// nothing of an answer comes with them.
const TICKETS: u32 = 64;

fn has_too_many_tickets(tls: &TlsStream<UnderTls>) -> bool {
    tls.get_ref().1.tls13_tickets_received() > TICKETS
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = match self.get_mut() {
            Self::Plain(tcp) => tcp::poll_read(tcp, cx, buffer),
            Self::Tls(tls) => {
                let read = Pin::new(tls.as_mut()).poll_read(cx, buffer);
                if has_too_many_tickets(tls) {
                    return Poll::Ready(Err(io::Error::other("too many tickets of TLS sessions")));
                }
                tls.get_mut().0.gives(read.is_ready())?;
                read
            }
            Self::Accepted(tls) => Pin::new(tls.as_mut()).poll_read(cx, buffer),
            Self::Rewound(first, inner) if first.is_empty() => {
                Pin::new(inner.as_mut()).poll_read(cx, buffer)
            }
            Self::Rewound(first, _) => {
                let count = first.len().min(buffer.remaining());
                buffer.put_slice(&first.split_to(count));
                Poll::Ready(Ok(()))
            }
            Self::Shared(io) => Pin::new(&mut *io.borrow_mut()).poll_read(cx, buffer),
        };
        if read.is_ready() {
            time_passes();
        }
        read
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => tcp::poll_write(tcp, cx, data),
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_write(cx, data),
            Self::Accepted(tls) => Pin::new(tls.as_mut()).poll_write(cx, data),
            Self::Rewound(_, inner) => Pin::new(inner.as_mut()).poll_write(cx, data),
            Self::Shared(io) => Pin::new(&mut *io.borrow_mut()).poll_write(cx, data),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => tcp::poll_write_vectored(tcp, cx, slices),
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_write_vectored(cx, slices),
            Self::Accepted(tls) => Pin::new(tls.as_mut()).poll_write_vectored(cx, slices),
            Self::Rewound(_, inner) => Pin::new(inner.as_mut()).poll_write_vectored(cx, slices),
            Self::Shared(io) => Pin::new(&mut *io.borrow_mut()).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_flush(cx),
            Self::Accepted(tls) => Pin::new(tls.as_mut()).poll_flush(cx),
            Self::Rewound(_, inner) => Pin::new(inner.as_mut()).poll_flush(cx),
            Self::Shared(io) => Pin::new(&mut *io.borrow_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_shutdown(cx),
            Self::Accepted(tls) => Pin::new(tls.as_mut()).poll_shutdown(cx),
            Self::Rewound(_, inner) => Pin::new(inner.as_mut()).poll_shutdown(cx),
            Self::Shared(io) => Pin::new(&mut *io.borrow_mut()).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Io, KEPT};
    use bytes::{Bytes, BytesMut};
    use std::future::poll_fn;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    async fn pair() -> (Io, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let other = TcpStream::connect(address).await.expect("it listens");
        let (own, _) = listener.accept().await.expect("a connection");
        (Io::Plain(own), other)
    }

    async fn read(io: &mut Io, buffer: &mut BytesMut, size: usize) {
        while buffer.len() < size {
            let read = poll_fn(|cx| io.poll_read_body(cx, buffer, usize::MAX)).await;
            assert!(read.is_ok_and(|count| count > 0));
        }
    }

    /// Asks for more where nothing comes; the room that is left.
    fn waits(io: &mut Io, buffer: &mut BytesMut) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(io.poll_read_body(&mut cx, buffer, usize::MAX).is_pending());
        buffer.capacity()
    }

    #[tokio::test]
    async fn what_the_event_loop_has_not_heard_of_yet_ends_a_connection_that_waits() {
        let (mut io, other) = pair().await;
        other.writable().await.expect("it takes bytes");
        assert!(!io.is_stale() && !io.is_closed());
        other.try_write(b"HTTP/1.1 408 Request Timeout\r\n\r\n").expect("the system holds it");
        assert!(!io.is_stale(), "the event loop has not come round");
        assert!(io.is_closed());
        tokio::task::yield_now().await;
        assert!(io.is_stale());
    }

    #[tokio::test]
    async fn what_a_peer_leaves_lying_is_dropped_after_its_connection_was_closed() {
        let (mut io, mut other) = pair().await;
        let (mut written, piece) = (0, [0; 64 << 10]);
        loop {
            let piece = AsyncWriteExt::write(&mut io, &piece);
            let Ok(count) = tokio::time::timeout(Duration::from_millis(50), piece).await else {
                break;
            };
            written += count.expect("it is open");
        }
        io.drops_after(Duration::from_millis(300));
        drop(io);
        let peer = |address: Option<SocketAddr>| address.expect("connected").port();
        let (own, to) = (peer(other.local_addr().ok()), peer(other.peer_addr().ok()));
        let begun = Instant::now();
        while is_kept(to, own) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the system keeps it");
            tokio::task::yield_now().await;
        }
        let mut read = Vec::new();
        let end = tokio::io::AsyncReadExt::read_to_end(&mut other, &mut read).await;
        assert!(end.is_err() && read.len() < written, "{end:?}: {} of {written}", read.len());
    }

    /// Whether the system has a connection between these ports.
    fn is_kept(from: u16, to: u16) -> bool {
        let all = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
        all.contains(&format!(":{from:04X} 0100007F:{to:04X} "))
    }

    #[tokio::test]
    async fn a_body_that_waits_keeps_no_room_once_its_pieces_are_gone() {
        let ((mut io, mut other), mut buffer) = (pair().await, BytesMut::new());
        assert_eq!(waits(&mut io, &mut buffer), 0);
        other.write_all(&[b'x'; 30_000]).await.expect("written");
        read(&mut io, &mut buffer, 30_000).await;
        let piece = buffer.split_to(29_000).freeze();
        assert!(waits(&mut io, &mut buffer) > KEPT, "a piece lies somewhere");
        drop(piece);
        assert!(waits(&mut io, &mut buffer) <= KEPT);
        assert_eq!(buffer, [b'x'; 1000][..], "what is not whole stays");
        buffer.clear();
        other.write_all(b"y").await.expect("written");
        read(&mut io, &mut buffer, 1).await;
        assert_eq!(buffer, b"y"[..]);
    }

    #[tokio::test]
    async fn small_pieces_that_lie_somewhere_share_their_room() {
        let ((mut io, mut other), mut buffer) = (pair().await, BytesMut::new());
        let mut pieces: Vec<Bytes> = Vec::new();
        for _ in 0..1000 {
            other.write_all(b"x").await.expect("written");
            read(&mut io, &mut buffer, 1).await;
            pieces.push(buffer.split().freeze());
            waits(&mut io, &mut buffer);
        }
        let begin = pieces[0].as_ptr() as usize;
        let own = pieces.iter().filter(|piece| (piece.as_ptr() as usize).abs_diff(begin) > 1000);
        assert_eq!(own.count(), 0);
    }
}
