//! What the h2 crate does not tell of the other end of a session: how much it takes yet of bodies, all streams together
//! (RFC 9113 section 6.9), and when it was heard last.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The window that every session begins with (RFC 9113 section 6.9.2).
const WINDOW: i64 = 65_535;
const FRAME_HEADER: usize = 9;
const WINDOW_UPDATE: u8 = 8;
const INCREMENT: usize = 4;

/// What was heard.
#[derive(Debug)]
pub struct Heard {
    window: Cell<i64>,
    at: Cell<Instant>,
}

impl Heard {
    /// Of a session that begins.
    pub fn new() -> Rc<Self> {
        Rc::new(Self { window: Cell::new(WINDOW), at: Cell::new(crate::now()) })
    }

    /// Bytes that may be sent yet.
    pub fn window(&self) -> i64 {
        self.window.get()
    }

    /// So many bytes are sent.
    pub fn sent(&self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.window.set(self.window.get().saturating_sub(bytes));
    }

    /// When anything came last.
    pub fn at(&self) -> Instant {
        self.at.get()
    }
}

/// A connection to whose other end is listened.
#[derive(Debug)]
pub struct Listened<T> {
    io: T,
    heard: Rc<Heard>,
    frames: Frames,
}

impl<T> Listened<T> {
    /// Notes what comes over `io`, which has brought nothing yet.
    pub fn new(io: T, heard: Rc<Heard>) -> Self {
        Self { io, heard, frames: Frames::default() }
    }
}

/// Where frames begin and end in what comes.
#[derive(Debug, Default)]
struct Frames {
    /// The header of a frame, and behind it what its window grows by.
    kept: [u8; FRAME_HEADER + INCREMENT],
    have: usize,
    /// Bytes of the payload that are left.
    left: usize,
}

impl Frames {
    fn read(&mut self, mut bytes: &[u8], heard: &Heard) {
        while !bytes.is_empty() {
            if self.have < FRAME_HEADER {
                bytes = self.keep(bytes, FRAME_HEADER);
                if self.have < FRAME_HEADER {
                    return;
                }
                let [a, b, c, ..] = self.kept;
                self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            }
            let came = self.left.min(bytes.len());
            if self.left > 0 && self.is_of_session() {
                self.keep(&bytes[..came], self.kept.len());
            }
            bytes = &bytes[came..];
            self.left -= came;
            if self.left == 0 {
                if self.have == self.kept.len() {
                    let [.., a, b, c, d] = self.kept;
                    let increment = i64::from(u32::from_be_bytes([a & 0x7f, b, c, d]));
                    heard.window.set(heard.window.get().saturating_add(increment));
                }
                self.have = 0;
            }
        }
    }

    /// Keeps what is missing to `whole` bytes; the rest.
    fn keep<'a>(&mut self, bytes: &'a [u8], whole: usize) -> &'a [u8] {
        let missing = (whole - self.have).min(bytes.len());
        let (kept, rest) = bytes.split_at(missing);
        self.kept[self.have..self.have + missing].copy_from_slice(kept);
        self.have += missing;
        rest
    }

    /// Whether the frame makes the window of all streams larger.
    fn is_of_session(&self) -> bool {
        let [_, _, _, kind, _, stream @ .., _, _, _, _] = self.kept;
        kind == WINDOW_UPDATE && u32::from_be_bytes(stream) & 0x7fff_ffff == 0
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Listened<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { io, heard, frames } = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(io).poll_read(cx, buffer))?;
        frames.read(&buffer.filled()[before..], heard);
        heard.at.set(crate::now());
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Listened<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::{Frames, Heard, WINDOW};

    #[test]
    fn the_window_of_a_session_grows_by_what_is_said_of_it_in_pieces_of_any_size() {
        let mut said = Vec::new();
        // SETTINGS, and its acknowledgement, which has no payload.
        said.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0]);
        said.extend([0, 0, 0, 4, 1, 0, 0, 0, 0]);
        // Of a stream, and of all.
        said.extend([0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 0, 1, 0]);
        said.extend([0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        // DATA that looks like one, on stream 1.
        said.extend([0, 0, 13, 0, 0, 0, 0, 0, 1]);
        said.extend([0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        // With the bit that has no meaning.
        said.extend([0, 0, 4, 8, 0, 0x80, 0, 0, 0, 0x80, 1, 0, 0]);
        for size in 1..=said.len() {
            let (heard, mut frames) = (Heard::new(), Frames::default());
            heard.sent(100);
            said.chunks(size).for_each(|piece| frames.read(piece, &heard));
            assert_eq!(heard.window(), WINDOW - 100 + 7 + 65_536, "pieces of {size}");
        }
    }
}
