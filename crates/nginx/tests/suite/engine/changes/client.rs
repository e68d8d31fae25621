//! Clients that never rest. Each checks that an answer is one that was allowed while it asked.

use super::allowed;
use super::journal::Journal;
use super::wire::{Answer, Asked, Broken, Connection};
use fastrand::Rng;
use openssl::ssl::SslConnector;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a body that is larger than what nginx keeps in memory.
const LARGE: usize = 20_000;
/// One in so many requests begins a new connection.
const USES: usize = 20;
/// How long a connection waits for a change before its first request.
const EARLY: Duration = Duration::from_millis(400);
/// Bytes that are echoed, and how often.
const PING: [u8; 64] = [b'p'; 64];
const PAUSE: Duration = Duration::from_millis(20);

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// One connection for as many requests as it is open for.
    KeepAlive,
    /// The same over TLS.
    KeepAliveTls,
    /// A connection for each request.
    Fresh,
    /// The same over TLS.
    FreshTls,
    /// A connection for each request, open a while before it is made, as browsers do.
    Early,
    /// Requests with a body.
    Body,
    /// Answers that take longer than a reload.
    Slow,
    /// Connections that are upgraded.
    WebSocket,
}

/// All of them.
pub(super) const KINDS: [Kind; 8] = [
    Kind::KeepAlive,
    Kind::KeepAliveTls,
    Kind::Fresh,
    Kind::FreshTls,
    Kind::Early,
    Kind::Body,
    Kind::Slow,
    Kind::WebSocket,
];

/// Where clients go, and what they know.
pub(super) struct Target {
    pub connector: SslConnector,
    pub port: u16,
    pub tls_port: u16,
    /// Names that somebody has, and those that somebody may have.
    pub hosts: [Vec<String>; 2],
    /// All certificates but that of the process, in DER.
    pub pool: Vec<Vec<u8>>,
    /// How long an upgraded connection lives at least, whatever happens.
    pub tunnels_live: Duration,
}

/// What a client saw.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that were made again on another connection, as nothing of an answer came on a reused one.
    pub again: u64,
    pub echoes: u64,
    /// Upgraded connections that were closed after their time.
    pub closed: u64,
    pub failures: Vec<String>,
    pub longest: Duration,
}

/// A client.
pub(super) struct Client {
    kind: Kind,
    target: Arc<Target>,
    journal: Arc<Journal>,
    rng: Rng,
    /// The connection that the next request goes out on.
    open: Option<Open>,
    tally: Tally,
}

/// A connection, and what it was opened for.
struct Open {
    connection: Connection,
    host: String,
    tls: bool,
}

impl Client {
    pub(super) fn new(kind: Kind, seed: u64, target: Arc<Target>, journal: Arc<Journal>) -> Self {
        let rng = Rng::with_seed(seed);
        Self { kind, target, journal, rng, open: None, tally: Tally::default() }
    }

    /// Makes requests until it is told to stop.
    pub(super) fn run(mut self) -> Tally {
        while !self.journal.is_stopped() && self.tally.failures.len() < 10 {
            let asked = self.ask();
            let started = Instant::now();
            let tunnel = self.serve(&asked);
            self.tally.longest = self.tally.longest.max(started.elapsed());
            if let Some(connection) = tunnel {
                self.talk(connection, started);
            }
        }
        self.tally
    }

