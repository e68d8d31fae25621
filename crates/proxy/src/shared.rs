//! What all threads of traffic share.

use crate::authenticator::Answers;
use crate::credentials::{Digests, Verifier};
use crate::crowds::{Crowd, Crowds, Threads};
use crate::endpoints::Watched;
use crate::generation::Generation;
use crate::geoip::GeoIp;
use crate::listen::{Listening, Openings};
use crate::load::Load;
use crate::mirrors::IN_FLIGHT;
use crate::told::Told;
use crate::trace::Sampled;
use crate::under_way::UnderWay;
use arc_swap::ArcSwap;
use model::Outside;
use request_metrics::Metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use tokio::time::Instant;
use upstream::{Addresses, Names};
use wire::Scratch;

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The Configuration in force.
    pub current: Arc<ArcSwap<Generation>>,
    /// What is known about the listeners.
    pub listening: Listening,
    /// Connections of clients at most, each thread.
    pub connections: AtomicUsize,
    /// Which ports of Gateways are open.
    pub openings: Openings,
    /// The number of the next connection.
    pub(crate) serial: AtomicU64,
    pub(crate) verifier: Verifier,
    pub(crate) digests: Digests,
    pub(crate) answers: Answers,
    pub(crate) names: Names,
    /// Databases about addresses.
    pub geoip: Arc<GeoIp>,
    /// Where bodies are kept that are too large for memory.
    pub scratch: Scratch,
    /// How hard the process is pressed.
    pub(crate) load: Arc<Load>,
    /// What requests under way hold.
    pub(crate) under_way: Arc<UnderWay>,
    /// What the error log says of requests.
    pub(crate) told: Told,
    /// Where requests are counted, if they are.
    pub metrics: Option<Arc<Metrics>>,
    /// What threads count of what is full.
    pub(crate) crowds: Threads,
    /// How it goes at each endpoint.
    pub(crate) watched: Watched,
    /// Which endpoints there are.
    pub(crate) addresses: Arc<Addresses>,
    /// Requests that somebody waits for.
    pub(crate) sampled: Sampled,
}

/// What the process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Serving.
    Serving,
    /// Connections are still taken, but none is kept: the process is about to end.
    Leaving,
    /// No new connections; what runs may finish until then.
    Draining(Instant),
}

impl Shared {
    /// The state of a process that serves `generation`.
    pub(crate) fn new(
        generation: Arc<Generation>,
        listening: Listening,
        connections: usize,
        outside: &Outside,
    ) -> Self {
        Self {
            current: Arc::new(ArcSwap::new(generation)),
            listening,
            connections: AtomicUsize::new(connections),
            openings: Openings::default(),
            serial: AtomicU64::new(1),
            verifier: Verifier::default(),
            digests: Digests::default(),
            answers: Answers::default(),
            names: Names::new(outside.clone()),
            geoip: Arc::default(),
            scratch: Scratch::default(),
            load: Arc::default(),
            under_way: Arc::default(),
            told: Told::default(),
            metrics: None,
            crowds: Threads::default(),
            watched: Watched::default(),
            addresses: Arc::default(),
            sampled: Sampled::default(),
        }
    }

    /// How full is what requests come to.
    pub(crate) fn crowds(&self) -> Crowds {
        let (copies, tries) = self.crowds.sum(IN_FLIGHT);
        let (now, most, refused) = self.names.kept_hosts();
        Crowds {
            copies,
            passwords: self.verifier.crowd(),
            answers: self.answers.crowd(),
            hosts: Crowd { now, most, refused },
            tries,
            handshakes: self.current.load().certificates.refused_handshakes(),
            lines: self.told.left_out(),
        }
    }
}
