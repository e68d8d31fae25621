//! One blocking connection that asks for a status, for everything that is not load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::load::{end_of_head, parse_head};
use crate::process::pause;

const PATIENCE: Duration = Duration::from_secs(5);
/// Between two questions about the same thing; well below what is measured.
const PAUSE: Duration = Duration::from_micros(200);

/// A client that keeps its connection.
pub(crate) struct Probe {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Probe {
    /// A client of `address`; it connects when it is first asked.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// The status of a GET.
    pub(crate) fn status(&mut self, host: &str, path: &str) -> Result<u16> {
        let kept = self.stream.take();
        let reused = kept.is_some();
        match self.ask(kept, host, path) {
            // A kept connection may have ended meanwhile.
            Err(_) if reused => self.ask(None, host, path),
            answer => answer,
        }
    }

    fn ask(&mut self, kept: Option<TcpStream>, host: &str, path: &str) -> Result<u16> {
        let mut stream = match kept {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)
                    .with_context(|| format!("connect to {}", self.address))?;
                stream.set_nodelay(true).context("switch off Nagle's algorithm")?;
                stream.set_read_timeout(Some(PATIENCE)).context("set a time limit")?;
                stream
            }
        };
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: fairway-bench\r\n\r\n");
        stream.write_all(request.as_bytes()).context("send a request")?;
        let (mut answer, mut part) = (Vec::new(), [0; 16 << 10]);
        loop {
            let count = stream.read(&mut part).context("receive an answer")?;
            ensure!(count > 0, "the connection ended before the answer did");
            answer.extend_from_slice(&part[..count]);
            let Some(end) = end_of_head(&answer, 0) else { continue };
            let head = parse_head(&answer[..end])?;
            if answer.len() >= end + head.length {
                if !head.closes {
                    self.stream = Some(stream);
                }
                return Ok(head.status);
            }
        }
    }

    /// Asks until the status is `wanted`; how long it took, counted from `since`.
    pub(crate) fn until(
        &mut self,
        host: &str,
        path: &str,
        wanted: u16,
        (since, patience): (Instant, Duration),
    ) -> Result<Duration> {
        loop {
            let status = self.status(host, path)?;
            let waited = since.elapsed();
            if status == wanted {
                return Ok(waited);
            }
            ensure!(
                waited < patience,
                "http://{host}{path} still has status {status} instead of {wanted} after {waited:?}"
            );
            pause(PAUSE);
        }
    }
}
