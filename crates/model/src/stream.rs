//! TCP and UDP services: a port of this process for a port of a Service (compat/behaviour.md section 18).

use crate::Endpoints;
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// What carries a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// `--tcp-services-configmap`.
    Tcp,
    /// `--udp-services-configmap`.
    Udp,
}

/// The port that a stream is reached by; one number may stand for TCP and for UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamPort {
    /// What carries it.
    pub transport: Transport,
    /// The port of this process.
    pub number: u16,
    /// The address of a Gateway; none: those of the process.
    pub address: Option<IpAddr>,
}

impl fmt::Display for StreamPort {
    /// As `9000/tcp`, or `192.0.2.1:9000/tcp`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(address) = self.address {
            SocketAddr::new(address, self.number).fmt(f)?;
        } else {
            self.number.fmt(f)?;
        }
        f.write_str(match self.transport {
            Transport::Tcp => "/tcp",
            Transport::Udp => "/udp",
        })
    }
}

impl Serialize for StreamPort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where a port leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stream {
    /// The Service port, as `namespace/name:port`; or the route, as `TCPRoute namespace/name`.
    pub service: Arc<str>,
    /// Whose places its connections and sessions take.
    #[serde(skip)]
    pub namespace: Arc<str>,
    /// Who is behind it; never nobody, unless `external` names somebody.
    pub endpoints: Arc<Endpoints>,
    /// A name to resolve instead of endpoints: host and port of an ExternalName Service.
    pub external: Option<(String, u16)>,
    /// Third field `PROXY`: clients send a PROXY protocol header first. TCP only.
    pub takes_proxy: bool,
    /// Fourth field `PROXY`: endpoints get a PROXY protocol header, version 1, first. TCP only.
    pub gives_proxy: bool,
    /// Other services beside this one, which then has nothing itself; each has a part by its weight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<StreamShare>,
}

/// A part of a stream's connections or sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamShare {
    /// How many, beside the other shares.
    pub weight: u32,
    /// Who is behind it; nobody: they end at once.
    pub endpoints: Arc<Endpoints>,
}

/// `proxy-stream-*` of the controller's ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StreamSettings {
    /// `proxy-stream-timeout`: how long nothing may move before a connection or session ends.
    pub idle: Duration,
    /// `proxy-stream-next-upstream`: an endpoint that refuses the connection is followed by the next one.
    pub next_endpoint: bool,
    /// `proxy-stream-next-upstream-timeout`: time for all tries together; zero is no bound.
    pub tries_timeout: Duration,
    /// `proxy-stream-next-upstream-tries`: endpoints tried at most; zero is each one.
    pub tries: u32,
    /// `proxy-stream-responses`: datagrams that answer one of the client before its session ends.
    pub responses: u32,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(600),
            next_endpoint: true,
            tries_timeout: Duration::from_secs(600),
            tries: 3,
            responses: 1,
        }
    }
}
