//! What is measured: one row for each kind of traffic.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::pki_types::ServerName;

use crate::load::{ENOUGH, GRPC_MESSAGE, Pace, Plan, Prepared, Protocol, WEBSOCKET_KEY};
use crate::peers::{GRPC, HEADERS, Peer, REWRITE, Running, SECURE, Snippet};
use crate::tls::Certificate;

/// How a connection is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// Not at all.
    Plain,
    /// TLS, one handshake for many requests.
    Tls,
    /// TLS, a full handshake for each request.
    TlsFull,
    /// TLS, a resumed handshake for each request.
    TlsResumed,
}

/// One kind of traffic.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// Its name on the command line and in benchmarks.json.
    pub(crate) name: &'static str,
    /// What it is, in the report.
    pub(crate) title: &'static str,
    /// The protocol of the clients.
    pub(crate) protocol: Protocol,
    /// TLS or not.
    pub(crate) security: Security,
    /// How many hosts the proxy knows; requests go to all of them.
    pub(crate) hosts: usize,
    /// The one host that is asked, if it is one of those with a snippet.
    pub(crate) snippet: Option<&'static Snippet>,
    path: &'static str,
    upload: usize,
    /// Connections, and requests at once on each.
    pub(crate) shape: (usize, usize),
}

/// The traffic of most scenarios: sixty-four clients with one request each at a time.
const SIMPLE: Scenario = Scenario {
    name: "",
    title: "",
    protocol: Protocol::Http1,
    security: Security::Plain,
    hosts: 1,
    snippet: None,
    path: "/",
    upload: 0,
    shape: (64, 1),
};

/// The traffic that the floor is measured with, too.
pub(crate) const KEEP_ALIVE: &str = "http1";

/// The same, of long answers.
pub(crate) const LONG: &str = "body-1m";

/// The same, of frames both ways.
pub(crate) const ECHO: &str = "websocket";

/// All of them, in the order of the report; those with the same hosts share a start of the proxies.
pub(crate) const SCENARIOS: [Scenario; 16] = [
    Scenario { name: KEEP_ALIVE, title: "HTTP/1.1 keep-alive, small body", ..SIMPLE },
    Scenario { name: "body-16k", title: "HTTP/1.1, 16 KiB body down", path: "/16k", ..SIMPLE },
    Scenario { name: LONG, title: "HTTP/1.1, 1 MiB body down", path: "/1m", ..SIMPLE },
    Scenario { name: "upload-16k", title: "HTTP/1.1, 16 KiB body up", upload: 16 << 10, ..SIMPLE },
    Scenario { name: "upload-1m", title: "HTTP/1.1, 1 MiB body up", upload: 1 << 20, ..SIMPLE },
    Scenario { name: "tls", title: "TLS keep-alive", security: Security::Tls, ..SIMPLE },
    Scenario {
        name: "tls-full",
        title: "TLS, new connection, full handshake",
        security: Security::TlsFull,
        ..SIMPLE
    },
    Scenario {
        name: "tls-resumed",
        title: "TLS, new connection, resumed",
        security: Security::TlsResumed,
        ..SIMPLE
    },
    Scenario {
        name: "http2",
        title: "HTTP/2 over TLS",
        protocol: Protocol::Http2,
        security: Security::Tls,
        shape: (8, 8),
        ..SIMPLE
    },
    Scenario {
        name: "grpc",
        title: "gRPC unary over TLS",
        protocol: Protocol::Grpc,
        security: Security::Tls,
        shape: (8, 8),
        ..SIMPLE
    },
    Scenario {
        name: ECHO,
        title: "WebSocket echo, 64 bytes",
        protocol: Protocol::WebSocket,
        path: "/websocket",
        ..SIMPLE
    },
    Scenario {
        name: "snippet-headers",
        title: "five headers by more_set_headers",
        snippet: Some(&HEADERS),
        ..SIMPLE
    },
    Scenario {
        name: "snippet-rewrite",
        title: "if with an expression, and rewrite",
        snippet: Some(&REWRITE),
        path: "/old/path/",
        ..SIMPLE
    },
    Scenario { name: "hosts-1", title: "1 host", ..SIMPLE },
    Scenario { name: "hosts-1000", title: "1,000 hosts", hosts: 1_000, ..SIMPLE },
    Scenario { name: "hosts-10000", title: "10,000 hosts", hosts: 10_000, ..SIMPLE },
];

