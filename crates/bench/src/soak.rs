//! Hours of everything at once, and what stays of it: all kinds of traffic take turns while the configuration changes,
//! and after each round the kernel says what the process holds. What grows without end grows here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::load::Pace;
use crate::measure::Bench;
use crate::peers::{Peer, Running, ingress};
use crate::process::{Family, pause};
use crate::scenario::{SCENARIOS, Scenario};

/// What takes turns: HTTP/1 and HTTP/2, TLS, WebSocket, gRPC, bodies both ways, snippets.
const MIX: [&str; 11] = [
    "http1",
    "body-1m",
    "upload-16k",
    "upload-1m",
    "tls",
    "tls-full",
    "tls-resumed",
    "http2",
    "grpc",
    "websocket",
    "snippet-rewrite",
];
/// Hosts that come, change and go.
const HOSTS: u64 = 200;
/// From one change to the next.
const CHANGE: Duration = Duration::from_millis(100);
/// This part of the time is warm-up: pools, caches and arenas fill.
const WARM: f64 = 0.4;
/// Rounds that a verdict needs after it.
const ROUNDS: usize = 4;

/// What the process holds after a round.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    seconds: f64,
    resident: u64,
    descriptors: u64,
    threads: u64,
}

/// Something that must not grow: its name, how much of it a sample has, and what is no growth: a share of what there
/// was, and a number.
type Held = (&'static str, fn(&Sample) -> u64, f64, u64);

const HELD: [Held; 3] = [
    ("bytes of memory", |sample| sample.resident, 0.10, 12 << 20),
    ("descriptors", |sample| sample.descriptors, 0.05, 16),
    ("threads", |sample| sample.threads, 0.0, 2),
];

impl Bench {
    /// Keeps Fairway busy for `total`; an error says what grew or went wrong.
    pub(crate) fn soak(&mut self, total: Duration) -> Result<()> {
        // Many rounds, however long it takes.
        self.turn = (total / 200).clamp(Duration::from_millis(500), Duration::from_secs(10));
        let running = self.start_one(Peer::Fairway, 1)?;
        let folder = self.folder.clone();
        let (over, changes) = (AtomicBool::new(false), AtomicU64::new(0));
        let samples = std::thread::scope(|scope| {
            let changing = scope.spawn(|| change(&folder, &over, &changes));
            let samples = self.rounds_of(&running, total, &changes);
            over.store(true, Ordering::Relaxed);
            changing.join().expect("no change panics")?;
            samples
        })?;
        verdict(&samples, total)
    }

    fn rounds_of(
        &mut self,
        running: &Running,
        total: Duration,
        changes: &AtomicU64,
    ) -> Result<Vec<Sample>> {
        let mix = MIX.map(|name| SCENARIOS.iter().find(|one| one.name == name));
        let (start, mut samples, mut requests) = (Instant::now(), Vec::new(), 0);
        println!("  seconds     requests   changes   memory MiB  descriptors  threads");
        while start.elapsed() < total {
            for scenario in mix.iter().flatten() {
                requests += self.part(scenario, running)?;
            }
            let sample = Sample::of(running, start)?;
            println!(
                "{:9.0} {requests:12} {:9} {:12.1} {:12} {:8}",
                sample.seconds,
                changes.load(Ordering::Relaxed),
                sample.resident as f64 / f64::from(1 << 20),
                sample.descriptors,
                sample.threads
            );
            samples.push(sample);
        }
        ensure!(changes.load(Ordering::Relaxed) > 0, "nothing was changed meanwhile");
        Ok(samples)
    }

    /// A turn of one kind of traffic; how many requests were answered. None may fail.
    fn part(&mut self, scenario: &Scenario, running: &Running) -> Result<u64> {
        let plan = scenario.plan(running, &self.certificate, Pace::Closed, self.turn)?;
        let outcome = self.generator.run(&plan, &mut |_| Ok(())).context(scenario.name)?;
        running.cut_log()?;
        ensure!(
            outcome.errors == 0,
            "{}: {} requests failed, the first one: {}",
            scenario.name,
            outcome.errors,
            outcome.first_error.unwrap_or_default()
        );
        Ok(outcome.requests)
    }
}

impl Sample {
    fn of(running: &Running, start: Instant) -> Result<Self> {
        let folder = format!("/proc/{}", running.id());
        let count = |name: &str| -> Result<u64> {
            let path = format!("{folder}/{name}");
            let entries = fs::read_dir(&path).with_context(|| format!("read {path}"))?;
            Ok(entries.count() as u64)
        };
        Ok(Self {
            seconds: start.elapsed().as_secs_f64(),
            resident: Family::of(running.id()).resident()?,
            descriptors: count("fd")?,
            threads: count("task")?,
        })
    }
}

/// Changes hosts that nobody asks for: they come with other paths and settings each time, and go.
fn change(folder: &Path, over: &AtomicBool, changes: &AtomicU64) -> Result<()> {
    let manifests = folder.join(Peer::Fairway.name()).join("manifests");
    let mut number: u64 = 0;
    while !over.load(Ordering::Relaxed) {
        let host = number % HOSTS;
        let file = manifests.join(format!("changing-{host}.json"));
        // Every third time that a host has its turn it goes.
        if number / HOSTS % 3 == 2 {
            fs::remove_file(&file).context("remove a host")?;
        } else {
            let text = serde_json::to_vec(&changing(host, number)).context("an Ingress as JSON")?;
            let whole: PathBuf = folder.join("changing.json");
            fs::write(&whole, text).context("write a host")?;
            fs::rename(&whole, &file).context("write a host")?;
        }
        number += 1;
        changes.store(number, Ordering::Relaxed);
        pause(CHANGE);
    }
    Ok(())
}

/// An Ingress that differs from the one before in paths and annotations.
fn changing(host: u64, number: u64) -> Value {
    let path = format!("/path-{number}");
    let mut made = ingress(&format!("changing-{host}.bench.test"), &["/", &path]);
    let all = [
        ("proxy-read-timeout", (number % 90 + 1).to_string()),
        ("limit-rps", (number % 1000 + 1).to_string()),
        ("proxy-body-size", format!("{}k", number % 500 + 1)),
        ("configuration-snippet", format!("more_set_headers \"X-Change: {number}\";")),
        ("rewrite-target", format!("/{number}/$1")),
        ("permanent-redirect", format!("https://there.test/{number}")),
        ("auth-url", format!("http://auth-{}.test/check", number % 7)),
        ("enable-cors", "true".to_owned()),
        ("mirror-target", format!("http://mirror-{}.test/", number % 5)),
    ];
    let (name, value) = &all[(number % all.len() as u64) as usize];
    made["metadata"]["annotations"] =
        json!({ format!("nginx.ingress.kubernetes.io/{name}"): value });
    made
}

/// Compares the first half of what was seen after the warm-up with the second one.
fn verdict(samples: &[Sample], total: Duration) -> Result<()> {
    let warm: Vec<&Sample> =
        samples.iter().filter(|sample| sample.seconds > total.as_secs_f64() * WARM).collect();
    ensure!(
        warm.len() >= ROUNDS,
        "only {} rounds after the warm-up, {ROUNDS} are wanted: soak for longer",
        warm.len()
    );
    let (early, late) = warm.split_at(warm.len() / 2);
    let mut grown = Vec::new();
    for (name, of, share, least) in HELD {
        let (before, now) = (median(early, of), median(late, of));
        let allowed = least.max((before as f64 * share) as u64);
        println!("{name}: {before} in the first half after the warm-up, {now} in the second one");
        if now > before + allowed {
            grown.push(format!("{name} grew from {before} to {now}"));
        }
    }
    ensure!(grown.is_empty(), "{}", grown.join("; "));
    Ok(())
}

fn median(samples: &[&Sample], of: fn(&Sample) -> u64) -> u64 {
    let mut all: Vec<u64> = samples.iter().map(|sample| of(sample)).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(of: impl Fn(u64) -> (u64, u64, u64)) -> Result<()> {
        let sample = |second: u64| {
            let (mebibytes, descriptors, threads) = of(second);
            Sample { seconds: second as f64, resident: mebibytes << 20, descriptors, threads }
        };
        let samples: Vec<Sample> = (1..=100).map(sample).collect();
        verdict(&samples, Duration::from_secs(100))
    }

    #[test]
    fn what_grows_after_the_warm_up_is_named_and_nothing_else() {
        let noise = |second: u64| second % 7;
        judged(|second| (100 + noise(second), 90 + noise(second), 12)).expect("it is steady");
        judged(|second| (100.min(second * 4), 200.min(second * 5), 12)).expect("that was warm-up");
        for (what, growing) in [
            ("memory", judged(|second| (100 + second, 90, 12))),
            ("descriptors", judged(|second| (100, 90 + second, 12))),
            ("threads", judged(|second| (100, 90, 12 + second / 8))),
        ] {
            let said = growing.expect_err(what).to_string();
            assert!(said.contains(what) && !said.contains(';'), "{said}");
        }
        assert!(verdict(&[Sample::default()], Duration::from_secs(100)).is_err(), "too few rounds");
    }

    #[test]
    fn every_part_of_the_mix_is_a_scenario() {
        for name in MIX {
            assert!(SCENARIOS.iter().any(|one| one.name == name), "{name}");
        }
    }
}
