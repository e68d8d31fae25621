//! Fairness: what a flood of one host leaves to another one, as the 99th percentile of that one's answers.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::load::{Outcome, Pace, Plan};
use crate::measure::Bench;
use crate::peers::{Peer, Running};
use crate::process::pause;
use crate::results::{Calm, Fairness, Spread};
use crate::scenario::hosts;

/// The name for `--only`.
pub(crate) const NAME: &str = "fairness";
/// Requests per second of the host that is measured: far from what any proxy could do.
const RATE: f64 = 500.0;
/// The control in benchmarks.json and in the report: the first peer, while another process of Fairway is flooded.
pub(crate) const CONTROL: &str = "fairway, the flood at another process";
/// How long a flooding client waits for anything before it begins anew.
const PATIENCE: Duration = Duration::from_secs(1);

/// What one host is flooded with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flood {
    /// Its name in benchmarks.json.
    pub(crate) name: &'static str,
    /// What it is, in the report.
    pub(crate) title: &'static str,
    path: &'static str,
    /// Bytes of a field that the access log repeats.
    agent: usize,
    upload: usize,
    /// Whether each request has a connection of its own.
    fresh: bool,
    clients: usize,
}

const GET: Flood =
    Flood { name: "", title: "", path: "/", agent: 5, upload: 0, fresh: false, clients: 16 };

/// All of them, in the order of the report.
pub(crate) const FLOODS: [Flood; 5] = [
    Flood { name: "connections", title: "new connections, 16 clients", fresh: true, ..GET },
    Flood { name: "requests", title: "requests, 16 clients", ..GET },
    Flood {
        name: "slow-upstream",
        title: "256 requests that are never answered",
        path: "/never",
        clients: 256,
        ..GET
    },
    Flood {
        name: "bodies",
        title: "buffered bodies of 1 MiB, 8 clients",
        upload: 1 << 20,
        clients: 8,
        ..GET
    },
    Flood { name: "logs", title: "log lines of 6 KiB, 16 clients", agent: 6 << 10, ..GET },
];

impl Bench {
    /// Measures the second of two hosts while the first one is flooded, and while it is not; and, as a control, while a
    /// process is flooded that shares nothing with the one that is asked but the machine.
    pub(crate) fn fairness(&mut self) -> Result<BTreeMap<String, Fairness>> {
        let running = self.start(2)?;
        let apart = match running.iter().find(|peer| peer.peer == Peer::Fairway) {
            Some(asked) => Some((asked, self.another()?)),
            None => None,
        };
        let proxies = running.iter().filter(|peer| Peer::PROXIES.contains(&peer.peer));
        let turns = proxies.map(|peer| (peer.peer.name(), peer, peer.http));
        let control = apart.iter().map(|(asked, other)| (CONTROL, *asked, other.http));
        let turns: Vec<_> = turns.chain(control).collect();
        let mut found = BTreeMap::new();
        for flood in FLOODS {
            let mut peers: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
            let mut unanswered: BTreeMap<String, u64> = BTreeMap::new();
            for round in 1..=self.rounds {
                for (name, peer, target) in &turns {
                    let (name, target) = (*name, *target);
                    let quiet = self.calm(peer)?;
                    let flooding = Flooding::start(flood, target)?;
                    let flooded = self.calm(peer);
                    flooding.stop();
                    let both = [quiet, flooded?].map(|mut outcome| {
                        *unanswered.entry(name.to_owned()).or_default() +=
                            outcome.errors + outcome.unsent as u64;
                        outcome.latencies.microseconds(0.99)
                    });
                    let [quiet, flooded] = both.map(|p99| p99.unwrap_or(f64::INFINITY));
                    eprintln!(
                        "{NAME:12} {name:13} round {round} {}: p99 {quiet:.0} µs quiet, {flooded:.0} µs flooded",
                        flood.name
                    );
                    let turns = peers.entry(name.to_owned()).or_default();
                    turns[0].push(quiet);
                    turns[1].push(flooded);
                    peer.cut_log()?;
                    apart.iter().try_for_each(|(_, other)| other.cut_log())?;
                }
            }
            let peers = peers.into_iter().map(|(peer, turns)| {
                let [quiet, flooded] = turns.map(|turns| Spread::of(&turns).unwrap_or_default());
                let unanswered = unanswered.get(&peer).copied().unwrap_or_default();
                (peer, Calm { quiet_p99_us: quiet, flooded_p99_us: flooded, unanswered })
            });
            let fairness = Fairness { date: self.date.clone(), rate: RATE, peers: peers.collect() };
            found.insert(flood.name.to_owned(), fairness);
        }
        Ok(found)
    }

    /// One more process of Fairway, with files of its own.
    fn another(&mut self) -> Result<Running> {
        let folder = self.folder.join("another");
        let before = std::mem::replace(&mut self.folder, folder);
        let started = self.start_one(Peer::Fairway, 2);
        self.folder = before;
        started
    }

    /// The host that nobody floods.
    fn calm(&mut self, running: &Running) -> Result<Outcome> {
        let host = hosts(2).pop().context("the second host")?;
        let request =
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: fairway-bench\r\n\r\n");
        let plan = Plan {
            connections: 16,
            pace: Pace::Open { rate: RATE, spins: true },
            warm_up: self.turn / 4,
            measure: self.turn,
            ..Plan::one(running.http, request.into_bytes())
        };
        self.generator.run(&plan, &mut |_| Ok(()))
    }
}

/// Clients that flood the first host until they are stopped.
struct Flooding {
    over: Arc<AtomicBool>,
    clients: Vec<thread::JoinHandle<()>>,
}

impl Flooding {
    fn start(flood: Flood, target: SocketAddr) -> Result<Self> {
        let host = hosts(1).pop().context("the first host")?;
        let Flood { path, agent, upload, fresh, clients, .. } = flood;
        let method = if upload > 0 { "POST" } else { "GET" };
        let connection = if fresh { "close" } else { "keep-alive" };
        let agent = "f".repeat(agent);
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: {connection}\r\nUser-Agent: {agent}\r\n\
             Content-Length: {upload}\r\n\r\n"
        )
        .into_bytes();
        request.resize(request.len() + upload, b'u');
        let (over, request) = (Arc::new(AtomicBool::new(false)), Arc::new(request));
        let clients = (0..clients).map(|_| {
            let (over, request) = (over.clone(), request.clone());
            thread::Builder::new().stack_size(256 << 10).spawn(move || {
                // What is measured goes first on the core that they share.
                let _ = rustix::process::nice(19);
                while !over.load(Ordering::Relaxed) {
                    // Whoever is turned away comes back, but not in a loop that only burns the processor.
                    if ask(target, &request, fresh, &over).is_err() {
                        pause(Duration::from_millis(5));
                    }
                }
            })
        });
        let clients = clients.collect::<std::io::Result<_>>().context("start a flood")?;
        Ok(Self { over, clients })
    }

    fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        for client in self.clients {
            // A client that broke off floods no longer either.
            let _ = client.join();
        }
    }
}

/// Asks over one connection until it ends, or the flood does.
fn ask(target: SocketAddr, request: &[u8], fresh: bool, over: &AtomicBool) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(target)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut answer = [0; 4 << 10];
    while !over.load(Ordering::Relaxed) {
        stream.write_all(request)?;
        // The answers of the upstream come in one piece.
        let mut count = stream.read(&mut answer)?;
        while fresh && count > 0 {
            count = stream.read(&mut answer)?;
        }
        if count == 0 {
            break;
        }
    }
    Ok(())
}
