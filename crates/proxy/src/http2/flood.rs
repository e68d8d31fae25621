//! Counts what an HTTP/2 client sends besides requests, where the h2 crate has no bound of its own: PING, SETTINGS,
//! WINDOW_UPDATE, PRIORITY, RST_STREAM and empty DATA (CVE-2019-9512, -9515, -9513, -9518; docs/limits.md).

use crate::io::Io;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// What a connection may spend at once; a second gives some of it back, and useful traffic does, too.
const BUDGET: i64 = 1000;
const PER_SECOND: i64 = 100;
/// Useful bytes that earn one more frame.
const EARNED_BY: i64 = 512;
const PREFACE: usize = 24;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const FRAME_HEADER: usize = 9;

/// A connection whose frames are counted.
#[derive(Debug)]
pub struct Guarded {
    io: Io,
    state: Rc<Budget>,
    scanner: RefCell<Scanner>,
}

/// What is left of a connection's budget.
#[derive(Debug)]
pub struct Budget {
    left: Cell<i64>,
    /// Since when a head has been coming in that is not whole yet.
    head_since: Cell<Option<Instant>>,
    refilled: Cell<Instant>,
}

#[derive(Debug)]
struct Scanner {
    header: [u8; FRAME_HEADER],
    have: usize,
    skip: usize,
    /// The payload that is skipped ends a head.
    ends_head: bool,
}

impl Guarded {
    /// Counts the frames of `io`, which start after the preface.
    pub fn new(io: Io) -> (Self, Rc<Budget>) {
        let state = Rc::new(Budget {
            left: Cell::new(BUDGET),
            head_since: Cell::new(None),
            refilled: Cell::new(Instant::now()),
        });
        let scanner = RefCell::new(Scanner {
            header: [0; FRAME_HEADER],
            have: 0,
            skip: PREFACE,
            ends_head: false,
        });
        (Self { io, state: state.clone(), scanner }, state)
    }
}

impl Budget {
    /// Whether the client sent more than anyone needs.
    pub fn is_spent(&self) -> bool {
        self.left.get() < 0
    }

    /// Since when a head has been coming in that is not whole yet.
    pub fn head_since(&self) -> Option<Instant> {
        self.head_since.get()
    }

    fn earn(&self, frames: i64) {
        self.left.set(self.left.get().saturating_add(frames).min(BUDGET));
    }

    fn spend(&self, cost: i64) {
        if self.left.get() < cost {
            let seconds = self.refilled.replace(Instant::now()).elapsed().as_secs();
            self.earn(i64::try_from(seconds).unwrap_or(0).saturating_mul(PER_SECOND));
        }
        self.left.set(self.left.get() - cost);
    }
}

impl Scanner {
    fn scan(&mut self, mut bytes: &[u8], budget: &Budget) {
        // A frame without payload ends with its header.
        while !bytes.is_empty() || (self.skip == 0 && self.ends_head) {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (FRAME_HEADER - self.have).min(bytes.len());
            if self.skip == 0 && std::mem::take(&mut self.ends_head) {
                budget.head_since.set(None);
            }
            if self.skip > 0 || taken == 0 {
                continue;
            }
            self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == FRAME_HEADER {
                self.have = 0;
                self.skip = self.frame(budget);
            }
        }
    }

    /// Books a frame by its header (RFC 9113 section 4.1); the length of its payload.
    fn frame(&mut self, budget: &Budget) -> usize {
        let [a, b, c, kind, flags, ..] = self.header;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let end_stream = flags & 1 == 1;
        if kind == HEADERS || kind == CONTINUATION {
            let since = budget.head_since.get().unwrap_or_else(Instant::now);
            budget.head_since.set(Some(since));
            self.ends_head = flags & END_HEADERS != 0;
        }
        match kind {
            0 if length == 0 && !end_stream => budget.spend(10),
            0 => budget.earn(1 + i64::try_from(length).unwrap_or(0) / EARNED_BY),
            1 => budget.earn(2),
            // SETTINGS and PING, unless they are acknowledgements.
            4 if flags & 1 == 0 => budget.spend(20),
            6 if flags & 1 == 0 => budget.spend(2),
            // PRIORITY, RST_STREAM, WINDOW_UPDATE and what nobody knows.
            2 | 3 | 8 | 10.. => budget.spend(1),
            _ => {}
        }
        length
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buffer))?;
        this.scanner.borrow_mut().scan(&buffer.filled()[before..], &this.state);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, data))?;
        this.state.earn(i64::try_from(written).unwrap_or(0) / EARNED_BY);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.io).poll_write_vectored(cx, slices))?;
        this.state.earn(i64::try_from(written).unwrap_or(0) / EARNED_BY);
        Poll::Ready(Ok(written))
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
