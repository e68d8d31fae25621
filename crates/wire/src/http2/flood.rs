//! Counts what an HTTP/2 peer sends besides requests or answers, where the h2 crate has no bound of its own: PING,
//! SETTINGS, WINDOW_UPDATE, PRIORITY, RST_STREAM and empty DATA (CVE-2019-9512, -9515, -9513, -9518), and answers
//! that a client asks for and does not want (docs/limits.md). And notes what that crate does not tell of an upstream:
//! how much it takes yet of bodies, all streams together (RFC 9113 section 6.9), and when it was heard last.

use crate::io::Io;
use crate::turn;
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
/// Useful bytes that earn one more frame; as many of no use cost one more.
const EARNED_BY: i64 = 512;
/// What a request earns for the session that it goes out on.
const ASKED: i64 = 16;
/// What a piece of a body earns that went to the peer: as much as two windows, a PING, and as much again. gRPC in Go
/// answers each small message so, however many there are in a second. Earned for pieces and not for frames: with a
/// window of a byte the peer could make as many frames of one piece as it likes.
const SENT: i64 = 8;
/// Answers that a client may break off at once, and each second; one that it takes whole gives one back.
const RESETS: i64 = 200;
const RESETS_PER_SECOND: i64 = 5;
/// Bytes of a body that a frame of an upstream counts as, in a turn of the thread: to read one is work.
const FRAME_WORK: usize = 64;
/// Pieces of bodies below this are loose: the h2 crate keeps each in the buffer that it was read into, of this size or
/// larger. So many of them, or so many buffers with one, are gathered.
const LOOSE: usize = 4 << 10;
const BUFFER: usize = 8 << 10;
const LOOSE_PIECES: usize = 512;
const LOOSE_BUFFERS: usize = 32;
/// The longest frame that anybody may send us (RFC 9113 section 4.2).
const LONGEST: usize = 16 << 10;
const PREFACE: usize = 24;
/// The window that every session begins with (RFC 9113 section 6.9.2).
const WINDOW: i64 = 65_535;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const FRAME_HEADER: usize = 9;

/// A connection whose frames are counted.
#[derive(Debug)]
pub struct Guarded {
    io: Io,
    state: Rc<Budget>,
    scanner: RefCell<Scanner>,
    /// It was not read from for once.
    holds_back: bool,
}

/// Who sends the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Client,
    Upstream,
}

/// What is left of a connection's budget.
#[derive(Debug)]
pub struct Budget {
    peer: Peer,
    left: Cell<i64>,
    /// Answers that may still be broken off, and since when that number holds.
    resets: Cell<i64>,
    resets_at: Cell<Instant>,
    /// Since when a head has been coming in that is not whole yet, and its bytes.
    head_since: Cell<Option<Instant>>,
    head_came: Cell<usize>,
    /// Loose pieces that came since they were gathered last, and the buffers that they are in.
    loose: Cell<usize>,
    buffers: Cell<usize>,
    refilled: Cell<Instant>,
    /// Bytes of bodies that an upstream takes yet.
    window: Cell<i64>,
    /// When anything came of an upstream last.
    heard: Cell<Instant>,
}

#[derive(Debug, Default)]
struct Scanner {
    header: [u8; FRAME_HEADER],
    have: usize,
    skip: usize,
    /// Bytes that came since the last loose piece that had a buffer of its own.
    since_loose: usize,
    /// The payload that is skipped ends a head.
    ends_head: bool,
    /// It says how much more a session takes, and said so much of that.
    increment: Option<u32>,
}

impl Guarded {
    /// Counts the frames of a client, which start after the preface.
    pub fn client(io: Io) -> (Self, Rc<Budget>) {
        Self::new(io, Peer::Client, PREFACE)
    }

    /// Counts those of an upstream, which has no preface. Once it has spent its budget nothing more is read.
    pub fn upstream(io: Io) -> (Self, Rc<Budget>) {
        Self::new(io, Peer::Upstream, 0)
    }

    fn new(io: Io, peer: Peer, skip: usize) -> (Self, Rc<Budget>) {
        let state = Rc::new(Budget::new(peer));
        let scanner = RefCell::new(Scanner { skip, ..Scanner::default() });
        (Self { io, state: state.clone(), scanner, holds_back: false }, state)
    }

