//! Copies of requests (`fairway run --shadow`): each runs through the phases as a real one does, but nothing is sent to
//! anybody; what was decided is counted in groups.

use crate::connection::Connection;
use crate::dry::{End, Outcome};
use crate::exchange::Exchange;
use crate::trace::Trace;
use http::StatusCode;
use model::{Printable, ServerName};
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tls::TlsSession;
use wire::{Response, Source, tokens};

/// Groups that are kept apart; copies beyond them are only counted.
const MOST_GROUPS: usize = 1000;
/// How much of a host and a path an example shows.
const SHOWN: usize = 200;
/// What meshes put behind the host of a copy (Envoy, and so Istio).
const SUFFIX: &[u8] = b"-shadow";

/// What became of copies, by group.
#[derive(Debug, Default)]
pub struct Shadow {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    groups: HashMap<Decided, Count>,
    beyond: u64,
    sums: [u64; 4],
    /// Copies that do not say whose request they are of.
    without_client: u64,
}

/// What is said of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Said {
    /// It would have gone to an upstream.
    Upstream,
    /// It would have been redirected.
    Redirect,
    /// It would have been refused, or nobody would have been there: 400 and more.
    Refusal,
    /// It would have been answered here otherwise.
    Answer,
}

/// What tells one group from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decided {
    /// In one word.
    pub said: Said,
    /// The server that answers; `_` for the one of all other hosts.
    pub host: String,
    /// `namespace/name` of the Ingress whose path it is; none is nobody's.
    pub ingress: Option<String>,
    /// The upstream that it would have gone to.
    pub upstream: Option<String>,
    /// The status, where it would have been answered here.
    pub status: Option<u16>,
    /// Where it ended.
    pub end: End,
}

/// How often it was decided so.
#[derive(Clone, Debug)]
pub struct Count {
    /// How many copies.
    pub copies: u64,
    /// The first of them: method, host and path.
    pub example: String,
    /// When that came.
    pub first: SystemTime,
    /// When the last one came.
    pub last: SystemTime,
}

/// All of it at one moment.
#[derive(Clone, Debug, Default)]
pub struct Shadowed {
    /// The most frequent first.
    pub groups: Vec<(Decided, Count)>,
    /// Copies of groups that are not kept apart.
    pub beyond: u64,
    /// Copies, by what is said of them.
    pub sums: [(&'static str, u64); 4],
    /// Copies without X-Forwarded-For and PROXY header: their client is whoever copies.
    pub without_client: u64,
}

impl Said {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Upstream, Self::Redirect, Self::Refusal, Self::Answer];

    /// As it is told.
    pub fn word(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Redirect => "redirect",
            Self::Refusal => "refusal",
            Self::Answer => "answer",
        }
    }

    fn of(outcome: &Outcome) -> Self {
        match outcome.status {
            _ if outcome.sent => Self::Upstream,
            300..=399 => Self::Redirect,
            400.. => Self::Refusal,
            _ => Self::Answer,
        }
    }
}

impl Shadow {
    /// A copy: from now on it is what it is a copy of, as far as its header section says so, and nothing is sent for
    /// it.
    pub(crate) fn begin(&self, exchange: &mut Exchange) {
        exchange.trace = Some(Box::new(Trace { dry: true, copy: true, ..Trace::default() }));
        let own = own_host(&exchange.request.authority);
        if own.len() < exchange.request.authority.len() && !is_known(exchange) {
            exchange.request.authority = own.into_owned().into();
        }
        let client = forwarded_for(exchange);
        if client.is_none() && exchange.connection.announced.is_none() {
            self.seen().without_client += 1;
        }
        if let Some(original) = original(exchange, client) {
            exchange.connection = Rc::new(original);
        }
    }

    /// What was decided about it; whoever copied it is told no more than that.
    pub(crate) fn end(&self, exchange: &Exchange, response: &mut Response) {
        let outcome = Outcome::of(exchange, response);
        self.note(&outcome, || example(exchange));
        if outcome.sent {
            response.status = StatusCode::NO_CONTENT;
            response.source = Source::Own;
        }
    }

    /// A TLS connection that a real one would have carried on as it is.
    pub(crate) fn carried(&self, upstream: &str) {
        let decided = Decided {
            said: Said::Upstream,
            host: "(TLS that is passed through)".to_owned(),
            ingress: None,
            upstream: Some(upstream.to_owned()),
            status: None,
            end: End::Upstream,
        };
        self.count(decided, || "a TLS connection".to_owned());
    }

    fn note(&self, outcome: &Outcome, example: impl FnOnce() -> String) {
        let origin = outcome.location.as_ref().and_then(|location| location.origin.as_ref());
        let server = outcome.server.as_ref();
        let decided = Decided {
            said: Said::of(outcome),
            host: server.map_or_else(|| "_".to_owned(), |(name, _)| name.as_str().to_owned()),
            ingress: origin.map(|origin| format!("{}/{}", origin.namespace, origin.name)),
            upstream: outcome.upstream.clone().filter(|_| outcome.sent),
            status: (!outcome.sent).then_some(outcome.status),
            end: outcome.end,
        };
        self.count(decided, example);
    }

