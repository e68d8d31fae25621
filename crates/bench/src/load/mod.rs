//! The load generator and the upstream: both ends of a proxy in one thread, driven by one epoll loop.
//!
//! One thread for both, because they share one core anyway: two would only add wake-ups to what is measured.

mod answers;
mod frames;
mod generator;
mod grpc;
mod http1;
mod http2;
mod latency;
mod link;
mod run;
mod talk;
mod upstream;
mod websocket;

pub(crate) use answers::WEBSOCKET_KEY;
pub(crate) use generator::Generator;
pub(crate) use grpc::MESSAGE as GRPC_MESSAGE;
pub(crate) use http1::{end_of_head, parse as parse_head};
pub(crate) use http2::Prepared;
pub(crate) use latency::Latencies;
pub(crate) use talk::Protocol;
pub(crate) use upstream::Upstream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// The next one when the one before is answered.
    Closed,
    /// At this rate, whatever becomes of them; latency counts from when a request was due.
    Open {
        /// Requests per second.
        rate: f64,
        /// Whether the loop spins instead of sleeping, which is exact and takes a whole core.
        spins: bool,
    },
    /// One per connection, which then stays open.
    Once,
}

/// How a load is applied.
#[derive(Clone)]
pub(crate) struct Plan {
    /// The proxy's listener.
    pub(crate) target: SocketAddr,
    /// TLS settings and the name to ask for.
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// What is spoken.
    pub(crate) protocol: Protocol,
    /// Prepared requests; each one sent is chosen at random among them.
    pub(crate) requests: Arc<Vec<Vec<u8>>>,
    /// How many connections there are.
    pub(crate) connections: usize,
    /// How many requests one connection carries at once.
    pub(crate) streams: usize,
    /// Whether every request gets a connection of its own.
    pub(crate) fresh: bool,
    /// When requests are sent.
    pub(crate) pace: Pace,
    /// How long before anything counts.
    pub(crate) warm_up: Duration,
    /// How long what happens counts.
    pub(crate) measure: Duration,
    /// Answers that are waited for, however long that takes.
    pub(crate) answers: u64,
}

/// A median of fewer answers would be an accident.
pub(crate) const ENOUGH: u64 = 100;

impl Plan {
    /// One request on one connection.
    pub(crate) fn one(target: SocketAddr, request: Vec<u8>) -> Self {
        Self {
            target,
            tls: None,
            protocol: Protocol::Http1,
            requests: Arc::new(vec![request]),
            connections: 1,
            streams: 1,
            fresh: false,
            pace: Pace::Once,
            warm_up: Duration::ZERO,
            measure: Duration::from_secs(2),
            answers: ENOUGH,
        }
    }
}

/// Where in a run something is to be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the first connection.
    Start,
    /// The warm-up is over.
    Begin,
    /// The measurement is over; connections are still open.
    End,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Answered requests.
    pub(crate) requests: u64,
    /// Requests without a right answer.
    pub(crate) errors: u64,
    /// The first of them, in words.
    pub(crate) first_error: Option<String>,
    /// Requests that were due and not even sent at the end.
    pub(crate) unsent: usize,
    /// Length of the measurement.
    pub(crate) seconds: f64,
    /// From the moment a request was due to the end of its answer.
    pub(crate) latencies: Latencies,
    /// Connections that resumed a TLS session, of those that carried one request only.
    pub(crate) resumed: u64,
    /// The share of one core that the generator and the upstream took.
    pub(crate) generator_busy: f64,
}