    fn wrote(&self, bytes: usize) {
        self.state.earn(i64::try_from(bytes).unwrap_or(0) / EARNED_BY);
    }
}

impl Budget {
    fn new(peer: Peer) -> Self {
        let now = Instant::now();
        Self {
            peer,
            left: Cell::new(BUDGET),
            resets: Cell::new(RESETS),
            resets_at: Cell::new(now),
            head_since: Cell::new(None),
            head_came: Cell::new(0),
            loose: Cell::new(0),
            buffers: Cell::new(0),
            refilled: Cell::new(now),
            window: Cell::new(WINDOW),
            heard: Cell::new(crate::now()),
        }
    }

    /// Whether the peer sent more than anyone needs.
    pub fn is_spent(&self) -> bool {
        self.left.get() < 0 || self.resets.get() < 0
    }

    /// A request goes out to the upstream.
    pub fn asked(&self) {
        self.earn(ASKED);
    }

    /// A piece of a body went to the peer.
    pub fn sent(&self) {
        self.earn(SENT);
    }

    /// The client took an answer whole.
    pub fn completed(&self) {
        self.resets.set((self.resets.get() + 1).min(RESETS));
    }

    /// The client broke off an answer that was being made: work for nothing, which the request itself does not pay for
    /// (rapid reset at any pace, CVE-2023-44487).
    pub fn reset(&self) {
        let seconds = self.resets_at.get().elapsed().as_secs();
        if seconds > 0 {
            self.resets_at.set(Instant::now());
        }
        let back = i64::try_from(seconds).unwrap_or(RESETS).saturating_mul(RESETS_PER_SECOND);
        self.resets.set(self.resets.get().saturating_add(back).min(RESETS) - 1);
    }

    /// Since when a head has been coming in that is not whole yet.
    pub fn head_since(&self) -> Option<Instant> {
        self.head_since.get()
    }

    /// Bytes that have come of that head.
    pub fn head_came(&self) -> usize {
        self.head_came.get()
    }

    /// Whether bodies lie in more pieces than should be kept so.
    pub fn is_scattered(&self) -> bool {
        self.loose.get() >= LOOSE_PIECES || self.buffers.get() >= LOOSE_BUFFERS
    }

    /// All pieces were gathered.
    pub fn gathered(&self) {
        self.loose.set(0);
        self.buffers.set(0);
    }

    /// A piece of a body has come.
    fn loose(&self, in_a_buffer: bool) {
        self.loose.set(self.loose.get() + 1);
        self.buffers.set(self.buffers.get() + usize::from(in_a_buffer));
    }

    /// Bytes of bodies that the upstream takes yet, all streams together.
    pub fn window(&self) -> i64 {
        self.window.get()
    }

