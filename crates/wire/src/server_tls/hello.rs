//! How TLS begins: a ClientHello that chooses how it goes on, and the handshake.

use super::{ServerTls, broken};
use crate::tls_record;
use crate::under_tls::UnderTls;
use rustls::ServerConfig;
use rustls::server::{Accepted, Acceptor, ClientHello, UnbufferedServerConnection};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

/// Bytes read at once of a handshake.
const AT_ONCE: usize = 16 << 10;

/// A connection whose client has said hello.
pub struct Hello {
    io: UnderTls,
    /// All that has come, to be read once more by whoever goes on.
    came: Vec<u8>,
    accepted: Accepted,
}

impl std::fmt::Debug for Hello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hello").field("io", &self.io).finish_non_exhaustive()
    }
}

impl Hello {
    /// Waits for it.
    ///
    /// # Errors
    /// It is none, which the client is told, or ends too early.
    pub async fn read(tcp: TcpStream) -> io::Result<Self> {
        let mut io = UnderTls::new(tcp);
        let (mut came, mut acceptor) = (Vec::new(), Acceptor::default());
        loop {
            let at = came.len();
            if poll_fn(|cx| poll_more(&mut io, cx, &mut came)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut new = &came[at..];
            while !new.is_empty() {
                acceptor.read_tls(&mut new)?;
                match acceptor.accept() {
                    Ok(Some(accepted)) => return Ok(Self { io, came, accepted }),
                    Ok(None) => {}
                    Err((error, mut alert)) => {
                        let mut record = Vec::new();
                        alert.write_all(&mut record)?;
                        say(&mut io, &record).await;
                        return Err(broken(error));
                    }
                }
            }
        }
    }

    /// What it says.
    pub fn says(&self) -> ClientHello<'_> {
        self.accepted.client_hello()
    }

    /// Ends the connection with an alert.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn refuse(mut self, alert: &[u8]) -> io::Result<()> {
        self.io.write_all(alert).await?;
        self.io.shutdown().await
    }

    /// Does the handshake.
    ///
    /// # Errors
    /// It fails, which the client is told, or ends too early.
    pub async fn answer(self, config: Arc<ServerConfig>) -> io::Result<ServerTls> {
        let Self { io, came, accepted } = self;
        drop(accepted);
        let connection = UnbufferedServerConnection::new(config).map_err(io::Error::other)?;
        let mut tls = ServerTls::new(io, connection, came);
        poll_fn(|cx| tls.poll_handshake(cx)).await?;
        Ok(tls)
    }
}

/// Says something that is heard if it can be at once.
async fn say(io: &mut UnderTls, record: &[u8]) {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *io).poll_write(cx, record).is_ready())).await;
}

/// Reads what there is; zero at the end.
fn poll_more(
    io: &mut UnderTls,
    cx: &mut Context<'_>,
    came: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    super::INCOMING.with_borrow_mut(|shared| {
        if shared.len() < AT_ONCE {
            shared.resize(AT_ONCE, 0);
        }
        let mut read = ReadBuf::new(&mut shared[..AT_ONCE]);
        ready!(Pin::new(io).poll_read(cx, &mut read))?;
        came.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    })
}

impl ServerTls {
    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if let Err(error) = self.shake() {
                self.failed = Some(error);
            }
            if let Some(error) = self.failure() {
                return Poll::Ready(Err(error));
            }
            ready!(self.poll_push(cx))?;
            if !self.connection.is_handshaking() {
                self.incoming.shrink_to_fit();
                self.io.established();
                return Poll::Ready(Ok(()));
            }
            if ready!(poll_more(&mut self.io, cx, &mut self.incoming))? == 0 {
                let message = "the client closed in the handshake of TLS";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
            }
        }
    }

    /// Goes on as far as what has come allows. What comes behind the handshake stays for who reads.
    fn shake(&mut self) -> Result<(), rustls::Error> {
        let mut incoming = std::mem::take(&mut self.incoming);
        let (mut used, mut end) = (0, std::mem::take(&mut self.seen));
        while self.connection.is_handshaking()
            && let Some(length) = tls_record::whole(&incoming[end..])
        {
            end += length;
            used += self.open_record(&mut incoming[used..end], &mut ReadBuf::new(&mut []))?;
        }
        incoming.drain(..used);
        (self.incoming, self.seen) = (incoming, end - used);
        Ok(())
    }
}
