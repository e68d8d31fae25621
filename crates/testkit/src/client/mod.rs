//! The client of the exchange format: sends exactly the bytes asked for and notes what came back.

mod cookies;
pub(crate) mod decode;
mod grpc;
mod http1;
mod http2;
mod lines;
mod tls;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::net::{TcpSocket, TcpStream};

use self::cookies::Jar;
use crate::{
    certificates::Certificates,
    duration,
    exchange::{Answer, Request},
    latin1,
    wire::{Failure, Wire, patiently},
};

/// The client's patience where a request does not say otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the controller listens, and who asks.
pub struct Client {
    /// The controller's address.
    pub address: IpAddr,
    /// The port of `http`.
    pub http: u16,
    /// The port of `https`.
    pub https: u16,
    /// The client's own address, if it matters.
    pub source: Option<IpAddr>,
    certificates: Arc<Certificates>,
    jar: Jar,
}

impl Client {
    /// A client of a controller that listens on these ports.
    #[must_use]
    pub fn new(address: IpAddr, http: u16, https: u16) -> Self {
        let (certificates, jar) = (Certificates::shared(), Jar::default());
        Self { address, http, https, source: None, certificates, jar }
    }

    /// The same client with this address of its own.
    #[must_use]
    pub fn from(self, source: IpAddr) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Forgets all cookies.
    pub fn forget(&self) {
        self.jar.clear();
    }

    /// Sends a request and gives what came back; errors are answers too.
    pub async fn send(&self, request: &Request) -> Answer {
        match self.attempt(request).await {
            Ok(answer) => answer,
            Err(failure) => Answer::failed(name(&failure)),
        }
    }

    async fn attempt(&self, request: &Request) -> Result<Answer, Failure> {
        let patience = match &request.timeout {
            Some(text) => duration::parse(text).ok_or(Failure::Malformed)?,
            None => PATIENCE,
        };
        if let Some(line) = &request.udp {
            return lines::datagram(SocketAddr::new(self.address, line.port), line, patience).await;
        }
        if let Some(line) = &request.tcp {
            let mut wire = Wire::new(self.connect(line.port, patience).await?, Some(patience));
            announce(&mut wire, request).await?;
            return lines::line(wire, line).await;
        }
        let target = Target::of(&request.url);
        let protocol = match (&request.protocol, &request.grpc) {
            (Some(protocol), _) => protocol.as_str(),
            (None, Some(_)) => "h2",
            (None, None) => "http/1.1",
        };
        let port = if target.secure() { self.https } else { self.http };
        let mut wire = Wire::new(self.connect(port, patience).await?, Some(patience));
        announce(&mut wire, request).await?;
        let mut inspected = None;
        if target.secure() {
            let alpn = if protocol == "h2" { "h2" } else { "http/1.1" };
            let stream =
                tls::connect(wire, request, target.name(), alpn, &self.certificates, patience)
                    .await?;
            inspected = Some(tls::inspect(stream.ssl()));
            wire = Wire::new(stream, Some(patience));
        }
        let mut answer = if let Some(call) = &request.grpc {
            grpc::call(wire, request, call, &target).await?
        } else if protocol == "h2" {
            http2::exchange(wire, request, &target, &self.jar).await?
        } else if let Some(raw) = &request.raw {
            http1::raw(wire, raw, patience).await?
        } else {
            http1::exchange(wire, request, &target, protocol, &self.jar).await?
        };
        if request.tls_inspect {
            answer.tls = inspected;
        }
        Ok(answer)
    }

    async fn connect(&self, port: u16, patience: Duration) -> Result<TcpStream, Failure> {
        let socket =
            if self.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(source) = self.source {
            socket.bind(SocketAddr::new(source, 0))?;
        }
        let stream =
            patiently(Some(patience), socket.connect(SocketAddr::new(self.address, port))).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Sends what comes before everything else.
async fn announce(wire: &mut Wire, request: &Request) -> Result<(), Failure> {
    match &request.proxy_protocol {
        Some(bytes) => wire.send(&latin1::bytes(bytes).ok_or(Failure::Unsendable)?).await,
        None => Ok(()),
    }
}

/// A URL taken apart, nothing decoded.
struct Target<'a> {
    scheme: &'a str,
    host: &'a str,
    path: String,
}

impl<'a> Target<'a> {
    fn of(url: &'a str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let path = match &rest[host.len()..] {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Self { scheme, host, path }
    }

    fn secure(&self) -> bool {
        matches!(self.scheme, "https" | "wss")
    }

    /// The host without its port.
    fn name(&self) -> &'a str {
        match self.host.rsplit_once(':') {
            Some((name, _)) if !self.host.starts_with('[') => name,
            _ => self.host,
        }
    }
}

/// How the format names a failure.
fn name(failure: &Failure) -> String {
    match failure {
        Failure::Timeout => "timeout".to_owned(),
        Failure::Malformed => "not-http".to_owned(),
        Failure::Unsendable => "not-sent".to_owned(),
        Failure::Tls(reason) => format!("tls-{reason}"),
        Failure::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            "connection-refused".to_owned()
        }
        Failure::Ended | Failure::Io(_) => "connection-closed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart_and_not_changed() {
        let parts = |url| {
            let target = Target::of(url);
            (target.scheme, target.host, target.name(), target.path.clone())
        };
        let path = |text: &str| text.to_owned();
        assert_eq!(
            parts("http://a.test/x/../%2e?y#z"),
            ("http", "a.test", "a.test", path("/x/../%2e?y#z"))
        );
        assert_eq!(parts("https://a.test:8443"), ("https", "a.test:8443", "a.test", path("/")));
        assert_eq!(parts("http://a.test?x=/"), ("http", "a.test", "a.test", path("/?x=/")));
        assert_eq!(parts("http://[::1]:80//"), ("http", "[::1]:80", "[::1]:80", path("//")));
    }
}
