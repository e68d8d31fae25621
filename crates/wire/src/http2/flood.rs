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
/// Flags of DATA, of SETTINGS, of HEADERS, PUSH_PROMISE and CONTINUATION, and of DATA again.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
/// The longest DATA that may be padding and nothing else: it has one byte that says how much.
const PADDING: usize = 256;

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
    /// The head, or the trailers, that is coming in.
    pub head: Unfinished,
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

    fn head(&self) -> &Unfinished {
        match self {
            Self::Client(frames) => &frames.head,
            Self::Upstream(frames) => &frames.head,
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
    /// It is DATA of this length, and its first byte says how much of that is padding.
    padded: Option<usize>,
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
        match &self.peer {
            Peer::Client(client) => self.io.leaves(&client.control),
            Peer::Upstream(_) => self.io.ends(),
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
        let head = peer.head();
        head.comes(bytes.len());
        if self.skip == 0 {
            if std::mem::take(&mut self.ends_head) { head.ends() } else { head.is_read() }
        }
        if let (Some(length), Some(padding)) = (self.padded, bytes.first()) {
            self.padded = None;
            data(length.saturating_sub(1 + usize::from(*padding)), peer);
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
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        // What is promised has a head, too, though nobody may promise us anything.
        let is_of_head = matches!(kind, HEADERS | PUSH_PROMISE | CONTINUATION);
        self.ends_head = is_of_head && flags & END_HEADERS != 0;
        match peer {
            Peer::Client(client) if is_of_head => client.head.begins_in_time(stream),
            Peer::Client(_) => {}
            // Answers have a time-out of their own; the clock is not asked for each of their heads.
            Peer::Upstream(upstream) if is_of_head => upstream.head.begins(stream),
            Peer::Upstream(_) => {
                let widens = kind == WINDOW_UPDATE && length == size_of::<u32>();
                self.increment = (stream == 0 && widens).then_some(0);
            }
        }
        peer.loose().comes(FRAME_HEADER + length, (kind == DATA).then_some(length));
        // A longer one the h2 crate refuses by its length: mostly it is HTTP/1.
        let charged = if length <= LONGEST { length } else { 0 };
        let useless = 1 + i64::try_from(charged).unwrap_or(0) / EARNED_BY;
        let budget = peer.budget();
        match kind {
            DATA if flags & END_STREAM != 0 => earn_by(length, budget),
            DATA if flags & PADDED != 0 && (1..=PADDING).contains(&length) => {
                self.padded = Some(length);
            }
            DATA => data(length, peer),
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

/// Books a piece of a body that does not end its stream.
fn data(length: usize, peer: &Peer) {
    if length > 0 {
        return earn_by(length, peer.budget());
    }
    peer.as_upstream().into_iter().for_each(|upstream| upstream.seen.came_empty());
    peer.budget().spend(10);
}

fn earn_by(length: usize, budget: &Budget) {
    budget.earn(1 + i64::try_from(length).unwrap_or(0) / EARNED_BY);
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
    use super::super::LONGEST_HEAD;
    use super::super::seen::WINDOW;
    use super::{ClientFrames, Guarded, Peer, Scanner, UpstreamFrames};
    use crate::Io;
    use rustix::net::sockopt::tcp_user_timeout;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::Poll;
    use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
    use tokio::net::{TcpListener, TcpStream};

    const LIST: usize = LONGEST_HEAD as usize;

    fn client() -> Peer {
        Peer::Client(Rc::default())
    }

    fn upstream() -> Peer {
        Peer::Upstream(Rc::default())
    }

    #[tokio::test]
    async fn what_an_upstream_does_not_take_of_a_session_that_ended_stays_for_little_time() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let tcp = TcpStream::connect(address).await.expect("it listens");
        let same = tcp.as_fd().try_clone_to_owned().expect("another handle");
        drop(Guarded::upstream(Io::Plain(tcp)));
        assert_eq!(tcp_user_timeout(&same).expect("a number"), 30_000);
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
        assert_eq!(frames.head.held(LIST), 0);
        scan(&[0; 100]);
        assert_eq!(frames.head.held(LIST), 100);
        scan(&[0; 156]);
        // Each byte may be a field.
        let fields = 256 * 256;
        assert_eq!(frames.head.held(LIST), 256 + fields);
        scan(&[0, 0, 3, 9, 4, 0, 0, 0, 1, 0, 0]);
        assert_eq!(frames.head.held(LIST), 258 + fields);
        scan(&[0]);
        assert_eq!((frames.head.since(), frames.head.held(LIST)), (None, 0));
    }

    #[test]
    fn what_is_not_whole_of_an_answer_or_a_promise_weighs_what_is_made_of_it() {
        // HEADERS and PUSH_PROMISE, which h2 reads as well, and CONTINUATION with the rest; DATA is no part of a head.
        for kind in [1, 5] {
            for size in [1, 4, 400] {
                let (frames, mut scanner) = (Rc::<UpstreamFrames>::default(), Scanner::default());
                let mut scan = |bytes: &[u8]| {
                    for piece in bytes.chunks(size) {
                        scanner.scan(piece, &Peer::Upstream(frames.clone()));
                    }
                };
                scan(&[0, 0, 2, 0, 0, 0, 0, 0, 7, b'x', b'x']);
                assert_eq!((frames.head.stream(), frames.head.held(LIST)), (None, 0));
                scan(&[0, 0, 100, kind, 0, 0, 0, 0, 7]);
                scan(&[0; 99]);
                assert_eq!((frames.head.stream(), frames.head.held(LIST)), (Some(7), 99));
                scan(&[0]);
                assert_eq!(frames.head.held(LIST), 100 + 100 * 256);
                // However much comes of it, it holds no more fields than a list has.
                for _ in 0..2 {
                    scan(&[0, 0x27, 0x10, 9, 0, 0, 0, 0, 7]);
                    scan(&[0; 10_000]);
                }
                assert_eq!(frames.head.held(LIST), 20_100 + 1_985 * 256);
                scan(&[0, 0, 0, 9, 4, 0, 0, 0, 7]);
                assert_eq!((frames.head.stream(), frames.head.held(LIST)), (None, 0));
                assert_eq!(frames.head.since(), None, "an answer has its own time");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn padding_alone_is_an_empty_piece_and_pays_for_nothing() {
        let padded = |padding: u8, data: &[u8], flags: u8| {
            let length = u8::try_from(data.len() + 1 + usize::from(padding)).expect("it is short");
            let mut frame = vec![0, 0, length, 0, 8 | flags, 0, 0, 0, 1, padding];
            frame.extend_from_slice(data);
            frame.extend(std::iter::repeat_n(0, padding.into()));
            frame
        };
        for size in [1, 1000] {
            let (frames, mut scanner) = (Rc::<UpstreamFrames>::default(), Scanner::default());
            let mut scan = |bytes: &[u8]| {
                for piece in bytes.chunks(size) {
                    scanner.scan(piece, &Peer::Upstream(frames.clone()));
                }
            };
            for _ in 0..1_000 {
                scan(&padded(100, b"x", 0));
            }
            assert_eq!(frames.seen.empty(), 0, "who pads small messages sends messages");
            scan(&padded(0, b"", 1));
            assert_eq!(frames.seen.empty(), 0, "it ends its stream");
            for _ in 0..50 {
                scan(&padded(0, b"", 0));
                scan(&padded(200, b"", 0));
            }
            assert_eq!(frames.seen.empty(), 100);
            assert!(!frames.budget.is_spent());
            scan(&padded(0, b"", 0));
            assert!(frames.budget.is_spent());
        }
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
