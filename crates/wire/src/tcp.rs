//! Reading from and writing to TCP. The system is called without the C library between: there each call in a process
//! with several threads is a point at which the thread may be cancelled, which is prepared and taken back every time.

use bytes::BytesMut;
use rustix::io::writev;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread::LocalKey;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Reads what there is. Less than there is room for is all that there is: nobody asks the system once more.
#[inline]
pub(crate) fn poll_read(
    tcp: &mut TcpStream,
    cx: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    if buffer.initialized().len() < buffer.capacity() {
        // Memory that nobody has written to yet cannot be handed over without unsafe code.
        return Pin::new(tcp).poll_read(cx, buffer);
    }
    loop {
        ready!(tcp.poll_read_ready(cx))?;
        let room = buffer.initialize_unfilled();
        let length = room.len();
        let read = once(tcp, Interest::READABLE, length, || {
            recv(&*tcp, room, RecvFlags::empty()).map(|(count, _)| count)
        });
        match read {
            Some(Ok(count)) => {
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
            Some(Err(error)) => return Poll::Ready(Err(error)),
            None => {}
        }
    }
}

/// Reads what there is by way of `shared`, and appends it to `buffer`: how much that is. Nothing is made ready for a
/// read before there is something to read, which every second time there is not.
#[inline]
pub(crate) fn poll_append(
    tcp: &TcpStream,
    cx: &mut Context<'_>,
    buffer: &mut BytesMut,
    shared: &'static LocalKey<RefCell<Box<[u8]>>>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(tcp.poll_read_ready(cx))?;
        let read = shared.with_borrow_mut(|room| {
            let read = once(tcp, Interest::READABLE, room.len(), || {
                recv(tcp, &mut room[..], RecvFlags::empty()).map(|(count, _)| count)
            });
            if let Some(Ok(count)) = &read {
                buffer.extend_from_slice(&room[..*count]);
            }
            read
        });
        if let Some(read) = read {
            return Poll::Ready(read);
        }
    }
}

/// Writes what is taken at once.
#[inline]
pub(crate) fn poll_write(
    tcp: &TcpStream,
    cx: &mut Context<'_>,
    data: &[u8],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(tcp.poll_write_ready(cx))?;
        let written =
            once(tcp, Interest::WRITABLE, data.len(), || send(tcp, data, SendFlags::NOSIGNAL));
        if let Some(written) = written {
            return Poll::Ready(written);
        }
    }
}

/// Writes what is taken at once of several pieces.
#[inline]
pub(crate) fn poll_write_vectored(
    tcp: &TcpStream,
    cx: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let length = pieces.iter().map(|piece| piece.len()).sum();
    loop {
        ready!(tcp.poll_write_ready(cx))?;
        // A signal that comes with a peer that is gone is not for this process: Rust's programs ignore it.
        let written = once(tcp, Interest::WRITABLE, length, || writev(tcp, pieces));
        if let Some(written) = written {
            return Poll::Ready(written);
        }
    }
}

/// Calls the system once for up to `length` bytes; none where it would have to wait. What moves fewer than asked for
/// has to wait next time, as epoll(7) says of events that come once, so that the event loop is told at the same time.
#[inline]
fn once(
    tcp: &TcpStream,
    interest: Interest,
    length: usize,
    call: impl FnOnce() -> rustix::io::Result<usize>,
) -> Option<io::Result<usize>> {
    let mut moved = None;
    let tried = tcp.try_io(interest, || {
        let count = call()?;
        moved = Some(count);
        if (1..length).contains(&count) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    match (moved, tried) {
        (Some(count), _) => Some(Ok(count)),
        (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => None,
        (None, Err(error)) if error.kind() == io::ErrorKind::Interrupted => None,
        (None, tried) => Some(tried.map(|()| 0)),
    }
}
