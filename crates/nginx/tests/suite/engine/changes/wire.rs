//! HTTP/1.1 on a connection of a client: one request, one answer.

use crate::engine::bed::PATIENCE;
use openssl::ssl::{SslConnector, SslMethod, SslVerifyMode};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// What a request asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub tls: bool,
    pub host: String,
    pub path: String,
    pub query: &'static str,
    /// Bytes of the body; a GET if there are none.
    pub length: usize,
    /// What the client says about canaries.
    pub canary: Option<&'static str>,
    pub upgrade: bool,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the connection goes on after it.
    pub(super) fn keeps(&self) -> bool {
        self.field("Connection").is_none_or(|value| !value.eq_ignore_ascii_case("close"))
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Broken {
    /// Bytes of an answer that came.
    pub bytes: usize,
    pub error: io::Error,
}

pub(super) trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
    came: usize,
    /// What the server showed, in DER.
    pub certificate: Option<Vec<u8>>,
}

impl Connection {
    /// Connects, with TLS if a name to ask for is given.
    pub(super) fn open(port: u16, tls: Option<(&SslConnector, &str)>) -> io::Result<Self> {
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_write_timeout(Some(PATIENCE))?;
        let Some((connector, name)) = tls else {
            return Ok(Self { stream: Box::new(tcp), unread: vec![], came: 0, certificate: None });
        };
        let stream = connector.configure()?.verify_hostname(false).connect(name, tcp);
        let stream = stream.map_err(|error| io::Error::other(format!("handshake: {error:?}")))?;
        let shown = stream.ssl().peer_certificate().map(|certificate| certificate.to_der());
        let certificate = shown.transpose()?;
        Ok(Self { stream: Box::new(stream), unread: vec![], came: 0, certificate })
    }

    /// Sends a request and reads the whole answer.
    pub(super) fn exchange(&mut self, asked: &Asked) -> Result<Answer, Broken> {
        self.came = self.unread.len();
        let exchange = |this: &mut Self| {
            this.stream.write_all(&request(asked))?;
            this.answer()
        };
        exchange(self).map_err(|error| Broken { bytes: self.came, error })
    }

    /// Sends bytes on an upgraded connection, and reads them again.
    pub(super) fn echo(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.stream.write_all(bytes)?;
        Ok(self.take(bytes.len())? == bytes)
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let head = self.line_by_line()?;
        let mut lines = head.iter();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status line"))?;
        let fields: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let mut answer = Answer { status, fields, body: Vec::new() };
        if let Some(length) = answer.field("Content-Length") {
            let length = length.parse().map_err(io::Error::other)?;
            answer.body = self.take(length)?;
        } else if answer.field("Transfer-Encoding").is_some() {
            answer.body = self.chunks()?;
        }
        Ok(answer)
    }

    fn line_by_line(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(lines);
            }
            lines.push(line);
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            body.extend(self.take(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut from = 0;
        loop {
            if let Some(end) = self.unread[from..].windows(2).position(|two| two == b"\r\n") {
                let line = self.take(from + end + 2)?;
                return Ok(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned());
            }
            from = self.unread.len().saturating_sub(1);
            self.more()?;
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            self.more()?;
        }
        let rest = self.unread.split_off(length);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let length = self.stream.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.came += length;
        self.unread.extend_from_slice(&buffer[..length]);
        Ok(())
    }
}

/// A client that believes everybody.
pub(super) fn connector() -> SslConnector {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("OpenSSL works");
    builder.set_verify(SslVerifyMode::NONE);
    builder.build()
}

fn request(asked: &Asked) -> Vec<u8> {
    let Asked { tls: _, host, path, query, length, canary, upgrade } = asked;
    let method = if *length > 0 { "PUT" } else { "GET" };
    // The password of whoever asks for one ("u:p").
    let mut text =
        format!("{method} {path}{query} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic dTpw\r\n");
    if let Some(value) = canary {
        text.push_str(&format!("X-Canary: {value}\r\n"));
    }
    if *length > 0 {
        text.push_str(&format!("Content-Length: {length}\r\n"));
    }
    if *upgrade {
        text.push_str("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
        text.push_str("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    }
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.resize(bytes.len() + length, b'b');
    bytes
}
