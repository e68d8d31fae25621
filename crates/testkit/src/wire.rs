//! A connection with a buffer: reading up to a mark, so many bytes, or a chunked body, whoever is at the other end.

use std::{future::Future, io, time::Duration};

use openssl::ssl;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::latin1;

/// A header field, as spelled.
pub type Pair = (String, String);

/// The most that is buffered while looking for a mark.
const LIMIT: usize = 4 << 20;

/// Why a connection gave no more.
#[derive(Debug)]
pub enum Failure {
    /// The other end finished, in the middle of something.
    Ended,
    /// Nothing came or could be sent in time.
    Timeout,
    /// What came is not the protocol.
    Malformed,
    /// What should be sent cannot be expressed in bytes.
    Unsendable,
    /// The TLS layer gave up, with OpenSSL's reason.
    Tls(String),
    /// The connection broke.
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<ssl::Error>()) {
            Some(tls) => tls_failure(tls),
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Ended,
            None => Self::Io(error),
        }
    }
}

/// The failure that an error of the TLS layer stands for: its last reason, in OpenSSL's words with dashes.
pub(crate) fn tls_failure(error: &ssl::Error) -> Failure {
    if let Some(io) = error.io_error() {
        return Failure::Io(io.kind().into());
    }
    let reason = error.ssl_error().and_then(|stack| stack.errors().last()?.reason());
    Failure::Tls(
        reason.unwrap_or("unexpected eof while reading").to_lowercase().replace([' ', '_'], "-"),
    )
}

/// Anything that bytes can be read from and written to.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection, what was read from it but not used yet, and how long it may take for each read and write.
pub struct Wire {
    /// The connection itself.
    stream: Box<dyn Stream>,
    /// What was read and not used yet.
    pub buffer: Vec<u8>,
    /// The longest that one read or write may take.
    pub patience: Option<Duration>,
}

impl Wire {
    /// A connection with an empty buffer.
    pub fn new(stream: impl Stream + 'static, patience: Option<Duration>) -> Self {
        Self { stream: Box::new(stream), buffer: Vec::new(), patience }
    }

    /// The connection without its buffer, for another layer on top of it.
    #[must_use]
    pub fn into_stream(self) -> Box<dyn Stream> {
        self.stream
    }

    /// Sends all of the bytes.
    ///
    /// # Errors
    /// When the other end does not take them.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        patiently(self.patience, write).await
    }

    /// Reads what there is into the buffer; false at the end.
    ///
    /// # Errors
    /// When the connection breaks or nothing comes in time.
    pub async fn fill(&mut self) -> Result<bool, Failure> {
        let read = self.stream.read_buf(&mut self.buffer);
        match patiently(self.patience, read).await {
            Ok(count) => Ok(count > 0),
            // Ends without TLS's good-bye are ends all the same.
            Err(Failure::Tls(reason)) if reason == "unexpected-eof-while-reading" => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// What comes before `mark`, which is taken away too.
    ///
    /// # Errors
    /// When the connection ends first.
    pub async fn until(&mut self, mark: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut searched = 0;
        loop {
            let from = searched.min(self.buffer.len());
            let found = self.buffer[from..].windows(mark.len()).position(|window| window == mark);
            if let Some(position) = found {
                let rest = self.buffer.split_off(from + position + mark.len());
                let mut head = std::mem::replace(&mut self.buffer, rest);
                head.truncate(from + position);
                return Ok(head);
            }
            searched = (self.buffer.len() + 1).saturating_sub(mark.len());
            if self.buffer.len() > LIMIT || !self.fill().await? {
                return Err(Failure::Ended);
            }
        }
    }

    /// Exactly so many bytes.
    ///
    /// # Errors
    /// When the connection ends first; what came stays in the buffer.
    pub async fn exactly(&mut self, count: usize) -> Result<Vec<u8>, Failure> {
        while self.buffer.len() < count {
            if !self.fill().await? {
                return Err(Failure::Ended);
            }
        }
        let rest = self.buffer.split_off(count);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// A chunked body and its trailers.
    ///
    /// # Errors
    /// When the connection ends first or a chunk has no size.
    pub async fn chunks(&mut self) -> Result<(Vec<u8>, Vec<Pair>), Failure> {
        let (mut body, mut trailers) = (Vec::new(), Vec::new());
        loop {
            let line = latin1::text(&self.until(b"\r\n").await?);
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| Failure::Malformed)?;
            if size == 0 {
                break;
            }
            body.extend(self.exactly(size).await?);
            self.exactly(2).await?;
        }
        loop {
            let line = self.until(b"\r\n").await?;
            if line.is_empty() {
                return Ok((body, trailers));
            }
            trailers.push(pair(&line));
        }
    }
}

/// A header line taken apart: the name as spelled, the value without the blanks around it.
#[must_use]
pub fn pair(line: &[u8]) -> Pair {
    let text = latin1::text(line);
    let (name, value) = text.split_once(':').unwrap_or((&text, ""));
    (name.to_owned(), value.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).to_owned())
}

/// All values of a header, whose name is given in lower case.
pub fn values<'a>(headers: &'a [Pair], name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .iter()
        .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// The first value of a header.
#[must_use]
pub fn value<'a>(headers: &'a [Pair], name: &'a str) -> Option<&'a str> {
    values(headers, name).next()
}

/// Bounds a read or write.
pub(crate) async fn patiently<T>(
    patience: Option<Duration>,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, Failure> {
    match patience {
        None => Ok(work.await?),
        Some(limit) => {
            Ok(tokio::time::timeout(limit, work).await.map_err(|_| Failure::Timeout)??)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn wire(parts: &[&str]) -> Wire {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        for part in parts {
            far.write_all(part.as_bytes()).await.unwrap();
        }
        Wire::new(near, Some(Duration::from_secs(5)))
    }

    #[tokio::test]
    async fn marks_are_found_and_taken_away() {
        let mut wire = wire(&["one\r", "\n\r\n", "rest"]).await;
        assert_eq!(wire.until(b"\r\n\r\n").await.unwrap(), b"one");
        assert_eq!(wire.exactly(4).await.unwrap(), b"rest");
        assert!(matches!(wire.until(b"x").await, Err(Failure::Ended)));
    }

    #[tokio::test]
    async fn chunks_are_joined_and_trailers_kept() {
        let mut wire = wire(&["3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nX-T:  v \r\n\r\n"]).await;
        let (body, trailers) = wire.chunks().await.unwrap();
        assert_eq!(
            (body.as_slice(), trailers),
            (&b"abcde"[..], vec![("X-T".to_owned(), "v".to_owned())])
        );
    }

    #[tokio::test]
    async fn a_chunk_without_a_size_is_malformed() {
        assert!(matches!(wire(&["zz\r\n"]).await.chunks().await, Err(Failure::Malformed)));
    }
}
