//! Reads the frames of an HTTP/2 peer as they come by, for what the h2 crate does not bound and does not tell: each is
//! booked by its header.

use super::budget::{Budget, EARNED_BY};
use super::loose::Loose;
use super::seen::Seen;
use super::unfinished::Unfinished;
use crate::control::Control;
use crate::io::Io;
use crate::turn;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a body that a frame of an upstream counts as, in a turn of the thread: to read one is work.
const FRAME_WORK: usize = 64;
/// The longest frame that anybody may send us (RFC 9113 section 4.2).
const LONGEST: usize = 16 << 10;
const PREFACE: usize = 24;
const FRAME_HEADER: usize = 9;

/// Types of frames (RFC 9113 section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// Flags of DATA, of SETTINGS, and of HEADERS and CONTINUATION.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection whose frames are read.
#[derive(Debug)]
pub struct Guarded {
    io: Io,
    peer: Peer,
    scanner: RefCell<Scanner>,
    /// It was not read from for once.
    holds_back: bool,
}

/// What is known of the frames that a client sends.
#[derive(Debug, Default)]
pub struct ClientFrames {
    /// What may be of no use.
    pub budget: Rc<Budget>,
    /// Pieces of bodies that lie about.
    pub loose: Loose,
    /// The head that is coming in.
    pub head: Unfinished,
    /// Says how the connection ends.
    control: Rc<Control>,
}

/// What is known of those that an upstream sends.
#[derive(Debug, Default)]
pub struct UpstreamFrames {
    /// What may be of no use.
    pub budget: Budget,
    /// Pieces of bodies that lie about.
    pub loose: Loose,
    /// What it says of itself.
    pub seen: Seen,
}

/// Who sends the frames.
#[derive(Debug)]
enum Peer {
    Client(Rc<ClientFrames>),
    Upstream(Rc<UpstreamFrames>),
}

impl Peer {
    fn budget(&self) -> &Budget {
        match self {
            Self::Client(frames) => &frames.budget,
            Self::Upstream(frames) => &frames.budget,
        }
    }

    fn loose(&self) -> &Loose {
        match self {
            Self::Client(frames) => &frames.loose,
            Self::Upstream(frames) => &frames.loose,
        }
    }

    fn as_client(&self) -> Option<&ClientFrames> {
        match self {
            Self::Client(frames) => Some(frames),
            Self::Upstream(_) => None,
        }
    }

    fn as_upstream(&self) -> Option<&UpstreamFrames> {
        match self {
            Self::Client(_) => None,
            Self::Upstream(frames) => Some(frames),
        }
    }
}

#[derive(Debug, Default)]
struct Scanner {
    header: [u8; FRAME_HEADER],
    have: usize,
    skip: usize,
    /// The payload that is skipped ends a head.
    ends_head: bool,
    /// It says how much more a session takes, and said so much of that.
    increment: Option<u32>,
}

impl Guarded {
    /// Reads the frames of a client, which start after the preface.
    pub fn client(io: Io, control: &Rc<Control>) -> (Self, Rc<ClientFrames>) {
        let frames = Rc::new(ClientFrames { control: control.clone(), ..ClientFrames::default() });
        (Self::new(io, Peer::Client(frames.clone()), PREFACE), frames)
    }

    /// Reads those of an upstream, which has no preface. Once it has spent its budget nothing more is read.
    pub fn upstream(io: Io) -> (Self, Rc<UpstreamFrames>) {
        let frames = Rc::<UpstreamFrames>::default();
        (Self::new(io, Peer::Upstream(frames.clone()), 0), frames)
    }

    fn new(io: Io, peer: Peer, skip: usize) -> Self {
        let scanner = RefCell::new(Scanner { skip, ..Scanner::default() });
        Self { io, peer, scanner, holds_back: false }
    }

    fn wrote(&self, bytes: usize) {
        self.peer.budget().earn(i64::try_from(bytes).unwrap_or(0) / EARNED_BY);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.peer.as_client().is_some_and(|client| client.control.resets()) {
            self.io.reset();
        }
    }
}

impl Scanner {
    /// Books the frames that begin in these bytes; how many.
    fn scan(&mut self, mut bytes: &[u8], peer: &Peer) -> usize {
        let mut frames = 0;
        // A frame without payload ends with its header.
        while !bytes.is_empty() || (self.skip == 0 && self.ends_head) {
            let (skipped, rest) = bytes.split_at(self.skip.min(bytes.len()));
            self.skip -= skipped.len();
            bytes = rest;
            self.skipped(skipped, peer);
            let taken = (FRAME_HEADER - self.have).min(bytes.len());
            if self.skip > 0 || taken == 0 {
                continue;
            }
            self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == FRAME_HEADER {
                self.have = 0;
                self.skip = self.frame(peer);
                frames += 1;
            }
        }
        frames
    }

    /// So much of a payload was skipped; all of it, where nothing is left to be skipped.
    fn skipped(&mut self, bytes: &[u8], peer: &Peer) {
        if let Some(client) = peer.as_client() {
            client.head.comes(bytes.len());
            if self.skip == 0 && std::mem::take(&mut self.ends_head) {
                client.head.ends();
            }
        }
        if let (Some(upstream), Some(said)) = (peer.as_upstream(), &mut self.increment) {
            *said = bytes.iter().fold(*said, |all, byte| all << 8 | u32::from(*byte));
            if self.skip == 0 {
                upstream.seen.widen(i64::from(*said & 0x7fff_ffff));
                self.increment = None;
            }
        }
    }

