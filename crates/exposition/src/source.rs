//! What an engine says of itself, whichever it is: plain numbers, asked for while a page is made.

use model::PathKind;
use request_metrics::{Connections, Metrics};
use runtime::Usage;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use stream::Streams;

/// The engine that carries HTTP, as far as it is counted.
pub trait Source: Send + Sync + 'static {
    /// What is counted of requests, if that was asked for.
    fn requests(&self) -> Option<&Arc<Metrics>>;

    /// The certificate of hosts without one (DER).
    fn own_certificate(&self) -> Option<Vec<u8>>;

    /// What only an engine in this process can say.
    fn within(&self) -> Option<Within>;

    /// What it is at: asked once for a page, before the first piece.
    fn traffic(&self) -> Pin<Box<dyn Future<Output = Traffic> + Send + '_>>;

    /// Somebody looks at endpoints: from now on it is counted for a while how it goes at each.
    fn look_at_endpoints(&self) {}

    /// How it goes at each endpoint; none where nobody can say.
    fn endpoints(&self) -> Option<AtEndpoints> {
        None
    }

    /// When (in seconds since 1970) and why a request of a route failed last.
    fn route_failure(&self, _host: &str, _kind: PathKind, _path: &str) -> Option<(f64, String)> {
        None
    }

    /// What became of the request with this `X-Request-ID`; from the first question on it is waited for. None where
    /// nobody can say.
    fn sample(&self, _id: &str) -> Option<Sampled> {
        None
    }

    /// What was decided about copies, if this process serves nobody (`--shadow`).
    fn copies(&self) -> Option<Copies> {
        None
    }
}

/// What is known of a request that somebody waits for.
#[derive(Clone, Debug)]
pub enum Sampled {
    /// It has not come since the first question.
    Awaited,
    /// When it was answered (in seconds since 1970), and what was decided.
    Told(f64, Vec<Step>),
    /// Too many are waited for.
    TooMany,
    /// No id of a request.
    NoId,
}

/// A decision about a request.
#[derive(Clone, Debug)]
pub struct Step {
    /// What was decided about.
    pub step: &'static str,
    /// What was decided.
    pub outcome: String,
    /// The annotation, key or field, and the object that asked for it.
    pub by: Option<String>,
}

/// How it goes at endpoints, as far as it was counted.
#[derive(Clone, Debug, Default)]
pub struct AtEndpoints {
    /// Upper bounds of the times that they take, in seconds.
    pub bounds: &'static [f64],
    /// Each of them that something is known of.
    pub each: Vec<AtEndpoint>,
}

/// How it goes at one endpoint.
#[derive(Clone, Debug)]
pub struct AtEndpoint {
    /// Its address.
    pub address: SocketAddr,
    /// Tries, while somebody looked.
    pub tries: u64,
    /// Those that failed, or were answered with 500 and more.
    pub errors: u64,
    /// How many took no longer than each bound, and all of them.
    pub up_to: Vec<u64>,
    /// The last failure in seconds since 1970, and why.
    pub failed: Option<(f64, String)>,
}

