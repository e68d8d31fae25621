//! The upstream: reads strictly, answers by script, and remembers everything that reached it.

use crate::message::{Read, Request, read_request, show};
use anyhow::{Context, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Targets that start so are the checks between two cases: they are always answered with their own target.
pub const PROBE: &str = "/probe/";
/// `GET /bytes/N` is answered with N bytes, for clients that do not read.
const BYTES: &[u8] = b"/bytes/";
/// An answer that begins and never ends.
const DRIP: &[u8] = b"/drip";
const BEGUN: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";

/// What the upstream does with requests that are no probes.
#[derive(Clone, Debug, Default)]
pub enum Script {
    /// Answers 200 with the target as the body.
    #[default]
    Answer,
    /// Answers as soon as the head is there.
    Early,
    /// Sends these bytes, then closes if so told.
    Raw(Vec<u8>, bool),
}

/// What happened on one upstream connection.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which connection.
    pub connection: u64,
    /// What happened.
    pub event: Event,
}

/// Something that reached the upstream.
#[derive(Clone, Debug)]
pub enum Event {
    /// The first byte of a message.
    Began,
    /// A complete message.
    Whole(Box<Request>),
    /// Bytes that a strict reader does not take.
    Ambiguous(String),
    /// The connection ended in the middle of a message.
    Cut(String),
}

#[derive(Default)]
struct Record {
    seen: Vec<Seen>,
    script: Script,
    connections: u64,
}

/// The running upstream.
#[derive(Clone)]
pub struct Backend {
    address: SocketAddr,
    record: Arc<Mutex<Record>>,
}

impl Backend {
    /// Listens on a port of loopback; 0 lets the system choose.
    pub async fn start(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("cannot listen on port {port} for the upstream"))?;
        let backend = Self { address: listener.local_addr()?, record: Arc::default() };
        let server = backend.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(server.clone().serve(stream));
            }
        });
        Ok(backend)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forgets what it has seen and follows this script from now on.
    pub fn begin(&self, script: Script) {
        let mut record = self.record();
        record.seen.clear();
        record.script = script;
    }

    /// What it has seen since [`Backend::begin`].
    pub fn seen(&self) -> Vec<Seen> {
        self.record().seen.clone()
    }

    /// How much it has seen, as a sign of activity.
    pub fn activity(&self) -> usize {
        self.record().seen.len()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no holder of this lock panics")
    }

    fn saw(&self, connection: u64, event: Event) {
        self.record().seen.push(Seen { connection, event });
    }

    async fn serve(self, mut stream: TcpStream) {
        let connection = {
            let mut record = self.record();
            record.connections += 1;
            record.connections
        };
        let mut bytes = Vec::new();
        while self.step(connection, &mut stream, &mut bytes).await.is_some() {}
    }

    /// Reads one message and answers it; none when the connection is over.
    async fn step(
        &self,
        connection: u64,
        stream: &mut TcpStream,
        bytes: &mut Vec<u8>,
    ) -> Option<()> {
        let mut began = false;
        loop {
            if !bytes.is_empty() && !began {
                began = true;
                self.saw(connection, Event::Began);
            }
            match read_request(bytes) {
                Read::Whole(request, used) if !bytes.is_empty() => {
                    bytes.drain(..used);
                    return self.answer(connection, request, stream, bytes).await;
                }
                Read::Illegal(why) => {
                    self.saw(connection, Event::Ambiguous(why));
                    return None;
                }
                Read::More { head: true } if matches!(self.record().script, Script::Early) => {
                    return self.answer_early(stream, bytes).await;
                }
                _ => {}
            }
            if !matches!(stream.read_buf(bytes).await, Ok(read) if read > 0) {
                if began {
                    self.saw(connection, Event::Cut(show(bytes)));
                }
                return None;
            }
        }
    }

    async fn answer(
        &self,
        connection: u64,
        request: Request,
        stream: &mut TcpStream,
        bytes: &mut Vec<u8>,
    ) -> Option<()> {
        // No proxy sends a second request before the answer to the first: bytes that are here already were smuggled.
        let early = timeout(Duration::from_millis(2), stream.read_buf(bytes)).await;
        let script = if request.target.starts_with(PROBE.as_bytes()) {
            Script::Answer
        } else {
            self.record().script.clone()
        };
        let target = request.target.clone();
        let head_only = request.method == "HEAD";
        self.saw(connection, Event::Whole(Box::new(request)));
        if !bytes.is_empty() {
            self.saw(
                connection,
                Event::Ambiguous(format!("{} after a complete request", show(bytes))),
            );
            return None;
        }
        match script {
            _ if target == DRIP => {
                stream.write_all(BEGUN).await.ok()?;
                // Until it is given up.
                let _ = stream.read_buf(bytes).await;
                return None;
            }
            Script::Raw(raw, fin) => {
                stream.write_all(&raw).await.ok()?;
                if fin {
                    stream.shutdown().await.ok()?;
                }
            }
            _ => {
                let bulk =
                    target.strip_prefix(BYTES).and_then(|n| str::from_utf8(n).ok()?.parse().ok());
                let size = bulk.unwrap_or(target.len());
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.ok()?;
                match bulk.filter(|_| !head_only) {
                    Some(size) => write_bulk(stream, size).await.ok()?,
                    None if head_only => {}
                    None => stream.write_all(&target).await.ok()?,
                }
            }
        }
        (!matches!(early, Ok(Ok(0)))).then_some(())
    }

    /// Answers before the body is there, and takes whatever comes afterwards as that body.
    async fn answer_early(&self, stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly").await.ok()?;
        while matches!(stream.read_buf(bytes).await, Ok(read) if read > 0) {
            bytes.clear();
        }
        None
    }
}

/// So many bytes, of which only a few are in memory: thousands of answers may wait.
async fn write_bulk(stream: &mut TcpStream, size: usize) -> std::io::Result<()> {
    const PIECE: &[u8] = &[b'x'; 16 << 10];
    let mut left = size;
    while left > 0 {
        let piece = &PIECE[..left.min(PIECE.len())];
        stream.write_all(piece).await?;
        left -= piece.len();
    }
    Ok(())
}
