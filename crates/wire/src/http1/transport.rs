//! The client's side of an HTTP/1 connection: one buffer in, one way out, shared by the loop that writes answers and
//! the body that is still being read.

use super::framing::{Decoder, Framing};
use super::lines::{has_bare_newline, head_end};
use super::{Received, write};
use crate::io::Io;
use crate::owed::Debt;
use crate::server_tls::SEALED;
use crate::{
    Body, BodyError, BodySource, Control, Frame, Interims, Length, Patience, Pipe, Timer,
    is_token_byte,
};
use bytes::{Buf, Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::Instant;

const LINE_END: &[u8] = b"\r\n";
/// Empty lines that may precede a request (RFC 9112 section 2.2).
const EMPTY_LINES: u8 = 4;
/// Bytes behind which nothing more is read ahead while a request is still being answered: they count for nobody.
const READ_AHEAD: usize = 4 << 10;
/// How often it is looked whether a client has gone who has sent more than that.
const LOOKS: Duration = Duration::from_secs(5);
/// Bytes of interim answers that wait for a client who is slow; they count for nobody, either.
const EARLY: usize = 16 << 10;
/// So many requests of a client that came before they were waited for are answered before others have their turn, where
/// each of them was all that had come.
const AT_ONCE: u8 = 16;
/// Bytes that the system holds at least when it takes no more, however little is left over here.
const SYSTEM_HOLDS: usize = 16 << 10;

/// The client's connection.
#[derive(Debug)]
pub struct Client {
    io: RefCell<Io>,
    buffer: RefCell<BytesMut>,
    /// That of the request at hand, if it has one.
    body: RefCell<Option<Box<BodyState>>>,
    /// Interim answers of the request that is being answered, if it has room for any.
    interims: RefCell<Option<Rc<Interims>>>,
    /// What goes out before the next answer.
    early: RefCell<BytesMut>,
    /// Everything else that is known about the connection.
    pub control: Rc<Control>,
    timer: Timer,
    debt: Debt,
    /// Bytes of answers, all of which the client may still have to take.
    sent: Cell<usize>,
    /// Requests that nobody had to wait for, up to [`AT_ONCE`].
    at_once: Cell<u8>,
    /// Whether the timer has the deadline of the head that has begun.
    is_timed: Cell<bool>,
}

impl Drop for Client {
    /// However the connection ends: for who takes no more of much that was sent it is not kept for long.
    fn drop(&mut self) {
        if self.sent.get() >= SYSTEM_HOLDS {
            self.io.get_mut().leaves(&self.control);
        }
    }
}

#[derive(Debug)]
struct BodyState {
    decoder: Decoder,
    continue_first: bool,
    received: u64,
    patience: Patience,
    timer: Timer,
}

/// What came instead of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHead {
    /// The client closed, or the connection is not wanted any longer; nothing is owed.
    Over,
    /// None began in time; nothing is owed.
    Idle,
    /// A head began and did not end in time.
    Slow,
    /// It is no HTTP/1 head, whatever may still come.
    Malformed,
    /// It is longer than allowed.
    TooLong {
        /// In its first line.
        in_line: bool,
    },
}

impl Client {
    /// A connection whose first bytes may have been read already.
    pub fn new(io: Io, buffer: BytesMut, control: Rc<Control>) -> Self {
        Self {
            io: RefCell::new(io),
            buffer: RefCell::new(buffer),
            body: RefCell::default(),
            interims: RefCell::default(),
            early: RefCell::default(),
            control,
            timer: Timer::new(Duration::from_secs(60)),
            debt: Debt::default(),
            sent: Cell::default(),
            at_once: Cell::default(),
            is_timed: Cell::default(),
        }
    }

    /// The head that has begun has this time yet.
    pub fn has_left(&self, time: Duration) {
        self.timer.reset(time);
        self.is_timed.set(true);
    }

    /// A request is answered, and the next may be there already. Who sends many at once has them answered in turns with
    /// others: each of those behind which more has come, and now and then one that is alone, as that of a client who is
    /// quicker.
    pub async fn take_turn(&self) {
        let number = self.at_once.get() + 1;
        let is_due = number >= AT_ONCE || !self.buffer.borrow().is_empty();
        self.at_once.set(if is_due { 0 } else { number });
        if is_due {
            yield_now().await;
        }
    }

