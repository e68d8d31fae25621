//! What TLS is spoken over: a TCP connection that counts what is taken from it and not given on, and whose records are
//! work: whoever had much of it done waits for a later turn of the thread.

use crate::tcp;
use crate::tls_record::Records;
use crate::turn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that a handshake may take: those of the longest messages, and some.
const HANDSHAKE: usize = 128 << 10;
/// Bytes that may have come in afterwards when there is nothing to give on: a record, of 16.6 kB at most, and what was
/// read with it. rustls keeps a message of its own that is not whole up to 64 kB, though none has more than some
/// hundred bytes.
const ESTABLISHED: usize = 24 << 10;
/// What is read at once counts in the turn from so much on, and the next read waits for room: heads are less.
pub(crate) const HEAVY: usize = 4 << 10;

/// A TCP connection under TLS.
#[derive(Debug)]
pub struct UnderTls {
    tcp: TcpStream,
    taken: usize,
    most: usize,
    records: Records,
    /// Of what was read last there was much to do.
    is_heavy: bool,
}

impl UnderTls {
    /// A connection whose handshake begins.
    pub fn new(tcp: TcpStream) -> Self {
        Self { tcp, taken: 0, most: HANDSHAKE, records: Records::default(), is_heavy: false }
    }

    /// The connection itself.
    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// The handshake is over.
    pub(crate) fn established(&mut self) {
        (self.taken, self.most) = (0, usize::MAX);
    }

    /// Something of what was taken is given on; or nothing, though all of it was looked at.
    pub(crate) fn gives(&mut self, something: bool) -> io::Result<()> {
        if something {
            self.taken = 0;
        }
        if self.taken > ESTABLISHED { Err(endless()) } else { Ok(()) }
    }

    /// The next read waits for no turn: it only looks whether anything came.
    pub(crate) fn hurries(&mut self) {
        self.is_heavy = false;
    }

    /// Bytes that TLS has taken and not given on.
    pub fn held(&self) -> usize {
        self.taken
    }
}

fn endless() -> io::Error {
    io::Error::other("messages of TLS itself that do not end")
}

impl AsyncRead for UnderTls {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_heavy {
            ready!(turn::poll_room(cx));
        }
        let before = buffer.filled().len();
        ready!(tcp::poll_read(&mut this.tcp, cx, buffer))?;
        let came = &buffer.filled()[before..];
        this.taken += came.len();
        let weight = this.records.weigh(came);
        this.is_heavy = weight >= HEAVY;
        if this.is_heavy {
            turn::moved(weight);
        }
        if this.taken > this.most {
            return Poll::Ready(Err(endless()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UnderTls {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        tcp::poll_write(&self.tcp, cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        tcp::poll_write_vectored(&self.tcp, cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::{ESTABLISHED, UnderTls};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Both ends of a connection whose handshake is over.
    async fn established() -> (TcpStream, UnderTls) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let peer = TcpStream::connect(address).await.expect("connects");
        let mut here = UnderTls::new(listener.accept().await.expect("is accepted").0);
        here.established();
        (peer, here)
    }

    #[tokio::test]
    async fn what_takes_much_and_gives_nothing_ends_and_what_gives_goes_on() {
        let (mut peer, mut here) = established().await;
        let mut record = [0; ESTABLISHED / 2];
        for _ in 0..5 {
            peer.write_all(&record).await.expect("it is sent");
            here.read_exact(&mut record).await.expect("a record is taken");
            assert_eq!(here.held(), record.len());
            here.gives(true).expect("it goes on");
        }
        // Several records for one large buffer are taken one after the other, and given on together.
        for gives in [true, false] {
            peer.write_all(&[0; ESTABLISHED + 1]).await.expect("it is sent");
            here.read_exact(&mut [0; ESTABLISHED + 1]).await.expect("all of it is taken");
            assert_eq!(here.gives(gives).is_ok(), gives);
        }
    }
}
