//! One client connection: a socket, TLS when asked for, and the bytes that the kernel would not take yet.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::{Context, Result};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

/// What a connection is made with.
pub(super) struct Dial<'a> {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<(&'a Arc<ClientConfig>, &'a ServerName<'static>)>,
}

/// A connection to a proxy.
pub(super) struct Link {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    token: u64,
    unsent: Vec<u8>,
    sent: usize,
    waits_for_room: bool,
}

/// What one readable event brought.
pub(super) enum Received {
    /// So many bytes at the front of the buffer.
    Bytes(usize),
    /// Nothing for the layer above.
    Nothing,
    /// The peer ended the connection.
    End,
}

impl Link {
    /// Connects and registers with `epoll`; over loopback the connection exists at once.
    pub(super) fn connect(dial: &Dial<'_>, epoll: &OwnedFd, token: u64) -> Result<Self> {
        let stream = TcpStream::connect(dial.address)
            .with_context(|| format!("connect to {}", dial.address))?;
        stream.set_nodelay(true).context("switch off Nagle's algorithm")?;
        stream.set_nonblocking(true).context("make a socket non-blocking")?;
        let tls = match dial.tls {
            None => None,
            Some((config, name)) => {
                let session = ClientConnection::new(Arc::clone(config), name.clone());
                Some(Box::new(session.context("start a TLS session")?))
            }
        };
        let mut link =
            Self { stream, tls, token, unsent: Vec::new(), sent: 0, waits_for_room: false };
        epoll::add(epoll, &link.stream, EventData::new_u64(token), EventFlags::IN)
            .context("watch a connection")?;
        link.flush(epoll)?;
        Ok(link)
    }

    /// The buffer that `flush` sends: protocols write their requests into it.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.unsent
    }

    /// Sends as much as the kernel takes, and asks to be told when there is room for the rest.
    pub(super) fn flush(&mut self, epoll: &OwnedFd) -> Result<()> {
        let blocked = match &mut self.tls {
            None => Self::flush_plain(&mut self.stream, &mut self.unsent, &mut self.sent)?,
            Some(tls) => {
                if !self.unsent.is_empty() {
                    tls.writer().write_all(&self.unsent).context("encrypt")?;
                    self.unsent.clear();
                }
                Self::flush_tls(&mut self.stream, tls)?
            }
        };
        if blocked != self.waits_for_room {
            self.waits_for_room = blocked;
            let flags = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(epoll, &self.stream, EventData::new_u64(self.token), flags)
                .context("watch a connection for room")?;
        }
        Ok(())
    }

    fn flush_plain(stream: &mut TcpStream, out: &mut Vec<u8>, sent: &mut usize) -> Result<bool> {
        while *sent < out.len() {
            match stream.write(&out[*sent..]) {
                Ok(count) => *sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error).context("send to the proxy"),
            }
        }
        out.clear();
        *sent = 0;
        Ok(false)
    }

    fn flush_tls(stream: &mut TcpStream, tls: &mut ClientConnection) -> Result<bool> {
        while tls.wants_write() {
            match tls.write_tls(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error).context("send TLS to the proxy"),
            }
        }
        Ok(false)
    }

    /// Reads once; the event that called for it comes again if there is more.
    pub(super) fn receive(&mut self, epoll: &OwnedFd, into: &mut [u8]) -> Result<Received> {
        let Some(tls) = &mut self.tls else {
            return match self.stream.read(into) {
                Ok(0) => Ok(Received::End),
                Ok(count) => Ok(Received::Bytes(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Received::Nothing),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Received::End),
                Err(error) => Err(error).context("receive from the proxy"),
            };
        };
        match tls.read_tls(&mut self.stream) {
            Ok(0) => return Ok(Received::End),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Received::End),
            Err(error) => return Err(error).context("receive TLS from the proxy"),
        }
        let state = tls.process_new_packets().context("TLS of the proxy")?;
        let ready = state.plaintext_bytes_to_read();
        let ended = state.peer_has_closed();
        if ready > 0 {
            tls.reader().read_exact(&mut into[..ready]).context("decrypted bytes")?;
            return Ok(Received::Bytes(ready));
        }
        if ended {
            return Ok(Received::End);
        }
        if tls.wants_write() {
            self.flush(epoll)?;
        }
        Ok(Received::Nothing)
    }

    /// How the TLS session came about; none without TLS or before the handshake is done.
    pub(super) fn handshake(&self) -> Option<HandshakeKind> {
        self.tls.as_ref().and_then(|tls| tls.handshake_kind())
    }

    /// Ends the connection as a polite client does.
    pub(super) fn close(mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // The connection is done with: what cannot be sent now is not missed.
            drop(tls.write_tls(&mut self.stream));
        }
    }
}
