//! Clients of every kind that go on until they are stopped, and count what they lost.

mod grpc;
mod http1;
mod http2;
mod websocket;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Patience of one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two requests of one client: the machine has a whole cluster to run besides.
const PAUSE: Duration = Duration::from_millis(15);
/// Clients of each kind.
const CLIENTS: usize = 3;

/// What clients of one kind did.
#[derive(Debug)]
pub(crate) struct Tally {
    kind: &'static str,
    sent: AtomicUsize,
    /// Of those, what the other side said it had not begun with, and was sent once more.
    again: AtomicUsize,
    slowest_us: AtomicU64,
    failed: Mutex<Vec<String>>,
}

/// How one request ended.
pub(super) enum End {
    Answered,
    /// Not begun with: the client was told to go elsewhere.
    Elsewhere,
}

impl Tally {
    fn new(kind: &'static str) -> Arc<Self> {
        let failed = Mutex::new(Vec::new());
        let (sent, again, slowest_us) = Default::default();
        Arc::new(Self { kind, sent, again, slowest_us, failed })
    }

    /// Notes how a request went that began then.
    fn note(&self, began: Instant, outcome: &Result<End>) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.slowest_us.fetch_max(took, Ordering::Relaxed);
        match outcome {
            Ok(End::Answered) => {}
            Ok(End::Elsewhere) => drop(self.again.fetch_add(1, Ordering::Relaxed)),
            Err(error) => {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.push(format!(
                    "number {} {error:#} after {:?}",
                    self.sent.load(Ordering::Relaxed),
                    began.elapsed()
                ));
            }
        }
    }

    fn failed(&self) -> usize {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Where clients go.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) http: SocketAddr,
    /// There HTTP/2 and gRPC go, over TLS, to certificates that this authority (PEM) has signed; otherwise in clear,
    /// to `http`.
    pub(crate) tls: Option<(SocketAddr, String)>,
    /// nginx answers, too: it closes idle connections and WebSockets without a word when it ends. So WebSockets have an
    /// end of their own, and a GET that finds its kept connection closed counts as moved, as it does for HTTP clients.
    pub(crate) to_nginx: bool,
}

impl From<SocketAddr> for Target {
    fn from(http: SocketAddr) -> Self {
        Self { http, tls: None, to_nginx: false }
    }
}

/// The clients at work.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    tallies: Vec<Arc<Tally>>,
    clients: JoinSet<()>,
}

/// What every client knows.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) target: Arc<Target>,
    pub(super) tally: Arc<Tally>,
    stop: Arc<AtomicBool>,
}

impl Client {
    /// Whether to go on.
    pub(super) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Runs one request and notes how it went; none if it failed.
    pub(super) async fn timed(&self, request: impl Future<Output = Result<End>>) -> Option<End> {
        let began = Instant::now();
        let outcome = match tokio::time::timeout(PATIENCE, request).await {
            Ok(outcome) => outcome,
            Err(_) => Err(anyhow::anyhow!("no answer")),
        };
        self.tally.note(began, &outcome);
        outcome.ok()
    }
}

/// A pause between requests.
pub(super) fn pace() -> Interval {
    let mut pace = tokio::time::interval(PAUSE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}

impl Load {
    /// Starts clients of all kinds; hosts are web.test, and grpc.test for streams of gRPC.
    pub(crate) fn start(target: impl Into<Target>) -> Self {
        let target = Arc::new(target.into());
        let stop = Arc::new(AtomicBool::new(false));
        let (mut tallies, mut clients) = (Vec::new(), JoinSet::new());
        let mut kind = |name| {
            let tally = Tally::new(name);
            tallies.push(tally.clone());
            Client { target: target.clone(), tally, stop: stop.clone() }
        };
        let (kept, fresh) =
            (kind("HTTP/1.1, connections kept"), kind("HTTP/1.1, one connection each"));
        let (streams, sockets) = (kind("HTTP/2"), kind("WebSocket messages"));
        let grpc = kind("gRPC messages in streams");
        for _ in 0..CLIENTS {
            clients.spawn(http1::run(kept.clone(), true));
            clients.spawn(http1::run(fresh.clone(), false));
            clients.spawn(http2::run(streams.clone()));
            clients.spawn(websocket::run(sockets.clone()));
            clients.spawn(grpc::run(grpc.clone()));
        }
        Self { stop, tallies, clients }
    }

    /// How many requests were sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.tallies.iter().map(|tally| tally.sent.load(Ordering::Relaxed)).sum()
    }

    /// Waits until so many further requests of each kind were sent.
    pub(crate) async fn goes_on(&self, further: usize) {
        let sent = |tally: &Arc<Tally>| tally.sent.load(Ordering::Relaxed);
        let wanted: Vec<usize> = self.tallies.iter().map(|tally| sent(tally) + further).collect();
        while self.tallies.iter().zip(&wanted).any(|(tally, wanted)| sent(tally) < *wanted) {
            #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Prints how far it is.
    pub(crate) fn progress(&self, what: &str) {
        let failed: usize = self.tallies.iter().map(|tally| tally.failed()).sum();
        eprintln!("{what}: {} requests sent, {failed} failed", self.sent());
    }

    /// Lets every client end its request, prints the table, and fails if a request did, or if there was none of a kind.
    pub(crate) async fn stop(self, title: &str) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.join_all().await;
        eprintln!(
            "\n{title}\n{:<30} {:>8} {:>7} {:>11} {:>8}",
            "kind", "sent", "failed", "slowest", "moved"
        );
        for tally in &self.tallies {
            let [sent, again] =
                [&tally.sent, &tally.again].map(|count| count.load(Ordering::Relaxed));
            let slowest = Duration::from_micros(tally.slowest_us.load(Ordering::Relaxed));
            let (kind, failed) = (tally.kind, tally.failed());
            eprintln!(
                "{kind:<30} {sent:>8} {failed:>7} {:>8.1} ms {again:>8}",
                slowest.as_secs_f64() * 1e3
            );
        }
        eprintln!(
            "moved: not begun with by who was leaving (GOAWAY, close frame 1001), and sent once more\n"
        );
        let mut wrong = Vec::new();
        for tally in &self.tallies {
            let failed = tally.failed.lock().unwrap_or_else(PoisonError::into_inner);
            wrong.extend(failed.iter().map(|line| format!("{}: {line}", tally.kind)));
            if tally.sent.load(Ordering::Relaxed) == 0 {
                wrong.push(format!("{}: there was no traffic", tally.kind));
            }
        }
        if !wrong.is_empty() {
            bail!("{} failed:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
        }
        Ok(())
    }
}