    /// So many bytes of bodies are sent.
    pub fn gone(&self, bytes: usize) {
        self.widen(-i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn widen(&self, bytes: i64) {
        self.window.set(self.window.get().saturating_add(bytes));
    }

    /// When anything came of the upstream last.
    pub fn heard(&self) -> Instant {
        self.heard.get()
    }

    fn earn(&self, frames: i64) {
        self.left.set(self.left.get().saturating_add(frames).min(BUDGET));
    }

    /// Books what is of no use.
    pub fn spend(&self, cost: i64) {
        if self.left.get() < cost {
            let seconds = self.refilled.replace(Instant::now()).elapsed().as_secs();
            self.earn(i64::try_from(seconds).unwrap_or(0).saturating_mul(PER_SECOND));
        }
        self.left.set(self.left.get() - cost);
    }
}

impl Scanner {
    /// Books the frames that begin in these bytes; how many.
    fn scan(&mut self, mut bytes: &[u8], budget: &Budget) -> usize {
        let mut frames = 0;
        // A frame without payload ends with its header.
        while !bytes.is_empty() || (self.skip == 0 && self.ends_head) {
            let (skipped, rest) = bytes.split_at(self.skip.min(bytes.len()));
            self.skip -= skipped.len();
            bytes = rest;
            if budget.head_since.get().is_some() {
                budget.head_came.set(budget.head_came.get() + skipped.len());
            }
            if let Some(increment) = &mut self.increment {
                *increment =
                    skipped.iter().fold(*increment, |all, byte| all << 8 | u32::from(*byte));
                if self.skip == 0 {
                    budget.widen(i64::from(*increment & 0x7fff_ffff));
                    self.increment = None;
                }
            }
            let taken = (FRAME_HEADER - self.have).min(bytes.len());
            if self.skip == 0 && std::mem::take(&mut self.ends_head) {
                budget.head_since.set(None);
                budget.head_came.set(0);
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
                frames += 1;
            }
        }
        frames
    }

    /// Books a frame by its header (RFC 9113 section 4.1); the length of its payload.
    fn frame(&mut self, budget: &Budget) -> usize {
        let [a, b, c, kind, flags, stream @ ..] = self.header;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let end_stream = flags & 1 == 1;
        // Answers have a time-out of their own; the clock is not asked for each of their heads.
        if budget.peer == Peer::Client && (kind == HEADERS || kind == CONTINUATION) {
            let since = budget.head_since.get().unwrap_or_else(Instant::now);
            budget.head_since.set(Some(since));
            self.ends_head = flags & END_HEADERS != 0;
        }
        let is_of_session = u32::from_be_bytes(stream) & 0x7fff_ffff == 0;
        let widens = kind == WINDOW_UPDATE && is_of_session && length == size_of::<u32>();
        self.increment = (budget.peer == Peer::Upstream && widens).then_some(0);
        self.since_loose = self.since_loose.saturating_add(FRAME_HEADER + length);
        if kind == DATA && length < LOOSE {
            let in_a_buffer = self.since_loose >= BUFFER;
            budget.loose(in_a_buffer);
            self.since_loose = if in_a_buffer { 0 } else { self.since_loose };
        }
        // A longer one the h2 crate refuses by its length: mostly it is HTTP/1.
        let charged = if length <= LONGEST { length } else { 0 };
        let useless = 1 + i64::try_from(charged).unwrap_or(0) / EARNED_BY;
        match kind {
            0 if length == 0 && !end_stream => budget.spend(10),
            0 => budget.earn(1 + i64::try_from(length).unwrap_or(0) / EARNED_BY),
            // Of interim answers there may be as many as an upstream likes.
            1 if budget.peer == Peer::Upstream => budget.spend(1),
            1 => budget.earn(2),
            // SETTINGS, unless it is an acknowledgement: nobody asked for a second one, and the h2 crate ends that.
            4 if flags & 1 == 0 => budget.spend(20),
            // PING is answered; of acknowledgements there is one in the life of a connection.
            6 => budget.spend(2),
            // PRIORITY, RST_STREAM, GOAWAY, WINDOW_UPDATE and what nobody knows.
            2 | 3 | 7 | 8 | 10.. => budget.spend(useless),
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
        let is_upstream = this.state.peer == Peer::Upstream;
        if is_upstream {
            ready!(turn::poll_room(cx));
        }
        if !this.state.is_scattered() {
            this.holds_back = false;
        } else if !std::mem::replace(&mut this.holds_back, true) {
            // Nothing more is read before its bodies are gathered.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buffer))?;
        let came = &buffer.filled()[before..];
        let frames = this.scanner.borrow_mut().scan(came, &this.state);
        if is_upstream {
            turn::moved(came.len() + FRAME_WORK * frames);
            this.state.heard.set(crate::now());
            if this.state.is_spent() {
                return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
            }
        }
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
        this.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.io).poll_write_vectored(cx, slices))?;
        this.wrote(written);
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

#[cfg(test)]
mod tests {
    use super::{Budget, Guarded, Peer, RESETS, RESETS_PER_SECOND, Scanner, WINDOW};
    use crate::Io;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::pin::Pin;
    use std::task::Poll;
    use std::time::Duration;
    use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_broken_off_are_bounded_at_any_pace() {
        let budget = Budget::new(Peer::Client);
        for _ in 0..RESETS {
            budget.reset();
        }
        assert!(!budget.is_spent(), "a browser leaves a page");
        budget.completed();
        budget.reset();
        assert!(!budget.is_spent(), "an answer that was taken gives one back");
        for _ in 0..2 * RESETS_PER_SECOND {
            tokio::time::advance(Duration::from_millis(200)).await;
            budget.reset();
        }
        assert!(!budget.is_spent(), "at this pace it may go on");
        let mut paced = 0;
        while !budget.is_spent() {
            tokio::time::advance(Duration::from_millis(100)).await;
            budget.reset();
            paced += 1;
        }
        assert!(paced <= 20, "{paced}");
    }

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
            let (budget, mut scanner) = (Budget::new(Peer::Upstream), Scanner::default());
            budget.gone(100);
            for piece in said.chunks(size) {
                scanner.scan(piece, &budget);
            }
            assert_eq!(budget.window(), WINDOW - 100 + 7 + 65_536, "pieces of {size}");
        }
    }

    #[test]
    fn a_head_weighs_what_came_of_it_and_not_what_was_announced() {
        let (budget, mut scanner) = (Budget::new(Peer::Client), Scanner::default());
        // HEADERS of 256 bytes, and CONTINUATION of 3, which ends the head.
        scanner.scan(&[0, 1, 0, 1, 0, 0, 0, 0, 1], &budget);
        assert!(budget.head_since().is_some());
        assert_eq!(budget.head_came(), 0);
        scanner.scan(&[0; 100], &budget);
        assert_eq!(budget.head_came(), 100);
        scanner.scan(&[0; 156], &budget);
        scanner.scan(&[0, 0, 3, 9, 4, 0, 0, 0, 1, 0, 0], &budget);
        assert_eq!(budget.head_came(), 258);
        scanner.scan(&[0], &budget);
        assert_eq!((budget.head_since(), budget.head_came()), (None, 0));
    }

    #[tokio::test]
    async fn a_frame_counts_in_a_turn_as_work_whatever_its_length() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (own, peer) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (own, (mut peer, _)) = (own.expect("connected"), peer.expect("accepted"));
        let frame = [0, 0, 1, 0, 0, 0, 0, 0, 1, b'x'];
        peer.write_all(&frame.repeat(6_000)).await.expect("the system holds it");
        own.readable().await.expect("it is there");
        let (mut guarded, _) = Guarded::upstream(Io::Plain(own));
        let (mut read, mut room) = (0, [0; 8 << 10]);
        poll_fn(|cx| {
            let mut buffer = ReadBuf::new(&mut room);
            while Pin::new(&mut guarded).poll_read(cx, &mut buffer).is_ready() {
                read += buffer.filled().len();
                buffer.clear();
            }
            Poll::Ready(())
        })
        .await;
        assert!((8 << 10..=24 << 10).contains(&read), "{read} bytes in one turn");
    }

    #[tokio::test(start_paused = true)]
    async fn acknowledgements_that_nobody_asked_for_are_paid_for() {
        let budget = Budget::new(Peer::Client);
        let mut scanner = Scanner::default();
        let acknowledged = [0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        for _ in 0..500 {
            scanner.scan(&acknowledged, &budget);
        }
        assert!(!budget.is_spent());
        scanner.scan(&acknowledged, &budget);
        assert!(budget.is_spent());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_may_acknowledge_and_measure_and_no_more() {
        let window: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let ping: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let interim: &[u8] = &[0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
        for peer in [Peer::Client, Peer::Upstream] {
            let (budget, mut scanner) = (Budget::new(peer), Scanner::default());
            for _ in 0..100_000 {
                // As gRPC does for each small message.
                budget.sent();
                [window, window, ping].iter().for_each(|frame| {
                    scanner.scan(frame, &budget);
                });
            }
            assert!(!budget.is_spent(), "{peer:?}");
        }
        for of_nobody in [window, ping, interim] {
            let (budget, mut scanner) = (Budget::new(Peer::Upstream), Scanner::default());
            let frames = std::iter::repeat_with(|| scanner.scan(of_nobody, &budget));
            let frames = frames.take_while(|_| !budget.is_spent()).count();
            assert!((200..=1_000).contains(&frames), "{frames}");
        }
        let budget = Budget::new(Peer::Upstream);
        budget.spend(super::BUDGET);
        budget.asked();
        assert_eq!(budget.left.get(), super::ASKED);
    }
}
