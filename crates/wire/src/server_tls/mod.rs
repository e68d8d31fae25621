//! TLS with clients. A connection that is idle holds no buffer: what comes is read into memory that all connections of
//! a thread share, and only what is not whole, or not sent yet, is kept.

mod hello;
#[cfg(test)]
mod tests;

pub use hello::Hello;

use crate::tls_record;
use crate::under_tls::UnderTls;
use bytes::{Buf, BytesMut};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, WriteTraffic};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are encrypted at once, and so the most that waits for a client that takes nothing.
pub(crate) const SEALED: usize = 64 << 10;
/// Bytes read at once: what is asked for and what TLS adds to it, within these bounds.
const READ: (usize, usize) = (4 << 10, 64 << 10);
/// Records without data that a client may send at once, and bytes of data that earn it one more. Keys are made new
/// after gigabytes (RFC 8446 section 5.5), and each time costs as much as a short request.
const SILENT: u32 = 256;
const EARNED_BY: usize = 512;
/// What TLS adds to a read, and more.
const ADDED: usize = 1 << 10;

thread_local! {
    /// What has come, while it is decrypted.
    static INCOMING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// What was encrypted, until the system has taken it.
    static OUTGOING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Pieces that go out as the same records.
    static TOGETHER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How application data is encrypted.
type Traffic<'c> = WriteTraffic<'c, ServerConnectionData>;

/// A connection with a client under TLS, whose handshake is over.
pub struct ServerTls {
    io: UnderTls,
    connection: UnbufferedServerConnection,
    /// What came and is not used up: the records of a message of TLS that is not whole, to which rustls has pointers;
    /// behind them records that nobody had room for, and one that is not whole.
    incoming: Vec<u8>,
    /// How much of it rustls has seen. It must get that each time, and nothing that would have to be decrypted for it.
    seen: usize,
    /// Of a record what was more than somebody had room for.
    opened: BytesMut,
    /// What the system has not taken yet.
    outgoing: BytesMut,
    /// Records that gave nothing, less what data has earned.
    silent: u32,
    /// What broke it: nothing more comes in or goes out.
    failed: Option<rustls::Error>,
    /// Whether the client has said that nothing more comes.
    is_ended: bool,
    /// Whether the client was told so.
    is_shut: bool,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").field("io", &self.io).finish_non_exhaustive()
    }
}

impl ServerTls {
    fn new(io: UnderTls, connection: UnbufferedServerConnection, incoming: Vec<u8>) -> Self {
        Self {
            io,
            connection,
            incoming,
            seen: 0,
            opened: BytesMut::new(),
            outgoing: BytesMut::new(),
            silent: 0,
            failed: None,
            is_ended: false,
            is_shut: false,
        }
    }

    /// What was agreed on.
    pub fn agreed(&self) -> &rustls::CommonState {
        &self.connection
    }

    /// What it goes over.
    pub(crate) fn under(&self) -> &UnderTls {
        &self.io
    }

    /// Bytes that are not whole, or of TLS itself.
    pub(crate) fn held(&self) -> usize {
        self.io.held().max(self.incoming.len())
    }

    /// Whether there are whole records that rustls has not seen.
    fn is_ahead(&self) -> bool {
        tls_record::whole(&self.incoming[self.seen..]).is_some()
    }

    fn poll_opened(&mut self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.opened.is_empty() {
            let count = self.opened.len().min(out.remaining());
            out.put_slice(&self.opened[..count]);
            self.opened.advance(count);
            if self.opened.is_empty() {
                self.opened = BytesMut::new();
            }
            return Poll::Ready(Ok(()));
        }
        if self.is_ended || out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = self.failure() {
            return Poll::Ready(Err(error));
        }
        INCOMING.with_borrow_mut(|shared| self.poll_records(cx, shared, out))
    }

