//! Traffic: every peer has its turn in every round, with the same load on the same cores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::load::{Generator, Outcome, Pace, Plan, Protocol, Stage};
use crate::machine::Cores;
use crate::peers::{GRPC, Peer, Running, SECURE, Site};
use crate::process::Family;
use crate::results::{Figures, Spread, Traffic};
use crate::scenario::{Scenario, Security, hosts};
use crate::tls::Certificate;

/// What all measurements of a run share.
pub(crate) struct Bench {
    /// The program `fairway`.
    pub(crate) binary: PathBuf,
    /// Further flags for it.
    pub(crate) flags: Vec<String>,
    /// For configuration and logs.
    pub(crate) folder: PathBuf,
    /// Who is measured.
    pub(crate) peers: Vec<Peer>,
    /// How often everybody has a turn.
    pub(crate) rounds: usize,
    /// How long a turn is.
    pub(crate) turn: Duration,
    /// Who runs where.
    pub(crate) cores: Cores,
    /// What the proxies serve.
    pub(crate) certificate: Certificate,
    /// Both ends.
    pub(crate) generator: Generator,
    /// The day.
    pub(crate) date: String,
}

/// One turn of one peer.
struct Turn {
    outcome: Outcome,
    cpu_nanoseconds: u64,
}

/// The turns of one peer.
#[derive(Default)]
struct Turns {
    closed: Vec<Turn>,
    open: Vec<Turn>,
}

impl Bench {
    /// The names that the certificate must have.
    pub(crate) const NAMES: [&str; 2] = [SECURE, GRPC];

    /// Starts all peers with `count` hosts and waits until each of them answers.
    pub(crate) fn start(&mut self, count: usize) -> Result<Vec<Running>> {
        self.peers.clone().into_iter().map(|peer| self.start_one(peer, count)).collect()
    }

    /// Starts one peer.
    pub(crate) fn start_one(&mut self, peer: Peer, count: usize) -> Result<Running> {
        self.start_wrapped(peer, (count, &["/"]), &[])
    }

    /// Starts one peer by way of another program, with so many hosts that have these paths.
    pub(crate) fn start_wrapped(
        &mut self,
        peer: Peer,
        (count, paths): (usize, &[&str]),
        wrapper: &[&str],
    ) -> Result<Running> {
        eprintln!("starting {} with {count} hosts", peer.name());
        let hosts = hosts(count);
        let last = hosts.last().context("at least one host")?.clone();
        let site = Site {
            folder: &self.folder,
            http: self.generator.upstream().http(),
            grpc: self.generator.upstream().grpc(),
            certificate: &self.certificate,
            hosts,
            paths,
            binary: &self.binary,
            flags: &self.flags,
        };
        let mut running = peer.start(&site, &self.cores, wrapper)?;
        let request = format!("GET / HTTP/1.1\r\nHost: {last}\r\n\r\n").into_bytes();
        let plan = Plan::one(running.http, request);
        running.wait(|| answered(&mut self.generator, &plan))?;
        Ok(running)
    }

    /// Measures one scenario on all peers.
    pub(crate) fn traffic(&mut self, scenario: &Scenario, peers: &[Running]) -> Result<Traffic> {
        let takes_part = |running: &&Running| scenario.is_for(running.peer);
        let peers: Vec<&Running> = peers.iter().filter(takes_part).collect();
        let mut turns: Vec<Turns> = peers.iter().map(|_| Turns::default()).collect();
        for round in 1..=self.rounds {
            for (running, turns) in peers.iter().copied().zip(&mut turns) {
                let turn = self.turn(scenario, running, Pace::Closed)?;
                progress(scenario, running, round, "closed", &turn);
                turns.closed.push(turn);
            }
        }
        let slowest = turns.iter().filter_map(|turns| spread(&turns.closed, Turn::rate));
        let slowest = slowest.map(|rate| rate.median).fold(f64::INFINITY, f64::min);
        let fixed_rate = two_digits(slowest / 2.0);
        ensure!(fixed_rate > 0.0, "{}: a peer answered nothing", scenario.name);
        for round in 1..=self.rounds {
            for (running, turns) in peers.iter().copied().zip(&mut turns) {
                let turn =
                    self.turn(scenario, running, Pace::Open { rate: fixed_rate, spins: true })?;
                progress(scenario, running, round, "open", &turn);
                turns.open.push(turn);
            }
        }
        let named = peers.iter().map(|running| running.peer.name().to_owned());
        let figures = turns.iter_mut().map(|turns| figures(scenario, turns));
        let peers = named.zip(figures).map(|(name, figures)| Ok((name, figures?)));
        let peers = peers.collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Traffic { date: self.date.clone(), rounds: self.rounds, fixed_rate, peers })
    }

    fn turn(&mut self, scenario: &Scenario, running: &Running, pace: Pace) -> Result<Turn> {
        let plan = scenario.plan(running, &self.certificate, pace, self.turn)?;
        let turn = measure(&mut self.generator, &plan, &running.family());
        let turn =
            turn.with_context(|| format!("{} with {}", scenario.name, running.peer.name()))?;
        running.cut_log()?;
        Ok(turn)
    }

    /// What the generator could do if proxies cost nothing: the same load on its own upstream.
    pub(crate) fn alone(&mut self, scenario: &Scenario) -> Result<Option<Spread>> {
        let target = match (scenario.protocol, scenario.security) {
            // The upstream speaks no TLS; of its own protocols only gRPC is measured with TLS everywhere.
            (Protocol::Grpc, _) => self.generator.upstream().grpc(),
            (Protocol::Http1 | Protocol::WebSocket, Security::Plain) => {
                self.generator.upstream().http()
            }
            _ => return Ok(None),
        };
        let mut rates = Vec::new();
        for _ in 0..self.rounds {
            let plan = scenario.plan_for(target, Pace::Closed, self.turn);
            let outcome = self.generator.run(&plan, &mut |_| Ok(()))?;
            rates.push(outcome.requests as f64 / outcome.seconds);
        }
        Ok(Spread::of(&rates))
    }
}

