//! The HTTP/1 client: sends pieces as they are and keeps what comes back.

use crate::backend::Backend;
use crate::case::Piece;
use crate::message::{Read, Response, read_response};
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Nothing more is expected after this much silence, once there is an answer.
const QUIET: Duration = Duration::from_millis(200);
/// Without an answer, or with a connection that has to close, this much silence says that nothing will come.
const SILENT: Duration = Duration::from_millis(2500);

/// How the connection ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The proxy closed it.
    Closed,
    /// The proxy reset it.
    Reset,
}

/// What the client got.
#[derive(Clone, Debug, Default)]
pub struct Got {
    /// Final answers, in order.
    pub answers: Vec<Response>,
    /// Interim answers.
    pub interim: usize,
    /// Bytes that are no answer: why not.
    pub illegal: Option<String>,
    /// An answer that has begun and is not complete.
    pub partial: bool,
    /// How the connection ended.
    pub end: Option<End>,
}

/// When the client stops listening.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Its activity is a reason to wait longer.
    pub backend: &'a Backend,
    /// Methods of the requests sent, as far as they are known.
    pub methods: &'a [String],
    /// Waits for the end of the connection, not only for answers.
    pub close: bool,
}

/// Sends the pieces while it reads, until nothing more is to be expected.
pub async fn exchange(
    address: SocketAddr,
    pieces: &[Piece],
    patience: Patience<'_>,
) -> Result<Got> {
    let stream =
        TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
    stream.set_nodelay(true)?;
    let (mut reading, mut writing) = stream.into_split();
    let pieces = pieces.to_vec();
    // A proxy that refuses stops reading: an error here is its answer, not ours. The half is handed back open.
    let sender = tokio::spawn(async move {
        let _ = send(&mut writing, &pieces).await;
        writing
    });
    let got = listen(&mut reading, patience).await;
    sender.abort();
    Ok(got)
}

async fn send(writing: &mut (impl AsyncWrite + Unpin), pieces: &[Piece]) -> std::io::Result<()> {
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => writing.write_all(bytes).await?,
            Piece::Fin => writing.shutdown().await?,
            Piece::EarlyAnswer => {}
        }
    }
    Ok(())
}

async fn listen(reading: &mut (impl AsyncRead + Unpin), patience: Patience<'_>) -> Got {
    let mut bytes = Vec::new();
    let mut end = None;
    let mut last = (Instant::now(), (0, 0));
    while end.is_none() {
        if let Ok(read) = timeout(Duration::from_millis(20), reading.read_buf(&mut bytes)).await {
            end = match read {
                Ok(0) => Some(End::Closed),
                Ok(_) => None,
                Err(_) => Some(End::Reset),
            };
        }
        let activity = (bytes.len(), patience.backend.activity());
        if activity != last.1 {
            last = (Instant::now(), activity);
            continue;
        }
        let answers = parse(&bytes, patience.methods, None).answers.len();
        let answered = answers >= patience.methods.len().max(1);
        let enough = if answered && !patience.close { QUIET } else { SILENT };
        if last.0.elapsed() > enough {
            break;
        }
    }
    // Upstream connections that the proxy is tearing down need a moment to be seen.
    while patience.backend.activity() != last.1.1 {
        last.1.1 = patience.backend.activity();
        let _ = timeout(Duration::from_millis(50), std::future::pending::<()>()).await;
    }
    parse(&bytes, patience.methods, end)
}

fn parse(bytes: &[u8], methods: &[String], end: Option<End>) -> Got {
    let mut got = Got { end, ..Got::default() };
    let mut rest = bytes;
    while !rest.is_empty() {
        let method = methods.get(got.answers.len()).map_or("GET", String::as_str);
        match read_response(rest, method, end == Some(End::Closed)) {
            Read::Whole(response, used) => {
                rest = &rest[used..];
                match response.status {
                    100 | 102 | 103 => got.interim += 1,
                    _ => got.answers.push(response),
                }
            }
            Read::More { .. } => {
                got.partial = true;
                break;
            }
            Read::Illegal(why) => {
                got.illegal = Some(why);
                break;
            }
        }
    }
    got
}