    /// Reads until there is something to give on. It is read behind a gap for what is kept, which is copied there only
    /// once a record is whole: small pieces cost no more than themselves.
    fn poll_records(
        &mut self,
        cx: &mut Context<'_>,
        shared: &mut Vec<u8>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        loop {
            let kept = self.incoming.len();
            let (mut filled, is_ahead) = (kept, self.is_ahead());
            if !is_ahead {
                filled += out.remaining().clamp(READ.0, READ.1) + ADDED;
            }
            if shared.len() < filled {
                shared.resize(filled, 0);
            }
            if !is_ahead {
                let mut read = ReadBuf::new(&mut shared[kept..filled]);
                ready!(Pin::new(&mut self.io).poll_read(cx, &mut read))?;
                let count = read.filled().len();
                if count == 0 {
                    let message = "the client closed without a close_notify of TLS";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
                }
                filled = kept + count;
                if tls_record::lacks_more_than(count, &self.incoming[self.seen..]) {
                    self.incoming.extend_from_slice(&shared[kept..filled]);
                    continue;
                }
            }
            shared[..kept].copy_from_slice(&self.incoming);
            let is_waiting = !self.outgoing.is_empty();
            let used = self.open(&mut shared[..filled], out);
            self.keep(&shared[used..filled]);
            if !is_waiting && !self.outgoing.is_empty() {
                self.push_now();
            }
            if out.filled().len() > before || self.is_ended {
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = self.failure() {
                return Poll::Ready(Err(error));
            }
            // Who sends faster than it is read here gets no further than others.
            self.io.gives(false)?;
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            self.incoming = Vec::new();
        } else {
            self.incoming.clear();
            self.incoming.extend_from_slice(rest);
        }
    }

    /// Decrypts what there is, as far as there is room for it. Returns how much is used up.
    fn open(&mut self, input: &mut [u8], out: &mut ReadBuf<'_>) -> usize {
        let (mut used, mut end) = (0, self.seen);
        let before = out.filled().len();
        while let Some(length) = tls_record::whole(&input[end..]) {
            let is_first = out.filled().len() == before;
            if !is_first && !tls_record::may_fit(length, out.remaining()) {
                break;
            }
            end += length;
            let (filled, kept) = (out.filled().len(), self.opened.len());
            match self.open_record(&mut input[used..end], out) {
                Ok(more) => used += more,
                Err(error) => self.failed = Some(error),
            }
            self.gave(out.filled().len() - filled + self.opened.len() - kept);
            if self.failed.is_some() || self.is_ended {
                (used, end) = (input.len(), input.len());
            }
        }
        self.seen = end - used;
        used
    }

    /// A record gave so many bytes of data.
    fn gave(&mut self, bytes: usize) {
        let earned = u32::try_from(bytes / EARNED_BY).unwrap_or(u32::MAX);
        self.silent = self.silent.saturating_sub(earned) + u32::from(bytes == 0);
        if self.silent > SILENT && self.failed.is_none() {
            self.failed = Some(silence());
        }
    }

    /// Has rustls see one record more, behind what it has seen already. Returns how much of all that is used up: what
    /// is not, it has pointers to.
    fn open_record(
        &mut self,
        input: &mut [u8],
        out: &mut ReadBuf<'_>,
    ) -> Result<usize, rustls::Error> {
        let mut used = 0;
        loop {
            let status = self.connection.process_tls_records(&mut input[used..]);
            used += status.discard;
            match status.state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        let fits = record.payload.len().min(out.remaining());
                        out.put_slice(&record.payload[..fits]);
                        self.opened.extend_from_slice(&record.payload[fits..]);
                        used += record.discard;
                    }
                    return if used == input.len() { Ok(used) } else { Err(empty_message()) };
                }
                ConnectionState::EncodeTlsData(message) => encode(message, &mut self.outgoing),
                ConnectionState::TransmitTlsData(sent) => sent.done(),
                ConnectionState::WriteTraffic(_) | ConnectionState::BlockedHandshake => {
                    return Ok(used);
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    self.is_ended = true;
                    return Ok(input.len());
                }
                _ => return Err(early_data()),
            }
        }
    }

    /// What broke it. The alert goes out if it can; whatever becomes of it changes nothing.
    fn failure(&mut self) -> Option<io::Error> {
        let error = self.failed.clone()?;
        self.push_now();
        Some(broken(error))
    }

    /// Sends what can be sent at once. Who reads is not the one who waits for the way out: that may be another task.
    fn push_now(&mut self) {
        self.take_messages();
        while !self.outgoing.is_empty()
            && let Ok(sent @ 1..) = self.io.tcp().try_write(&self.outgoing)
        {
            self.sent(sent);
        }
    }

    /// So much of what waits is gone.
    fn sent(&mut self, count: usize) {
        self.outgoing.advance(count);
        if self.outgoing.is_empty() {
            self.outgoing = BytesMut::new();
        }
    }

    /// Encrypts something into `sealed`; returns its length.
    fn seal(
        &mut self,
        sealed: &mut Vec<u8>,
        mut what: impl FnMut(&mut Traffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> io::Result<usize> {
        loop {
            match self.connection.process_tls_records(&mut self.incoming[..self.seen]).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => loop {
                    match what(&mut traffic, sealed) {
                        Ok(length) => return Ok(length),
                        Err(EncryptError::InsufficientSize(size)) => {
                            sealed.resize(size.required_size, 0);
                        }
                        Err(error) => return Err(io::Error::other(error)),
                    }
                },
                Ok(ConnectionState::EncodeTlsData(message)) => encode(message, &mut self.outgoing),
                Ok(ConnectionState::TransmitTlsData(sent)) => sent.done(),
                Ok(ConnectionState::PeerClosed) => self.is_ended = true,
                Ok(_) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(error) => {
                    self.failed = Some(error.clone());
                    return Err(broken(error));
                }
            }
        }
    }

    /// Sends what is left of what was encrypted, and what TLS has to say itself.
    fn poll_push(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.take_messages();
        while !self.outgoing.is_empty() {
            match ready!(Pin::new(&mut self.io).poll_write(cx, &self.outgoing))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent(sent),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes messages of TLS itself from rustls. They come before it looks at records, so that none need to be there.
    fn take_messages(&mut self) {
        while self.connection.wants_write() {
            let next = self.connection.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(message)) = next.state else { return };
            encode(message, &mut self.outgoing);
        }
    }

    /// Encrypts and sends; what the system does not take is kept, and nothing more is taken before that has gone.
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_shut || self.failed.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(self.poll_push(cx))?;
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let data = &data[..data.len().min(SEALED)];
        OUTGOING.with_borrow_mut(|sealed| {
            let length = self.seal(sealed, |traffic, room| traffic.encrypt(data, room))?;
            let mut left = &sealed[..length];
            while self.outgoing.is_empty() && !left.is_empty() {
                match Pin::new(&mut self.io).poll_write(cx, left) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    Poll::Ready(Ok(sent)) => left = &left[sent..],
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => break,
                }
            }
            self.outgoing.extend_from_slice(left);
            Poll::Ready(Ok(data.len()))
        })
    }

    /// Tells the client that nothing more comes.
    fn close(&mut self) {
        let mut alert = Vec::new();
        let length = self.seal(&mut alert, |traffic, room| traffic.queue_close_notify(room));
        self.outgoing.extend_from_slice(&alert[..length.unwrap_or(0)]);
    }
}

