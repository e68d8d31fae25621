//! The smallest HTTP/1.1 client that the cluster tests need: one connection, one request after the other.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::certificates::Identity;
use anyhow::{Context, Result, bail, ensure};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Everything that a connection has to be able to do.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to a server.
pub struct Connection {
    stream: Box<dyn Stream>,
    /// Read from the stream, not yet part of an answer.
    pending: Vec<u8>,
}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Names as sent, in their order.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("status {}, no JSON: {}", self.status, self.text()))
    }

    /// Whether the server will take no further request on this connection.
    pub fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Connects with TLS as [`Connection::open_tls`] does, and agrees on one of these protocols, if there are any.
pub async fn secure(
    address: SocketAddr,
    host: &str,
    authority: &str,
    protocols: &[&str],
) -> Result<Box<dyn Stream>> {
    secure_as(address, host, authority, protocols, None).await
}

/// The same, and shows a certificate where it is asked for one.
async fn secure_as(
    address: SocketAddr,
    host: &str,
    authority: &str,
    protocols: &[&str],
    own: Option<&Identity>,
) -> Result<Box<dyn Stream>> {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.as_bytes());
    roots.add(certificate.context("read the authority's certificate")?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = vec![CertificateDer::from_pem_slice(own.certificate.as_bytes())?];
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes())?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.context("connect")?;
    stream.set_nodelay(true).context("set TCP_NODELAY")?;
    let name = ServerName::try_from(host.to_owned()).context("a name for SNI")?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.context("TLS handshake")?;
    Ok(Box::new(stream))
}

impl Connection {
    /// Connects in clear text.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connect")?;
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        Ok(Self { stream: Box::new(stream), pending: Vec::new() })
    }

    /// Connects with TLS and accepts nothing but a certificate for `host` that `authority` (PEM) has signed.
    pub async fn open_tls(address: SocketAddr, host: &str, authority: &str) -> Result<Self> {
        let stream = secure(address, host, authority, &[]).await?;
        Ok(Self { stream, pending: Vec::new() })
    }

    /// The same, and shows a certificate where it is asked for one.
    pub async fn open_tls_as(
        address: SocketAddr,
        host: &str,
        authority: &str,
        own: &Identity,
    ) -> Result<Self> {
        let stream = secure_as(address, host, authority, &[], Some(own)).await?;
        Ok(Self { stream, pending: Vec::new() })
    }

    /// Whether something of an answer is there.
    pub fn has_begun(&self) -> bool {
        !self.pending.is_empty()
    }

    /// A GET request without a body.
    pub async fn get(&mut self, host: &str, path: &str) -> Result<Answer> {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await
    }

    /// A GET request with further headers, each a line without its end.
    pub async fn get_with(&mut self, host: &str, path: &str, headers: &[&str]) -> Result<Answer> {
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n")).await
    }

    /// A POST request with a JSON body.
    pub async fn post_json(&mut self, host: &str, path: &str, body: &Value) -> Result<Answer> {
        let body = body.to_string();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n");
        let typed = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        self.send(&format!("{head}{typed}\r\n{body}")).await
    }

    async fn send(&mut self, request: &str) -> Result<Answer> {
        self.stream.write_all(request.as_bytes()).await.context("send the request")?;
        self.stream.flush().await.context("send the request")?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<Answer> {
        let (mut answer, length) = loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut head = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(length) = head.parse(&self.pending)? {
                break (Answer::from_head(&head), length);
            }
            self.read_more().await.context("read the head of the answer")?;
        };
        self.pending.drain(..length);
        ensure!(answer.status >= 200, "unexpected interim answer {}", answer.status);
        answer.body = if answer.header("transfer-encoding").is_some() {
            self.chunks().await?
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().context("read Content-Length")?;
            self.take(length).await?
        } else if matches!(answer.status, 204 | 304) {
            Vec::new()
        } else {
            bail!("an answer {} without a length", answer.status)
        };
        Ok(answer)
    }

    async fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let (start, size) = loop {
                let size = httparse::parse_chunk_size(&self.pending);
                match size.map_err(|_| anyhow::anyhow!("a chunk without a size"))? {
                    httparse::Status::Complete(found) => break found,
                    httparse::Status::Partial => self.read_more().await.context("read a chunk")?,
                }
            };
            self.pending.drain(..start);
            let chunk = self.take(usize::try_from(size).context("size of a chunk")?).await?;
            let end = self.take(2).await?;
            ensure!(end == b"\r\n", "a chunk that does not end where it says");
            if size == 0 {
                return Ok(body);
            }
            body.extend(chunk);
        }
    }

    async fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.pending.len() < length {
            self.read_more().await.context("read the body")?;
        }
        Ok(self.pending.drain(..length).collect())
    }

    async fn read_more(&mut self) -> Result<()> {
        ensure!(self.stream.read_buf(&mut self.pending).await? > 0, "the connection was closed");
        Ok(())
    }
}

impl Answer {
    fn from_head(head: &httparse::Response<'_, '_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            status: head.code.unwrap_or_default(),
            headers: head.headers.iter().map(|h| (h.name.to_owned(), text(h.value))).collect(),
            body: Vec::new(),
        }
    }
}