/// What idle connections speak before they are idle.
pub(crate) const IDLE: [Scenario; 3] = [
    Scenario { name: "idle-plain", title: "HTTP/1.1", ..SIMPLE },
    Scenario { name: "idle-tls", title: "HTTP/1.1 over TLS", security: Security::Tls, ..SIMPLE },
    Scenario {
        name: "idle-http2",
        title: "HTTP/2 over TLS",
        protocol: Protocol::Http2,
        security: Security::Tls,
        ..SIMPLE
    },
];

/// The hosts without TLS.
pub(crate) fn hosts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("host-{number:05}.bench.test")).collect()
}

impl Scenario {
    /// Whether a peer has a part in it.
    pub(crate) fn is_for(&self, peer: Peer) -> bool {
        match peer {
            Peer::Haproxy => self.snippet.is_none(),
            Peer::Floor => [KEEP_ALIVE, LONG, ECHO].contains(&self.name),
            Peer::Fairway | Peer::FairwayNginx | Peer::Nginx => true,
        }
    }

    /// The load on `running`, at `pace`.
    pub(crate) fn plan(
        &self,
        running: &Running,
        certificate: &Certificate,
        pace: Pace,
        measure: Duration,
    ) -> Result<Plan> {
        if self.security == Security::Plain {
            return Ok(self.plan_for(running.http, pace, measure));
        }
        let alpn = match self.protocol {
            Protocol::Http1 | Protocol::WebSocket => "http/1.1",
            Protocol::Http2 | Protocol::Grpc => "h2",
        };
        let config = certificate.client(alpn, self.security == Security::TlsResumed)?;
        let name = ServerName::try_from(self.secure_host()).context("a host's name")?;
        Ok(Plan { tls: Some((config, name)), ..self.plan_for(running.https, pace, measure) })
    }

    /// The same load without TLS on `target`.
    pub(crate) fn plan_for(&self, target: SocketAddr, pace: Pace, measure: Duration) -> Plan {
        let (connections, streams) = self.shape;
        Plan {
            target,
            tls: None,
            protocol: self.protocol,
            requests: Arc::new(self.requests()),
            connections,
            streams,
            fresh: matches!(self.security, Security::TlsFull | Security::TlsResumed),
            pace,
            warm_up: measure / 4,
            measure,
            answers: ENOUGH,
        }
    }

    fn secure_host(&self) -> &'static str {
        if self.protocol == Protocol::Grpc { GRPC } else { SECURE }
    }

    /// Prepared requests to all hosts.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        let secure = self.security != Security::Plain;
        let host = self.secure_host();
        match self.protocol {
            Protocol::Http2 => vec![Prepared::get(host, self.path, secure).bytes()],
            Protocol::Grpc => {
                vec![Prepared::grpc(host, "/bench.Echo/Say", secure, GRPC_MESSAGE).bytes()]
            }
            Protocol::Http1 | Protocol::WebSocket if secure => vec![self.request(host)],
            _ if let Some(snippet) = self.snippet => vec![self.request(snippet.host)],
            Protocol::Http1 | Protocol::WebSocket => {
                hosts(self.hosts).iter().map(|host| self.request(host)).collect()
            }
        }
    }

    fn request(&self, host: &str) -> Vec<u8> {
        let Self { path, upload, .. } = self;
        let method = if *upload > 0 { "POST" } else { "GET" };
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: fairway-bench\r\nAccept: */*\r\n"
        );
        if *upload > 0 {
            text += &format!("Content-Length: {upload}\r\n");
        }
        if self.protocol == Protocol::WebSocket {
            text += &format!(
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: {WEBSOCKET_KEY}\r\n"
            );
        }
        let mut bytes = (text + "\r\n").into_bytes();
        bytes.resize(bytes.len() + upload, b'u');
        bytes
    }
}