    fn ask(&mut self) -> Asked {
        let kind = self.kind;
        if self.rng.usize(..USES) == 0 {
            self.open = None;
        }
        let tls = match (&self.open, kind) {
            (Some(open), _) => open.tls,
            (None, Kind::KeepAlive | Kind::Fresh) => false,
            (None, Kind::KeepAliveTls | Kind::FreshTls) => true,
            (None, _) => self.rng.bool(),
        };
        let host = match &self.open {
            // The name of the handshake stays that of the connection.
            Some(open) if tls => open.host.clone(),
            _ => {
                let hosts = &self.target.hosts[usize::from(self.rng.u8(..4) == 0)];
                hosts[self.rng.usize(..hosts.len())].clone()
            }
        };
        let path = ["/", "/x", "/p1", "/p1/x", "/p2/x", "/p3"][self.rng.usize(..6)].to_owned();
        Asked {
            tls,
            host,
            path,
            query: if kind == Kind::Slow { "?slow" } else { "" },
            length: if kind == Kind::Body { self.rng.usize(1..LARGE) } else { 0 },
            canary: [None, Some("always"), Some("never"), Some("yes")][self.rng.usize(..4)],
            upgrade: kind == Kind::WebSocket,
        }
    }

    /// Makes one request; the connection if it was upgraded.
    fn serve(&mut self, asked: &Asked) -> Option<Connection> {
        let mut is_reused = self.open.is_some();
        loop {
            let since = self.journal.now();
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.connect(asked, since)?,
            };
            match open.connection.exchange(asked) {
                Ok(answer) => {
                    self.check(since, asked, &answer);
                    if answer.status == 101 {
                        return Some(open.connection);
                    }
                    let reuses = matches!(
                        self.kind,
                        Kind::KeepAlive | Kind::KeepAliveTls | Kind::Body | Kind::Slow
                    );
                    self.open = (reuses && answer.keeps()).then_some(open);
                    return None;
                }
                // A server may close an idle connection at any time (RFC 9112 section 9.5).
                Err(Broken { bytes: 0, .. }) if is_reused => {
                    self.tally.again += 1;
                    is_reused = false;
                }
                Err(Broken { bytes, error }) => {
                    self.fail(format!("{asked:?}: {error} after {bytes} bytes"));
                    return None;
                }
            }
        }
    }

    fn connect(&mut self, asked: &Asked, since: usize) -> Option<Open> {
        let (port, tls) = if asked.tls {
            (self.target.tls_port, Some((&self.target.connector, asked.host.as_str())))
        } else {
            (self.target.port, None)
        };
        let connection = match Connection::open(port, tls) {
            Ok(connection) => connection,
            Err(error) => {
                self.fail(format!("no connection for {asked:?}: {error}"));
                return None;
            }
        };
        if let Some(shown) = &connection.certificate {
            let versions = self.journal.since(since);
            if !allowed::shows(&versions, &asked.host, shown, &self.target.pool) {
                self.fail(format!("{since}: another certificate for {}", asked.host));
            }
        }
        if self.kind == Kind::Early {
            self.journal.wait(since + 1, EARLY);
        }
        Some(Open { connection, host: asked.host.clone(), tls: asked.tls })
    }

    fn check(&mut self, since: usize, asked: &Asked, answer: &Answer) {
        *self.tally.statuses.entry(answer.status).or_default() += 1;
        let versions = self.journal.since(since);
        if !allowed::explains(&versions, asked, answer) {
            let Answer { status, fields, body } = answer;
            let body = String::from_utf8_lossy(body);
            let numbers = since..since + versions.len();
            self.fail(format!("{numbers:?} {asked:?}: {status} {fields:?} {body}"));
        }
    }

    /// An upgraded connection carries on through reloads until the workers that leave are out of time.
    fn talk(&mut self, mut connection: Connection, since: Instant) {
        while !self.journal.is_stopped() {
            match connection.echo(&PING) {
                Ok(true) => self.tally.echoes += 1,
                Ok(false) => return self.fail("another echo".to_owned()),
                Err(_) if since.elapsed() >= self.target.tunnels_live => {
                    self.tally.closed += 1;
                    return;
                }
                Err(error) => {
                    let age = since.elapsed();
                    return self
                        .fail(format!("an upgraded connection ended after {age:?}: {error}"));
                }
            }
            self.journal.wait(usize::MAX, PAUSE);
        }
    }

    fn fail(&mut self, what: String) {
        self.tally.failures.push(what);
    }
}