/// What was decided about copies of requests.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// How many, by decision.
    pub sums: [(&'static str, u64); 4],
    /// In groups, the most frequent first.
    pub groups: Vec<Copied>,
    /// How many groups are kept apart.
    pub most_groups: u64,
    /// Copies of others.
    pub beyond: u64,
    /// Copies that did not say whose request they are of.
    pub without_client: u64,
}

/// Copies about which the same was decided.
#[derive(Clone, Debug, Default)]
pub struct Copied {
    /// In one word.
    pub decision: &'static str,
    /// The server that answers.
    pub host: String,
    /// The Ingress whose path it is.
    pub ingress: Option<String>,
    /// The upstream that they would have gone to.
    pub upstream: Option<String>,
    /// The status that they would have been answered with here.
    pub status: Option<u16>,
    /// What ended them here.
    pub by: &'static str,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub example: String,
    /// When that came, and the last one: seconds since 1970.
    pub times: (f64, f64),
}

/// What the engine is at.
#[derive(Debug, Default)]
pub struct Traffic {
    /// None while it does not say.
    pub connections: Option<Connections>,
    /// The processes that carry traffic.
    pub processes: Vec<Usage>,
    /// The nginx of `--engine=nginx`.
    pub nginx: Option<Supervised>,
}

/// A supervised nginx.
#[derive(Debug)]
pub struct Supervised {
    /// How often it was started.
    pub starts: u64,
    /// How often it was reloaded.
    pub reloads: u64,
    /// Workers that take connections.
    pub serving: Vec<Usage>,
    /// Workers that only finish what they have.
    pub leaving: Vec<Usage>,
}

/// What an engine in this process says.
#[derive(Debug, Default)]
pub struct Within {
    /// 0: normal; 1: high; 2: full.
    pub pressure: u8,
    /// Connections that were refused, by reason.
    pub refused: [(&'static str, u64); 4],
    /// Requests that were answered 503 under pressure.
    pub refused_requests: u64,
    /// Connections ended under pressure, since they held much and took little.
    pub unread: u64,
    /// Times that no connection could be accepted.
    pub accept_failures: u64,
    /// Tasks that broke.
    pub panics: u64,
    /// Connections to upstreams that were opened and that were used again, by upstream.
    pub reuse: Vec<(String, [(&'static str, u64); 2])>,
    /// Lines of logs that were dropped, by log.
    pub dropped_lines: [(&'static str, u64); 3],
    /// Copies of requests, by what was decided about them; none where requests are real.
    pub copies: Option<[(&'static str, u64); 4]>,
    /// What became of spans.
    pub spans: [(&'static str, u64); 3],
    /// Connections of clients at most.
    pub most_connections: u64,
    /// What else has room for so much.
    pub places: Vec<Places>,
    /// What else there was nothing left for.
    pub lost: Vec<Lost>,
}

/// What has room for so much.
#[derive(Clone, Debug)]
pub struct Places {
    /// Its name in `/metrics`.
    pub name: &'static str,
    /// What.
    pub what: &'static str,
    /// How much there is.
    pub now: u64,
    /// How much there may be.
    pub most: u64,
    /// What becomes of more.
    pub beyond: &'static str,
    /// How often there was no room.
    pub refused: u64,
}

impl Places {
    /// What the ports beside those of HTTP have room for; the webhook only where there is one.
    pub fn of_ports(streams: &Streams) -> Vec<Self> {
        let places = |name, what, (now, most, refused): (usize, usize, u64), beyond| Self {
            name,
            what,
            now: now as u64,
            most: most as u64,
            beyond,
            refused,
        };
        let [connections, sessions] = streams.places();
        let of_layer_4 = [
            places(
                "tcp_connections",
                "connections of TCP services",
                connections,
                "the quietest of whoever holds most ends, half for one namespace: raise the limit of open files",
            ),
            places(
                "udp_sessions",
                "sessions of UDP services",
                sessions,
                "the quietest of whoever holds most ends, half for one namespace: raise the limit of open files",
            ),
        ];
        let lost = "the address that holds most loses one: ask less often, or keep fewer open";
        let own = [
            ("admin_connections", "connections of the admin port", runtime::admin::connections()),
            (
                "webhook_connections",
                "connections of the admission webhook",
                controller::admission::connections(),
            ),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, what, count)| Some(places(name, what, count?, lost)));
        of_layer_4.into_iter().chain(own).collect()
    }
}

/// What there was nothing left for, where each namespace has its share.
#[derive(Clone, Debug)]
pub struct Lost {
    /// Its name in `/metrics`.
    pub name: &'static str,
    /// What.
    pub what: &'static str,
    /// Why, and the remedy.
    pub why: &'static str,
    /// How often.
    pub count: u64,
}