    fn count(&self, decided: Decided, example: impl FnOnce() -> String) {
        let now = SystemTime::now();
        let mut seen = self.seen();
        seen.sums[decided.said as usize] += 1;
        if let Some(count) = seen.groups.get_mut(&decided) {
            count.copies += 1;
            count.last = now;
            return;
        }
        if seen.groups.len() >= MOST_GROUPS {
            seen.beyond += 1;
            return;
        }
        let example = example();
        let Decided { said, host, ingress, upstream, status, .. } = &decided;
        let (said, ingress) = (said.word(), ingress.as_deref().unwrap_or("-"));
        let upstream = upstream.as_deref().unwrap_or("-");
        let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        tracing::info!(%host, ingress, upstream, status, example, "first copy of its kind: {said}");
        seen.groups.insert(decided, Count { copies: 1, example, first: now, last: now });
    }

    /// What was seen so far.
    pub fn seen_so_far(&self) -> Shadowed {
        let seen = self.seen();
        let mut groups: Vec<_> =
            seen.groups.iter().map(|(decided, count)| (decided.clone(), count.clone())).collect();
        groups.sort_by(|(a, one), (b, two)| two.copies.cmp(&one.copies).then_with(|| a.cmp(b)));
        let sums = Said::ALL.map(|said| (said.word(), seen.sums[said as usize]));
        Shadowed { groups, beyond: seen.beyond, sums, without_client: seen.without_client }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host without what a mesh puts behind it.
fn own_host(authority: &[u8]) -> Cow<'_, [u8]> {
    let port = authority.iter().rposition(|byte| *byte == b':').unwrap_or(authority.len());
    let (host, port) = authority.split_at(port);
    match host.strip_suffix(SUFFIX).filter(|host| !host.is_empty()) {
        Some(host) => Cow::Owned([host, port].concat()),
        // Envoy appends it to the authority as it is, port and all.
        None => Cow::Borrowed(authority.strip_suffix(SUFFIX).unwrap_or(authority)),
    }
}

/// Whether there is a host of that very name, which then is what was meant.
fn is_known(exchange: &Exchange) -> bool {
    let host = exchange.connection.host_of(&exchange.request.authority);
    exchange.generation.configuration.servers.contains_key(&ServerName::new(&*host))
}

/// The last address of X-Forwarded-For, which is whom the copying proxy saw. Nobody gains anything by a wrong one:
/// nothing is served here.
fn forwarded_for(exchange: &Exchange) -> Option<IpAddr> {
    let header = exchange.request.headers.bytes("x-forwarded-for")?;
    let last = tokens(&header).last()?;
    crate::address::parse_address(last)
}

/// The connection that the original came over, where the copy says that it was another one.
fn original(exchange: &Exchange, client: Option<IpAddr>) -> Option<Connection> {
    let (copy, listen) = (&exchange.connection, &exchange.worker.listen);
    let secure = match exchange.request.headers.bytes("x-forwarded-proto").as_deref() {
        Some(b"https") => true,
        Some(b"http") => false,
        _ => copy.tls.is_some(),
    };
    if client.is_none() && secure == copy.tls.is_some() {
        return None;
    }
    let peer = client.map_or(copy.peer, |client| SocketAddr::new(client, copy.peer.port()));
    let port = if secure { listen.https_port } else { listen.http_port };
    let port = if secure == copy.tls.is_some() { copy.local.port() } else { port };
    let local = SocketAddr::new(copy.local.ip(), port);
    let tls = secure.then(|| {
        let host = copy.host_of(&exchange.request.authority);
        let server_name = (!host.is_empty()).then(|| host.to_string());
        TlsSession { server_name, ..TlsSession::default() }
    });
    let mut original = Connection::new(copy.serial, peer, local, copy.announced, tls);
    original.is_gateways = copy.is_gateways;
    original.requests.set(copy.requests.get());
    Some(original)
}

/// Method, host and path; the query may hold a token.
fn example(exchange: &Exchange) -> String {
    let path = String::from_utf8_lossy(exchange.request.raw_path());
    let place = format!("{}{path}", exchange.host);
    let place = match place.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &place[..end]),
        None => place,
    };
    Printable(&format!("{} {place}", exchange.request.method)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16, sent: bool, upstream: &str) -> Outcome {
        Outcome {
            status,
            sent,
            end: End::Upstream,
            server: None,
            location: None,
            upstream: Some(upstream.to_owned()),
            stands_in: false,
            leads_to: None,
            dotted: false,
        }
    }

    #[test]
    fn copies_are_counted_in_groups_of_which_there_are_not_too_many() {
        let shadow = Shadow::default();
        for number in 0..MOST_GROUPS + 5 {
            shadow.note(&outcome(200, true, &format!("demo-{number}-80")), String::new);
        }
        for status in [308, 403, 503, 200, 403] {
            shadow.note(&outcome(status, false, "never"), String::new);
        }
        let seen = shadow.seen_so_far();
        assert_eq!((seen.groups.len(), seen.beyond), (MOST_GROUPS, 10));
        let sums = [("upstream", 1005), ("redirect", 1), ("refusal", 3), ("answer", 1)];
        assert_eq!(seen.sums, sums);
        shadow.note(&outcome(200, true, "demo-7-80"), String::new);
        let first = &shadow.seen_so_far().groups[0];
        assert_eq!((first.0.upstream.as_deref(), first.1.copies), (Some("demo-7-80"), 2));
    }

    #[test]
    fn what_a_mesh_puts_behind_the_host_is_taken_off() {
        for (given, wanted) in [
            ("shop.test-shadow", "shop.test"),
            ("shop.test-shadow:8080", "shop.test:8080"),
            ("shop.test:8080-shadow", "shop.test:8080"),
            ("shop.test", "shop.test"),
            ("-shadow", ""),
            ("", ""),
        ] {
            assert_eq!(*own_host(given.as_bytes()), *wanted.as_bytes(), "{given}");
        }
    }
}
