//! What stands behind the proxies: prepared HTTP/1.1 answers, WebSocket echo, unary gRPC; as cheap as it can be.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, bail};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::answers::Answers;
use super::grpc;
use super::http1::end_of_head;
use super::websocket::PAYLOAD;

/// Tokens of the upstream's sockets have this bit.
pub(super) const TOKENS: u64 = 1 << 62;
const HTTP: u64 = TOKENS | (1 << 61);
const GRPC: u64 = TOKENS | (1 << 61) | 1;
/// A masked frame of the echo: two bytes of head, four of mask.
const FRAME: usize = 6 + PAYLOAD.len();

/// Listens for what the proxies forward.
pub(crate) struct Upstream {
    http: TcpListener,
    grpc: TcpListener,
    connections: Vec<Option<Connection>>,
    answers: Answers,
}

struct Connection {
    stream: TcpStream,
    token: u64,
    talk: Talk,
    kept: Vec<u8>,
    /// What is being sent: a prepared answer, or `own`.
    prepared: &'static [u8],
    own: Vec<u8>,
    waits_for_room: bool,
}

enum Talk {
    Http1 { body_left: usize, answer: &'static [u8] },
    WebSocket,
    Grpc(grpc::Server),
}

impl Upstream {
    /// Listens on `address`, on ports that the system chooses.
    pub(crate) fn bind(address: IpAddr) -> Result<Self> {
        let listen = || {
            let listener =
                TcpListener::bind((address, 0)).with_context(|| format!("listen on {address}"))?;
            listener.set_nonblocking(true).context("make a listener non-blocking")?;
            anyhow::Ok(listener)
        };
        let (http, grpc) = (listen()?, listen()?);
        Ok(Self { http, grpc, connections: Vec::new(), answers: Answers::prepare() })
    }

    /// Where HTTP/1.1 and WebSocket are served.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http.local_addr().expect("a bound listener has an address")
    }

    /// Where gRPC is served, over HTTP/2 without TLS.
    pub(crate) fn grpc(&self) -> SocketAddr {
        self.grpc.local_addr().expect("a bound listener has an address")
    }

    /// Lets `epoll` watch the listeners.
    pub(super) fn register(&self, epoll: &OwnedFd) -> Result<()> {
        for (listener, token) in [(&self.http, HTTP), (&self.grpc, GRPC)] {
            epoll::add(epoll, listener, EventData::new_u64(token), EventFlags::IN)
                .context("watch a listener")?;
        }
        Ok(())
    }

    /// Handles an event whose token is one of `TOKENS`.
    pub(super) fn handle(&mut self, token: u64, epoll: &OwnedFd, scratch: &mut [u8]) -> Result<()> {
        if token == HTTP || token == GRPC {
            return self.accept(token, epoll);
        }
        let place = (token & !TOKENS) as usize;
        let Some(Some(connection)) = self.connections.get_mut(place) else { return Ok(()) };
        let goes_on = connection.handle(epoll, scratch, &self.answers)?;
        if !goes_on {
            self.connections[place] = None;
        }
        Ok(())
    }

    fn accept(&mut self, listener: u64, epoll: &OwnedFd) -> Result<()> {
        let source = if listener == HTTP { &self.http } else { &self.grpc };
        loop {
            let stream = match source.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("accept a connection of a proxy"),
            };
            stream.set_nonblocking(true).context("make a socket non-blocking")?;
            stream.set_nodelay(true).context("switch off Nagle's algorithm")?;
            let free = self.connections.iter().position(Option::is_none);
            let place = free.unwrap_or(self.connections.len());
            let token = TOKENS | place as u64;
            epoll::add(epoll, &stream, EventData::new_u64(token), EventFlags::IN)
                .context("watch a connection of a proxy")?;
            let talk = if listener == HTTP {
                Talk::Http1 { body_left: 0, answer: &[] }
            } else {
                Talk::Grpc(grpc::Server::default())
            };
            let connection = Some(Connection::new(stream, token, talk));
            match self.connections.get_mut(place) {
                Some(slot) => *slot = connection,
                None => self.connections.push(connection),
            }
        }
    }
}