impl Turn {
    fn rate(&self) -> Option<f64> {
        Some(self.outcome.requests as f64 / self.outcome.seconds)
    }

    fn cpu(&self) -> Option<f64> {
        let requests = self.outcome.requests as f64;
        (requests > 0.0).then(|| self.cpu_nanoseconds as f64 / 1000.0 / requests)
    }

    fn proxy_busy(&self) -> Option<f64> {
        Some(self.cpu_nanoseconds as f64 / 1e9 / self.outcome.seconds)
    }
}

/// Applies a load and takes the processor time of `family` at its both ends.
fn measure(generator: &mut Generator, plan: &Plan, family: &Family) -> Result<Turn> {
    let (mut begin, mut end) = (0, 0);
    let outcome = generator.run(plan, &mut |stage| {
        match stage {
            Stage::Start => {}
            Stage::Begin => begin = family.nanoseconds()?,
            Stage::End => end = family.nanoseconds()?,
        }
        Ok(())
    })?;
    Ok(Turn { outcome, cpu_nanoseconds: end.saturating_sub(begin) })
}

/// Whether one request gets its answer.
pub(crate) fn answered(generator: &mut Generator, plan: &Plan) -> Result<()> {
    let outcome = generator.run(plan, &mut |_| Ok(()))?;
    let error = outcome.first_error.unwrap_or_else(|| "no answer in time".to_owned());
    ensure!(outcome.requests == 1, "{error}");
    Ok(())
}

fn figures(scenario: &Scenario, turns: &mut Turns) -> Result<Figures> {
    let percentile = |turns: &mut [Turn], part: f64| {
        let values: Vec<f64> =
            turns.iter_mut().filter_map(|turn| turn.outcome.latencies.microseconds(part)).collect();
        Spread::of(&values).with_context(|| format!("{}: no latencies", scenario.name))
    };
    let all = |turns: &[Turn], value: fn(&Turn) -> Option<f64>| {
        spread(turns, value).with_context(|| format!("{}: nothing was answered", scenario.name))
    };
    let mut both = turns.closed.iter().chain(&turns.open);
    let fresh = matches!(scenario.security, Security::TlsFull | Security::TlsResumed);
    let sum = |value: fn(&Outcome) -> u64| {
        turns.closed.iter().map(|turn| value(&turn.outcome)).sum::<u64>() as f64
    };
    let resumed = fresh.then(|| sum(|outcome| outcome.resumed) / sum(|outcome| outcome.requests));
    Ok(Figures {
        cpu_us_per_request: all(&turns.closed, Turn::cpu)?,
        requests_per_second: all(&turns.closed, Turn::rate)?,
        proxy_busy: all(&turns.closed, Turn::proxy_busy)?,
        generator_busy: all(&turns.closed, |turn| Some(turn.outcome.generator_busy))?,
        cpu_us_at_fixed_rate: all(&turns.open, Turn::cpu)?,
        errors: both.clone().map(|turn| turn.outcome.errors).sum(),
        first_error: both.find_map(|turn| turn.outcome.first_error.clone()),
        unsent: turns.open.iter().map(|turn| turn.outcome.unsent).sum(),
        resumed,
        p50_us: percentile(&mut turns.open, 0.5)?,
        p99_us: percentile(&mut turns.open, 0.99)?,
        p999_us: percentile(&mut turns.open, 0.999)?,
    })
}

fn spread(turns: &[Turn], value: fn(&Turn) -> Option<f64>) -> Option<Spread> {
    Spread::of(&turns.iter().filter_map(value).collect::<Vec<f64>>())
}

fn progress(scenario: &Scenario, running: &Running, round: usize, kind: &str, turn: &Turn) {
    let Turn { outcome, .. } = turn;
    eprintln!(
        "{:12} {:13} round {round} {kind:6} {:9.0} req/s {:8.2} us CPU per request, proxy {:3.0} %, \
         generator {:3.0} %, {} errors",
        scenario.name,
        running.peer.name(),
        turn.rate().unwrap_or_default(),
        turn.cpu().unwrap_or_default(),
        turn.proxy_busy().unwrap_or_default() * 100.0,
        outcome.generator_busy * 100.0,
        outcome.errors
    );
}

/// A rate that a reader can remember.
fn two_digits(rate: f64) -> f64 {
    if rate < 10.0 {
        return rate;
    }
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    (rate / unit).floor() * unit
}

/// The folder for a run's files, emptied.
pub(crate) fn fresh_folder(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(|| format!("clear {}", path.display()))?;
    }
    std::fs::create_dir_all(path).with_context(|| format!("create {}", path.display()))?;
    path.canonicalize().with_context(|| format!("find {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_rate_has_two_digits_and_is_not_above_what_was_asked_for() {
        for (rate, rounded) in [(16_780.0, 16_000.0), (999.0, 990.0), (47.3, 47.0), (4.5, 4.5)] {
            assert!((two_digits(rate) - rounded).abs() < 1e-6, "{rate}");
        }
    }
}