    /// The next head, whole. `idle` is the time until its first byte that is no empty line's, `limit` that from there
    /// to its end.
    pub fn head(
        &self,
        idle: Duration,
        limit: Duration,
        sizes: (usize, usize),
    ) -> impl Future<Output = Result<Received, NoHead>> {
        self.debt.begin(&self.control.owed);
        let (mut scanned, mut empty_lines) = (0, EMPTY_LINES);
        let at_most = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let sizes = (at_most(sizes.0), at_most(sizes.1));
        let mut started = self.has_begun();
        // Whether it was told that a head has begun: most are whole as soon as they do.
        let mut timed = started;
        if !(self.is_timed.take() && started) {
            self.timer.reset(if started { limit } else { idle });
        }
        let (mut turn, mut looked) = (None, false);
        // Not an async function, which would hold its arguments twice, and small numbers: it is what an idle connection
        // consists of.
        poll_fn(move |cx| {
            loop {
                if let Some(found) = self.take_head(&mut scanned, &mut empty_lines, sizes) {
                    self.control.unfinished.set(0);
                    return Poll::Ready(found);
                }
                let read = self.io.borrow_mut().poll_read_head(cx, &mut self.buffer.borrow_mut());
                if read.is_pending() {
                    started = self.has_begun();
                    if let held @ 1.. = self.held() {
                        self.control.head.set(held);
                        self.control.unfinished.set(self.control.unfinished.get().max(1));
                    }
                }
                match read {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(NoHead::Over)),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending if !started && self.control.poll_closing(cx) => {
                        if looked || self.poll_cut(cx) {
                            return Poll::Ready(Err(NoHead::Over));
                        }
                        // A request may be there of which the event loop has not heard: one turn of it will tell.
                        let turn = turn.get_or_insert_with(|| Box::pin(yield_now()));
                        ready!(turn.as_mut().poll(cx));
                        looked = true;
                    }
                    Poll::Pending if self.control.unfinished.get() > 0 && self.poll_cut(cx) => {
                        return Poll::Ready(Err(NoHead::Over));
                    }
                    Poll::Pending => {
                        if std::mem::replace(&mut timed, started) != started {
                            self.timer.reset(if started { limit } else { idle });
                        }
                        ready!(self.timer.poll(cx));
                        self.control.unfinished.set(0);
                        return Poll::Ready(Err(if started { NoHead::Slow } else { NoHead::Idle }));
                    }
                }
            }
        })
    }

    /// Whether something of a head is there. Empty lines are nothing: some clients send one behind a body.
    fn has_begun(&self) -> bool {
        let buffer = self.buffer.borrow();
        !(buffer.is_empty() || LINE_END.starts_with(&buffer[..]))
    }

    /// Bytes of a head that is not whole, and of what TLS has of it or of its own.
    fn held(&self) -> usize {
        self.buffer.borrow().len() + self.io.borrow().held()
    }

    /// Cuts a whole head off the buffer, if there is one.
    fn take_head(
        &self,
        scanned: &mut u32,
        empty_lines: &mut u8,
        sizes: (u32, u32),
    ) -> Option<Result<Received, NoHead>> {
        let (line, total) = (sizes.0 as usize, sizes.1 as usize);
        let mut buffer = self.buffer.borrow_mut();
        if buffer.is_empty() {
            return None;
        }
        if *scanned == 0 {
            while *empty_lines > 0 && buffer.starts_with(LINE_END) {
                *empty_lines -= 1;
                buffer.advance(LINE_END.len());
            }
            if *empty_lines > 0 && buffer[..] == LINE_END[..1] {
                return None;
            }
            // In one look, unless it comes in pieces or has something to judge in it.
            if let Some(received) = Received::cut(&mut buffer, total) {
                return Some(Ok(received));
            }
        }
        match head_end(&buffer, *scanned as usize) {
            Some(end) if end <= total => Some(Ok(Received::unknown(buffer.split_to(end).freeze()))),
            None if !may_become_head(&buffer, *scanned as usize) => Some(Err(NoHead::Malformed)),
            None if buffer.len() <= line || (buffer.len() <= total && buffer.contains(&b'\n')) => {
                *scanned = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
                None
            }
            _ => Some(Err(NoHead::TooLong {
                in_line: !buffer[..buffer.len().min(line)].contains(&b'\n'),
            })),
        }
    }

    /// What came of a head that will not be read: it is taken.
    pub fn begun(&self) -> Bytes {
        self.buffer.borrow_mut().split().freeze()
    }

    /// Starts a body with this framing.
    pub fn start_body(
        self: &Rc<Self>,
        framing: Framing,
        expects_continue: bool,
        idle: Duration,
    ) -> Body {
        let is_none = framing == Framing::None && !expects_continue;
        *self.body.borrow_mut() = (!is_none).then(|| {
            Box::new(BodyState {
                decoder: Decoder::new(framing),
                continue_first: expects_continue,
                received: 0,
                patience: Patience::between(idle),
                timer: Timer::new(idle),
            })
        });
        match framing {
            Framing::None => Body::empty(),
            _ => Body::from_source(RequestBody(self.clone())),
        }
    }

    /// Nothing of the last request is asked for any more: a connection that is idle keeps nothing of it.
    pub fn rest(&self) {
        (*self.body.borrow_mut(), *self.interims.borrow_mut()) = (None, None);
        let mut buffer = self.buffer.borrow_mut();
        if buffer.is_empty() {
            // It still holds on to the memory of the last head.
            *buffer = BytesMut::new();
        }
    }

    /// Where interim answers of the request at hand go.
    pub fn interims(&self) -> Rc<Interims> {
        self.interims.borrow_mut().get_or_insert_default().clone()
    }

    /// What is left of the body.
    pub fn rest_of_body(self: &Rc<Self>) -> Body {
        Body::from_source(RequestBody(self.clone()))
    }

    /// Whether the body was read to its end.
    pub fn body_is_done(&self) -> bool {
        self.body.borrow().as_ref().is_none_or(|body| body.decoder.is_done())
    }

    /// Whether the client still waits for `100 Continue`.
    pub fn awaits_continue(&self) -> bool {
        self.body.borrow().as_ref().is_some_and(|body| body.continue_first)
    }

    /// Bytes of the body that arrived.
    pub fn body_received(&self) -> u64 {
        self.body.borrow().as_ref().map_or(0, |body| body.received)
    }

    /// Ready when the client has gone while its whole request is being answered; reads ahead a little.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        while self.body_is_done() && self.buffer.borrow().len() < READ_AHEAD {
            match ready!(self.io.borrow_mut().poll_read_head(cx, &mut self.buffer.borrow_mut())) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {}
            }
        }
        if self.body_is_done() { self.poll_gone_behind(cx) } else { Poll::Pending }
    }

    /// The same of who has sent more ahead than is read: that its end came behind it nobody is told, so that the system
    /// is asked now and then. Nothing else waits for the timer meanwhile.
    #[cold]
    #[inline(never)]
    fn poll_gone_behind(&self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.io.borrow().has_hung_up() {
            self.timer.reset(LOOKS);
            ready!(self.timer.poll(cx));
        }
        Poll::Ready(())
    }

    /// Sends the interim answers that wait, as far as the client takes them. One that is slow gets no more of them.
    pub fn pass_interims(&self, cx: &mut Context<'_>) {
        let waits = |interims: &Rc<Interims>| !interims.is_empty();
        if self.interims.borrow().as_ref().is_some_and(waits) || !self.early.borrow().is_empty() {
            self.push_interims(cx);
        }
    }

    /// Whatever goes wrong here shows again with what comes after it.
    #[cold]
    fn push_interims(&self, cx: &mut Context<'_>) {
        for interim in self.interims.borrow().iter().flat_map(|interims| interims.take()) {
            let mut early = self.early.borrow_mut();
            if early.len() + interim.headers.size() <= EARLY {
                write::interim(&mut early, &interim);
            }
        }
        let mut io = self.io.borrow_mut();
        if let Poll::Ready(Ok(())) = io.poll_write_all(cx, &mut *self.early.borrow_mut()) {
            let _ = io.poll_flush_all(cx);
        }
    }

    /// What is left of interim answers, to go out with the answer; nothing may come between that and its body.
    pub fn take_interims(&self) -> BytesMut {
        if let Some(body) = &mut *self.body.borrow_mut() {
            body.continue_first = false;
        }
        self.early.take()
    }

    /// Writes all of `data`, as long as `patience` lasts.
    pub async fn write(&self, mut data: impl Buf, patience: &mut Patience) -> io::Result<()> {
        let all = data.remaining();
        let write = |io: &mut Io, cx: &mut Context<'_>| {
            let written = io.poll_write_all(cx, &mut data);
            (written, data.remaining())
        };
        self.send(all, write, patience).await
    }

    /// Whether it takes bytes from a pipe.
    pub fn takes_pipes(&self) -> bool {
        matches!(&*self.io.borrow(), Io::Plain(_))
    }

    /// Writes all that is in a pipe, as long as `patience` lasts.
    pub async fn write_pipe(&self, pipe: &mut Pipe, patience: &mut Patience) -> io::Result<()> {
        let all = pipe.held();
        let write = |io: &mut Io, cx: &mut Context<'_>| {
            let written = pipe.poll_empty(io, cx);
            (written, pipe.held())
        };
        self.send(all, write, patience).await
    }

    /// Has `write` write `all` bytes: it says how far it is, and how many are left.
    async fn send(
        &self,
        all: usize,
        mut write: impl FnMut(&mut Io, &mut Context<'_>) -> (Poll<io::Result<()>>, usize),
        patience: &mut Patience,
    ) -> io::Result<()> {
        self.debt.answer(&self.control.owed);
        self.sent.set(self.sent.get().saturating_add(all));
        let backlog = &self.control.backlog;
        let (mut left, mut waiting) = (all, 0);
        let written = poll_fn(|cx| {
            let before = left;
            let (written, rest) = write(&mut self.io.borrow_mut(), cx);
            left = rest;
            if before > left {
                patience.progressed((before - left) as u64);
            }
            if written.is_ready() {
                return written;
            }
            match std::mem::replace(&mut waiting, left) {
                0 => backlog.hold(waiting + SYSTEM_HOLDS),
                held => backlog.release(held - waiting),
            }
            if self.poll_cut(cx) {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            patience.poll_exhausted(&self.timer, cx).map(|_| Err(io::ErrorKind::TimedOut.into()))
        });
        let written = written.await;
        if waiting > 0 {
            backlog.release(waiting);
            backlog.forget(SYSTEM_HOLDS);
        }
        written
    }

    /// Pushes out what TLS may still hold, as long as `patience` lasts.
    pub async fn flush(&self, patience: &mut Patience) -> io::Result<()> {
        if matches!(&*self.io.borrow(), Io::Plain(_)) {
            return Ok(());
        }
        let backlog = &self.control.backlog;
        let mut held = 0;
        let flushed = poll_fn(|cx| {
            let flushed = self.io.borrow_mut().poll_flush_all(cx);
            if flushed.is_ready() {
                return flushed;
            }
            if held == 0 {
                held = SEALED;
                backlog.hold(held);
            }
            if self.poll_cut(cx) {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            patience.poll_exhausted(&self.timer, cx).map(|_| Err(io::ErrorKind::TimedOut.into()))
        });
        let flushed = flushed.await;
        if held > 0 {
            backlog.release(held);
            // It waits no longer: what comes next may be long in coming, and not for its sake.
            patience.progressed(0);
        }
        flushed
    }

    /// Ends the connection so that the client can still read what was written: closes the way out, then reads and
    /// drops for a little while (nginx: lingering_close), unless the process ends it. Of its last request nothing is
    /// kept.
    pub async fn linger(&self) {
        self.rest();
        // What came behind it as well, which may hold on to the memory of its head.
        *self.buffer.borrow_mut() = BytesMut::new();
        self.control.head.set(0);
        let limits = (Duration::from_secs(5), Duration::from_secs(30));
        let until = Instant::now() + limits.1;
        let mut waste = BytesMut::new();
        // Who does not read may still write.
        let _ = self.last_step(limits.0, |io, cx| io.poll_close(cx)).await;
        while Instant::now() < until {
            let read = self.last_step(limits.0, |io, cx| io.poll_read_head(cx, &mut waste));
            match read.await {
                Ok(1..) => waste.clear(),
                Ok(0) | Err(_) => break,
            }
        }
    }

    /// Something that is done with a connection at its end, within a time and unless the process ends it.
    async fn last_step<T>(
        &self,
        limit: Duration,
        mut step: impl FnMut(&mut Io, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> io::Result<T> {
        let step = poll_fn(|cx| {
            if self.poll_cut(cx) {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            step(&mut self.io.borrow_mut(), cx)
        });
        self.timer.within(limit, step).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Whether it must end at once, as [`Control::poll_cut`]; the connection knows then how.
    pub fn poll_cut(&self, cx: &Context<'_>) -> bool {
        self.control.poll_cut(cx) && self.cut()
    }

    #[cold]
    fn cut(&self) -> bool {
        self.io.borrow().leaves(&self.control);
        true
    }

    /// The connection itself, with what was read beyond the last request.
    pub fn parts(&mut self) -> (&mut Io, &mut BytesMut) {
        (self.io.get_mut(), self.buffer.get_mut())
    }

    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let frame = self.poll_body(cx);
        self.debt.waits(&self.control.owed, frame.is_pending());
        frame
    }

    fn poll_body(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        let mut body = self.body.borrow_mut();
        let Some(body) = &mut *body else { return Poll::Ready(Ok(None)) };
        if std::mem::take(&mut body.continue_first) && !body.decoder.is_done() {
            self.early.borrow_mut().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            self.push_interims(cx);
        }
        loop {
            let mut buffer = self.buffer.borrow_mut();
            match body.decoder.decode(&mut buffer).map_err(|_| BodyError::Malformed)? {
                Some(Frame::Data(data)) => {
                    body.received += data.len() as u64;
                    return Poll::Ready(Ok(Some(Frame::Data(data))));
                }
                Some(trailers) => return Poll::Ready(Ok(Some(trailers))),
                None if body.decoder.is_done() => return Poll::Ready(Ok(None)),
                None => {}
            }
            let expected = body.decoder.expected();
            let read = self.io.borrow_mut().poll_read_body(cx, &mut buffer, expected);
            match read {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(BodyError::Aborted)),
                Poll::Ready(Ok(count)) => {
                    self.control.owed.came(count);
                    body.patience.progressed(count as u64);
                }
                Poll::Pending if self.poll_cut(cx) => {
                    return Poll::Ready(Err(BodyError::Aborted));
                }
                Poll::Pending => {
                    ready!(body.patience.poll_exhausted(&body.timer, cx));
                    return Poll::Ready(Err(BodyError::Timeout));
                }
            }
        }
    }
}

/// Whether bytes may be the beginning of a head: it starts with a method, its lines end in CR LF, and the first one
/// names HTTP.
/// Of the first `scanned` bytes that is known but for the newline behind them.
fn may_become_head(bytes: &[u8], scanned: usize) -> bool {
    // A handshake of TLS, for one, need not be waited for.
    if bytes.first().is_some_and(|&byte| !is_token_byte(byte) && byte != b'\r' && byte != b'\n') {
        return false;
    }
    let names_http = |at| memchr::memmem::find(&bytes[..at], b" HTTP/").is_some();
    !has_bare_newline(bytes, scanned) && memchr::memchr(b'\n', bytes).is_none_or(names_http)
}

/// The body of the request that is being answered.
#[derive(Debug)]
struct RequestBody(Rc<Client>);

impl BodySource for RequestBody {
    fn length(&self) -> Length {
        match self.0.body.borrow().as_ref().map(|body| &body.decoder) {
            None | Some(Decoder::Done) => Length::Known(0),
            Some(Decoder::Length(remaining)) => Length::Known(*remaining),
            Some(_) => Length::Unknown,
        }
    }

    // Whether all of it lies in the connection's buffer.
    fn is_at_hand(&self) -> bool {
        match self.length() {
            Length::Known(length) => self.0.buffer.borrow().len() as u64 >= length,
            Length::Unknown => false,
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, BodyError>> {
        self.0.poll_frame(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::{Client, NoHead, Patience, SYSTEM_HOLDS};
    use crate::Control;
    use crate::io::Io;
    use bytes::BytesMut;
    use rustix::net::sockopt::tcp_user_timeout;
    use std::future::poll_fn;
    use std::io::ErrorKind;
    use std::net::Ipv4Addr;
    use std::os::fd::AsFd;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::Poll;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    #[tokio::test]
    async fn who_takes_nothing_holds_much_however_small_the_pieces_are() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address);
        let (client, accepted) = tokio::join!(client, listener.accept());
        let (_client, (ours, _)) = (client.expect("connected"), accepted.expect("accepted"));
        let control = Rc::<Control>::default();
        let writer = Client::new(Io::Plain(ours), BytesMut::new(), control.clone());
        let mut patience = Patience::between(Duration::from_secs(60));
        let piece = [0; 1000];
        let full = async { while writer.write(&piece[..], &mut patience).await.is_ok() {} };
        let held = async {
            while control.backlog.held() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = full => panic!("nobody ends it"),
            () = held => assert!(control.backlog.held() >= SYSTEM_HOLDS),
        }
    }

    #[tokio::test]
    async fn what_a_client_does_not_take_goes_with_its_connection_where_that_is_reset() {
        for (resets, end) in [(true, Some(ErrorKind::ConnectionReset)), (false, None)] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let address = listener.local_addr().expect("bound");
            let client = TcpStream::connect(address);
            let (client, accepted) = tokio::join!(client, listener.accept());
            let (mut client, (ours, _)) = (client.expect("connected"), accepted.expect("accepted"));
            let control = Rc::<Control>::default();
            let writer = Client::new(Io::Plain(ours), BytesMut::new(), control.clone());
            let mut patience = Patience::between(Duration::from_secs(60));
            let piece = [0; 64 << 10];
            let full = async { while writer.write(&piece[..], &mut patience).await.is_ok() {} };
            let ends = async {
                while control.backlog.held() == 0 {
                    tokio::task::yield_now().await;
                }
                if resets { control.reset() } else { control.cut() }
            };
            tokio::join!(full, ends);
            drop(writer);
            let read = client.read_to_end(&mut Vec::new()).await;
            assert_eq!(read.err().map(|error| error.kind()), end);
        }
    }

    #[tokio::test]
    async fn who_takes_nothing_is_reset_though_all_of_its_answer_was_written() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address);
        let (client, accepted) = tokio::join!(client, listener.accept());
        let (mut client, (ours, _)) = (client.expect("connected"), accepted.expect("accepted"));
        ours.writable().await.expect("it is open");
        while ours.try_write(&[0; 64 << 10]).is_ok() {}
        let control = Rc::<Control>::default();
        let idle = Client::new(Io::Plain(ours), BytesMut::new(), control.clone());
        let long = Duration::from_secs(60);
        let head = idle.head(long, long, (8 << 10, 32 << 10));
        let ends = async {
            tokio::task::yield_now().await;
            control.reset();
        };
        let (head, ()) = tokio::join!(head, ends);
        assert!(matches!(head, Err(NoHead::Over)), "{head:?}");
        drop(idle);
        let read = client.read_to_end(&mut Vec::new()).await;
        assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::ConnectionReset));
    }

    #[tokio::test]
    async fn the_system_keeps_for_little_time_what_was_sent_last_and_nobody_takes() {
        for (bytes, makes_way, seconds) in
            [(SYSTEM_HOLDS, true, 10), (SYSTEM_HOLDS, false, 30), (SYSTEM_HOLDS - 1, true, 0)]
        {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let address = listener.local_addr().expect("bound");
            let client = TcpStream::connect(address);
            let (client, accepted) = tokio::join!(client, listener.accept());
            let (_client, (ours, _)) = (client.expect("connected"), accepted.expect("accepted"));
            let same = ours.as_fd().try_clone_to_owned().expect("another handle");
            let control = Rc::<Control>::default();
            let writer = Client::new(Io::Plain(ours), BytesMut::new(), control.clone());
            let mut patience = Patience::between(Duration::from_secs(60));
            writer.write(&vec![0; bytes][..], &mut patience).await.expect("the system takes it");
            if makes_way {
                control.make_way();
            }
            drop(writer);
            let kept = tcp_user_timeout(&same).expect("a number");
            assert_eq!(kept, seconds * 1000, "{bytes} {makes_way}");
        }
    }

    #[tokio::test]
    async fn a_head_that_is_not_whole_weighs_and_can_be_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let mut peer = TcpStream::connect(address).await.expect("connects");
        let (tcp, _) = listener.accept().await.expect("is accepted");
        let control = Rc::new(Control::default());
        let client = Client::new(Io::Plain(tcp), BytesMut::new(), control.clone());
        let long = Duration::from_secs(60);
        let head = client.head(long, long, (8 << 10, 32 << 10));
        let cuts = async {
            let begun = format!("GET / HTTP/1.1\r\nA: {}\r\n", "a".repeat(5000));
            peer.write_all(begun.as_bytes()).await.expect("it is sent");
            while control.head.get() < begun.len() {
                tokio::task::yield_now().await;
            }
            control.look_at_head();
            assert_eq!(control.unfinished.get(), 2);
            control.cut();
        };
        let (head, ()) = tokio::join!(head, cuts);
        assert!(matches!(head, Err(NoHead::Over)), "{head:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_sent_no_more_than_empty_lines_is_idle() {
        let (idle, limit) = (Duration::from_secs(60), Duration::from_secs(3));
        let left = Duration::from_secs(1);
        for (sent, seconds, no_head) in [
            (&b""[..], 60, NoHead::Idle),
            (b"\r", 60, NoHead::Idle),
            (b"\r\n", 60, NoHead::Idle),
            (b"\r\n\r\n\r", 60, NoHead::Idle),
            (b"\r\nG", 3, NoHead::Slow),
        ] {
            for is_there in [false, true] {
                let (client, mut peer) = connected(if is_there { sent } else { b"" }).await;
                let begun = Instant::now();
                peer.write_all(if is_there { b"" } else { sent }).await.expect("sent");
                let head = client.head(idle, limit, (8 << 10, 32 << 10)).await;
                assert_eq!(head.err(), Some(no_head), "{}", sent.escape_ascii());
                assert_eq!(begun.elapsed().as_secs(), seconds, "{}", sent.escape_ascii());
            }
        }
        let (client, mut peer) = connected(b"\r").await;
        let mut head = pin!(client.head(idle, limit, (8 << 10, 32 << 10)));
        assert!(poll_fn(|cx| Poll::Ready(head.as_mut().poll(cx).is_pending())).await);
        peer.write_all(b"\nGET / HTTP/1.1\r\n\r\n").await.expect("sent");
        assert_eq!(&head.await.expect("a head").bytes[..], b"GET / HTTP/1.1\r\n\r\n");
        let (client, _peer) = connected(b"G").await;
        client.has_left(left);
        let begun = Instant::now();
        let head = client.head(idle, limit, (8 << 10, 32 << 10)).await;
        assert!(head.err() == Some(NoHead::Slow) && begun.elapsed() < limit);
    }

    /// A connection of which this was read already.
    async fn connected(read: &[u8]) -> (Client, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let peer = TcpStream::connect(address).await.expect("it listens");
        let (tcp, _) = listener.accept().await.expect("a connection");
        (Client::new(Io::Plain(tcp), BytesMut::from(read), Rc::<Control>::default()), peer)
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_behind_much_that_was_sent_ahead_is_seen_going() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let mut peer = TcpStream::connect(address).await.expect("connects");
        let (tcp, _) = listener.accept().await.expect("is accepted");
        let client = Client::new(Io::Plain(tcp), BytesMut::new(), Rc::<Control>::default());
        peer.write_all(&[b'a'; 100_000]).await.expect("the system takes it");
        let gone = poll_fn(|cx| client.poll_gone(cx));
        let waits = tokio::time::timeout(Duration::from_secs(60), gone).await;
        assert!(waits.is_err() && client.buffer.borrow().len() < 50_000, "it is there, and waits");
        drop(peer);
        let gone = poll_fn(|cx| client.poll_gone(cx));
        tokio::time::timeout(Duration::from_secs(60), gone).await.expect("it has gone");
    }
}