/// A message of TLS itself.
fn encode(mut message: EncodeTlsData<'_, ServerConnectionData>, out: &mut BytesMut) {
    let Err(EncodeError::InsufficientSize(size)) = message.encode(&mut []) else { return };
    let at = out.len();
    out.resize(at + size.required_size, 0);
    message.encode(&mut out[at..]).expect("it has the room that it asks for");
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// RFC 8446 section 5.1 and RFC 5246 section 6.2.1 forbid them. rustls would keep pointers to each of them.
fn empty_message() -> rustls::Error {
    rustls::Error::General("a record of the handshake with nothing in it".to_owned())
}

/// Each is work and nothing of a request.
fn silence() -> rustls::Error {
    rustls::Error::General("records without data that do not end".to_owned())
}

/// No configuration takes any.
fn early_data() -> rustls::Error {
    rustls::Error::General("early data that nobody takes".to_owned())
}

impl AsyncRead for ServerTls {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = this.poll_opened(cx, buffer);
        this.io.gives(read.is_ready())?;
        read
    }
}

impl AsyncWrite for ServerTls {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        let first = filled.next().map_or(&[][..], |slice| slice);
        if first.len() >= SEALED || filled.next().is_none() {
            return this.poll_send(cx, first);
        }
        TOGETHER.with_borrow_mut(|together| {
            together.clear();
            for slice in slices {
                let room = SEALED - together.len();
                together.extend_from_slice(&slice[..slice.len().min(room)]);
            }
            this.poll_send(cx, together)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_push(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !std::mem::replace(&mut this.is_shut, true) && this.failed.is_none() {
            this.close();
        }
        ready!(this.poll_push(cx))?;
        match ready!(Pin::new(&mut this.io).poll_shutdown(cx)) {
            // Whoever has gone already is told nothing.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            done => Poll::Ready(done),
        }
    }
}
