//! Listeners of Gateways that have an address of their own, each with hosts and certificates that are its alone.

use crate::policy::{ClientVerification, UpstreamTls};
use crate::{CertificateId, Origin, ServerName, UpstreamId};
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Which listener: where connections come in, and for which hosts. The most special one has a request alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId {
    /// Where connections come in; of no certain address: at those of the process.
    pub address: SocketAddr,
    /// The hosts; `_` is all.
    pub hosts: ServerName,
}

impl fmt::Display for ListenerId {
    /// As `192.0.2.1:443 *.example.com`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.address, self.hosts)
    }
}

impl Serialize for ListenerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a listener speaks with clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Speaks {
    /// HTTP in clear.
    Http,
    /// HTTP over TLS.
    Https,
    /// TLS that is carried on as it is.
    TlsPassed,
    /// TLS that ends here; what is in it is carried on.
    TlsEnded,
}

impl Speaks {
    /// Whether connections are carried on, whatever is in them.
    pub fn is_carried(self) -> bool {
        matches!(self, Self::TlsPassed | Self::TlsEnded)
    }
}

/// Where connections to a host of a listener go that are carried on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsRoute {
    /// Where they go, by weight.
    pub shares: Vec<TlsShare>,
    /// The TLSRoute.
    pub origin: Origin,
}

/// A part of the connections to a host that are carried on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsShare {
    /// How many, beside the other shares.
    pub weight: u32,
    /// Where they go; nowhere: they end at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamId>,
    /// TLS towards it, where it ended here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Arc<UpstreamTls>>,
}

/// A listener. One that cannot be served stands here, too, without routes, where others are served at its address: its
/// hosts are not theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listener {
    /// Which one.
    pub id: ListenerId,
    /// The port that clients know, where something before this process leads from there to another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What is spoken with clients; of the same kind for all listeners of an address.
    pub speaks: Speaks,
    /// The certificate of its handshakes, whatever names it has; none where TLS should end here: they fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateId>,
    /// What its clients are asked. Whoever has to show a good certificate and does not gets no connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Arc<ClientVerification>>,
    /// The Gateway.
    pub origin: Origin,
}

/// A host of Gateways: of one listener, or of all Gateways together, where they share the process's addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The listener; none: the listeners of the process itself.
    pub listener: Option<ListenerId>,
    /// The host.
    pub host: ServerName,
}

impl RouteKey {
    /// Whether it is of all Gateways together, which share the process's addresses.
    pub fn is_shared(&self) -> bool {
        self.listener.is_none()
    }
}

impl fmt::Display for RouteKey {
    /// As `a.example.com`, or `192.0.2.1:443 *.example.com/a.example.com`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.listener {
            Some(listener) => write!(f, "{listener}/{}", self.host),
            None => self.host.fmt(f),
        }
    }
}

impl Serialize for RouteKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
