//! Peers that are slow on purpose, over HTTP/1.

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// A way to be slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// The header comes byte by byte and never ends.
    Header,
    /// The body stops.
    BodyStops,
    /// The body comes byte by byte.
    BodyDrips,
    /// The answer is read a hundred bytes a second.
    Reader,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In which way the client was slow.
    pub slow: Slow,
    /// Bytes sent, or read by the slow reader.
    pub bytes: usize,
    /// The start of what came back before the end.
    pub answer: String,
    /// When the proxy ended the connection; none if it did not.
    pub cut: Option<Duration>,
}

impl Slow {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Header, Self::BodyStops, Self::BodyDrips, Self::Reader];

    /// What is done, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header, 1 byte every 0.2 s",
            Self::BodyStops => "body that stops",
            Self::BodyDrips => "body, 1 byte every 0.2 s",
            Self::Reader => "answer read at 100 bytes/s",
        }
    }

    fn opening(self) -> &'static [u8] {
        match self {
            Self::Header => b"GET / HTTP/1.1\r\nHost: a\r\nX: ",
            Self::BodyStops | Self::BodyDrips => {
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx"
            }
            Self::Reader => b"GET /bytes/67108864 HTTP/1.1\r\nHost: a\r\n\r\n",
        }
    }
}

impl Outcome {
    /// What ended it, in words.
    pub fn words(&self) -> String {
        let end = match self.cut {
            Some(after) => format!("cut after {:.1} s", after.as_secs_f32()),
            None => "never cut".to_owned(),
        };
        let answer = if self.answer.is_empty() { "no answer" } else { &self.answer };
        format!("{end}, {} bytes, {answer}", self.bytes)
    }
}

/// Is slow for as long as `patience`.
pub async fn run(slow: Slow, address: SocketAddr, patience: Duration) -> Result<Outcome> {
    let mut stream = connect(address, slow == Slow::Reader).await?;
    let ports = (address.port(), stream.local_addr()?.port());
    stream.write_all(slow.opening()).await?;
    let start = Instant::now();
    let mut outcome =
        Outcome { slow, bytes: slow.opening().len(), answer: String::new(), cut: None };
    let mut came = Vec::new();
    let mut ticks = interval(Duration::from_millis(200));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while start.elapsed() < patience {
        ticks.tick().await;
        let mut open = established(ports)?;
        if slow == Slow::Reader {
            let mut few = [0; 20];
            // What was sent before the end may still wait in the receive buffer: the socket's state decides.
            outcome.bytes = came.len();
            let read = stream.try_read(&mut few).unwrap_or(0);
            came.extend(&few[..read]);
        } else if open {
            let mut buffer = [0; 4096];
            match stream.try_read(&mut buffer) {
                Ok(0) => open = false,
                Ok(read) => came.extend(&buffer[..read]),
                Err(error) => open = error.kind() == std::io::ErrorKind::WouldBlock,
            }
            if slow != Slow::BodyStops && open && stream.write(b"x").await.is_ok() {
                outcome.bytes += 1;
            }
        }
        if !open {
            outcome.cut = Some(start.elapsed());
            break;
        }
    }
    if slow != Slow::Reader {
        let _ =
            tokio::time::timeout(Duration::from_millis(100), stream.read_to_end(&mut came)).await;
    }
    let line = came.split(|byte| *byte == b'\r').next().unwrap_or_default();
    outcome.answer = String::from_utf8_lossy(line).into_owned();
    Ok(outcome)
}

async fn connect(address: SocketAddr, small: bool) -> Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if small {
        socket.set_recv_buffer_size(4096)?;
    }
    socket.connect(&address.into()).with_context(|| format!("connect to {address}"))?;
    socket.set_nonblocking(true)?;
    Ok(TcpStream::from_std(socket.into())?)
}

/// Whether the proxy's end of the connection is still open.
fn established((proxy, client): (u16, u16)) -> Result<bool> {
    Ok(all_established(proxy)?.contains(&client))
}

/// The clients' ports of connections whose proxy's end is still open. Clients cannot tell by reading: a close that
/// comes after megabytes which nobody reads is seen only by the kernel.
pub(super) fn all_established(proxy: u16) -> Result<BTreeSet<u16>> {
    const ESTABLISHED: &str = "01";
    let port =
        |field: &str| field.rsplit(':').next().and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let mut clients = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        // Without IPv6 the second table is absent.
        let Ok(text) = std::fs::read_to_string(table) else { continue };
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().take(4).collect();
            let &[_, local, remote, state] = fields.as_slice() else { continue };
            if port(local) == Some(proxy) && state == ESTABLISHED {
                clients.extend(port(remote));
            }
        }
    }
    Ok(clients)
}