    /// Books a frame by its header (RFC 9113 section 4.1); the length of its payload.
    fn frame(&mut self, peer: &Peer) -> usize {
        let [a, b, c, kind, flags, stream @ ..] = self.header;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        match peer {
            // Answers have a time-out of their own; the clock is not asked for each of their heads.
            Peer::Client(client) if matches!(kind, HEADERS | CONTINUATION) => {
                client.head.begins();
                self.ends_head = flags & END_HEADERS != 0;
            }
            Peer::Client(_) => {}
            Peer::Upstream(_) => {
                let is_of_session = u32::from_be_bytes(stream) & 0x7fff_ffff == 0;
                let widens = kind == WINDOW_UPDATE && length == size_of::<u32>();
                self.increment = (is_of_session && widens).then_some(0);
            }
        }
        peer.loose().comes(FRAME_HEADER + length, (kind == DATA).then_some(length));
        // A longer one the h2 crate refuses by its length: mostly it is HTTP/1.
        let charged = if length <= LONGEST { length } else { 0 };
        let useless = 1 + i64::try_from(charged).unwrap_or(0) / EARNED_BY;
        let budget = peer.budget();
        match kind {
            DATA if length == 0 && flags & END_STREAM == 0 => {
                peer.as_upstream().into_iter().for_each(|upstream| upstream.seen.came_empty());
                budget.spend(10);
            }
            DATA => budget.earn(1 + i64::try_from(length).unwrap_or(0) / EARNED_BY),
            // Of interim answers there may be as many as an upstream likes.
            HEADERS if peer.as_upstream().is_some() => budget.spend(1),
            HEADERS => budget.earn(2),
            // Nobody asked for a second acknowledgement, and the h2 crate ends that.
            SETTINGS if flags & ACK != 0 => {}
            SETTINGS => budget.spend(20),
            // It is answered; of acknowledgements there is one in the life of a connection.
            PING => budget.spend(2),
            PUSH_PROMISE | CONTINUATION => {}
            // PRIORITY, RST_STREAM, GOAWAY, WINDOW_UPDATE and what nobody knows.
            _ => budget.spend(useless),
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
        if this.peer.as_upstream().is_some() {
            ready!(turn::poll_room(cx));
        }
        if !this.peer.loose().is_scattered() {
            this.holds_back = false;
        } else if !std::mem::replace(&mut this.holds_back, true) {
            // Nothing more is read before its bodies are gathered.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buffer))?;
        let came = &buffer.filled()[before..];
        let frames = this.scanner.borrow_mut().scan(came, &this.peer);
        if let Some(upstream) = this.peer.as_upstream() {
            turn::moved(came.len() + FRAME_WORK * frames);
            upstream.seen.hear();
            if upstream.budget.is_spent() {
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
    use super::super::seen::WINDOW;
    use super::{ClientFrames, Guarded, Peer, Scanner, UpstreamFrames};
    use crate::Io;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::Poll;
    use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
    use tokio::net::{TcpListener, TcpStream};

    fn client() -> Peer {
        Peer::Client(Rc::default())
    }

    fn upstream() -> Peer {
        Peer::Upstream(Rc::default())
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
            let (frames, mut scanner) = (Rc::<UpstreamFrames>::default(), Scanner::default());
            frames.seen.gone(100);
            for piece in said.chunks(size) {
                scanner.scan(piece, &Peer::Upstream(frames.clone()));
            }
            assert_eq!(frames.seen.window(), WINDOW - 100 + 7 + 65_536, "pieces of {size}");
        }
    }

    #[test]
    fn a_head_weighs_what_came_of_it_and_not_what_was_announced() {
        let (frames, mut scanner) = (Rc::<ClientFrames>::default(), Scanner::default());
        let mut scan = |bytes: &[u8]| scanner.scan(bytes, &Peer::Client(frames.clone()));
        // HEADERS of 256 bytes, and CONTINUATION of 3, which ends the head.
        scan(&[0, 1, 0, 1, 0, 0, 0, 0, 1]);
        assert!(frames.head.since().is_some());
        assert_eq!(frames.head.came(), 0);
        scan(&[0; 100]);
        assert_eq!(frames.head.came(), 100);
        scan(&[0; 156]);
        scan(&[0, 0, 3, 9, 4, 0, 0, 0, 1, 0, 0]);
        assert_eq!(frames.head.came(), 258);
        scan(&[0]);
        assert_eq!((frames.head.since(), frames.head.came()), (None, 0));
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
        let (client, mut scanner) = (client(), Scanner::default());
        let acknowledged = [0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        for _ in 0..500 {
            scanner.scan(&acknowledged, &client);
        }
        assert!(!client.budget().is_spent());
        scanner.scan(&acknowledged, &client);
        assert!(client.budget().is_spent());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_may_acknowledge_and_measure_and_no_more() {
        let window: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let ping: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let interim: &[u8] = &[0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
        for peer in [client(), upstream()] {
            let mut scanner = Scanner::default();
            for _ in 0..100_000 {
                // As gRPC does for each small message.
                peer.budget().sent();
                [window, window, ping].iter().for_each(|frame| {
                    scanner.scan(frame, &peer);
                });
            }
            assert!(!peer.budget().is_spent(), "{peer:?}");
        }
        for of_nobody in [window, ping, interim] {
            let (upstream, mut scanner) = (upstream(), Scanner::default());
            let frames = std::iter::repeat_with(|| scanner.scan(of_nobody, &upstream));
            let frames = frames.take_while(|_| !upstream.budget().is_spent()).count();
            assert!((200..=1_000).contains(&frames), "{frames}");
        }
    }
}