impl Connection {
    fn new(stream: TcpStream, token: u64, talk: Talk) -> Self {
        let (kept, own) = (Vec::new(), Vec::new());
        Self { stream, token, talk, kept, prepared: &[], own, waits_for_room: false }
    }

    /// Reads once and answers; false when the connection is over.
    fn handle(&mut self, epoll: &OwnedFd, scratch: &mut [u8], answers: &Answers) -> Result<bool> {
        match self.stream.read(scratch) {
            Ok(0) => return Ok(false),
            Ok(count) => self.received(&scratch[..count], answers)?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // A proxy may end a connection in any way.
            Err(_) => return Ok(false),
        }
        self.flush(epoll)
    }

    fn received(&mut self, bytes: &[u8], answers: &Answers) -> Result<()> {
        match &mut self.talk {
            Talk::Http1 { body_left, answer } if *body_left > 0 => {
                if bytes.len() > *body_left {
                    bail!("a proxy sent {} bytes after a body", bytes.len() - *body_left);
                }
                *body_left -= bytes.len();
                if *body_left == 0 {
                    self.prepared = answer;
                }
                Ok(())
            }
            Talk::Http1 { .. } => self.head(bytes, answers),
            Talk::WebSocket => {
                self.kept.extend_from_slice(bytes);
                self.echo();
                Ok(())
            }
            Talk::Grpc(server) => server.receive(bytes, &mut self.own),
        }
    }

    fn head(&mut self, bytes: &[u8], answers: &Answers) -> Result<()> {
        let known = self.kept.len();
        // A request nearly always comes in one piece; then it need not be copied.
        let whole = known == 0 && end_of_head(bytes, 0).is_some();
        if !whole {
            self.kept.extend_from_slice(bytes);
        }
        let request = if whole { bytes } else { &self.kept };
        let Some(end) = end_of_head(request, 0) else { return Ok(()) };
        let (head, rest) = request.split_at(end);
        let answer = answers.to(head)?;
        if answer.upgrades {
            self.talk = Talk::WebSocket;
            self.prepared = answer.bytes;
        } else if answer.body > rest.len() {
            self.talk = Talk::Http1 { body_left: answer.body - rest.len(), answer: answer.bytes };
        } else {
            if rest.len() > answer.body {
                bail!("a proxy sent {} bytes after a request", rest.len() - answer.body);
            }
            self.prepared = answer.bytes;
        }
        self.kept.clear();
        Ok(())
    }

    fn echo(&mut self) {
        let mut frames = self.kept.chunks_exact(FRAME);
        for frame in &mut frames {
            self.own.extend_from_slice(&[frame[0], frame[1] & 0x7f]);
            let (mask, payload) = frame[2..].split_at(4);
            self.own
                .extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        }
        let rest = frames.remainder().len();
        self.kept.drain(..self.kept.len() - rest);
    }

    fn flush(&mut self, epoll: &OwnedFd) -> Result<bool> {
        let mut blocked = false;
        while !(blocked || self.prepared.is_empty() && self.own.is_empty()) {
            let from = if self.prepared.is_empty() { &self.own[..] } else { self.prepared };
            match self.stream.write(from) {
                Ok(count) if self.prepared.is_empty() => drop(self.own.drain(..count)),
                Ok(count) => self.prepared = &self.prepared[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => blocked = true,
                Err(_) => return Ok(false),
            }
        }
        if blocked != self.waits_for_room {
            self.waits_for_room = blocked;
            let flags = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(epoll, &self.stream, EventData::new_u64(self.token), flags)
                .context("watch a connection for room")?;
        }
        Ok(true)
    }
}
