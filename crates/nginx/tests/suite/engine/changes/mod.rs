//! Changes of all kinds, one after the other, while clients of all kinds make requests: none fails, nginx is reloaded
//! as often as the plans ask for it, and neither processes nor memory pile up. `FAIRWAY_CHANGES` says how many.

mod allowed;
mod client;
mod journal;
mod pushed;
mod reloaded;
mod upstream;
mod walk;
mod wire;

use crate::engine::bed::{PATIENCE, apply, folder, free_port, pid, start};
use client::{Client, Kind, Tally, Target};
use engine::Engine;
use journal::Journal;
use nginx::Nginx;
use nginx::plan::{Plan, plan};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use walk::World;

/// Changes, unless `FAIRWAY_CHANGES` says otherwise.
const CHANGES: usize = 120;
const SEED: u64 = 7;
/// What the master may grow by, in KiB, however many changes there are.
const GROWTH: u64 = 64 << 10;

#[derive(Debug, Default)]
struct Count {
    kinds: BTreeMap<&'static str, u64>,
    plans: BTreeMap<Plan, u64>,
    /// Plans that asked for a reload where nginx.conf turned out to be the same.
    spared: u64,
    longest: Duration,
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_all_kinds_under_load_fail_no_request_and_reload_as_often_as_planned() {
    let number = std::env::var("FAIRWAY_CHANGES").ok().and_then(|text| text.parse().ok());
    let number = number.unwrap_or(CHANGES);
    let (folder, port) = (folder(), free_port());
    let (engine, log) = (start(&folder, port), folder.path().join("error.log"));
    let mut world = World::new(SEED, &log);
    apply(&engine, &world.configuration).await;
    let master = pid(&folder).expect("nginx runs");
    let (before, reloads) = (resident(master), engine.reloads());
    let journal = Arc::new(Journal::new(world.configuration.clone()));
    let clients = load(&engine, &world, port, &journal);
    let count = make(&engine, &mut world, &journal, number).await;
    journal.stop();
    let tallies = tokio::task::spawn_blocking(move || {
        let joined = clients.into_iter().map(|(kind, client)| (kind, client.join()));
        joined.map(|(kind, tally)| (kind, tally.expect("a client"))).collect::<Vec<_>>()
    });
    let tallies = tallies.await.expect("clients end");
    println!("{count:#?}");
    for (kind, tally) in &tallies {
        println!("{kind:?} {tally:?}");
    }
    left_workers_end(master, &engine).await;
    let after = resident(master);
    let workers: Vec<_> = children(master).into_iter().map(resident).collect();
    println!("master {before} KiB before, {after} KiB after; workers {workers:?} KiB");
    let planned = count.plans.get(&Plan::Reload).copied().unwrap_or_default();
    assert_eq!(engine.reloads() - reloads, planned - count.spared);
    let (read, complaints) = said(&log);
    assert_eq!(read, engine.reloads() - reloads, "reloads that nginx speaks of");
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(after < before + GROWTH, "the master grew from {before} to {after} KiB");
    judge(&tallies);
    engine.drain(Duration::from_secs(5)).await;
}

/// Two clients of each kind.
fn load(
    engine: &Nginx,
    world: &World,
    port: u16,
    journal: &Arc<Journal>,
) -> Vec<(Kind, std::thread::JoinHandle<Tally>)> {
    let target = Arc::new(Target {
        port,
        connector: wire::connector(),
        tls_port: engine.environment().https_port,
        hosts: World::names(),
        pool: world.pool.iter().map(|(chain, _)| chain.clone()).collect(),
        tunnels_live: walk::SHUTDOWN,
    });
    let all = client::KINDS.into_iter().chain(client::KINDS).zip(0..);
    all.map(|(kind, seed)| {
        let client = Client::new(kind, seed, target.clone(), journal.clone());
        (kind, std::thread::spawn(move || client.run()))
    })
    .collect()
}

async fn make(engine: &Nginx, world: &mut World, journal: &Journal, number: usize) -> Count {
    let mut count = Count::default();
    let written = || std::fs::read(engine.environment().conf()).expect("nginx.conf");
    for step in 0..number {
        let (before, text, reloads) = (world.configuration.clone(), written(), engine.reloads());
        let kind = world.step();
        let next = &world.configuration;
        let plan = plan(&before, next);
        *count.kinds.entry(kind).or_default() += 1;
        *count.plans.entry(plan).or_default() += 1;
        journal.begin(next.clone());
        let started = Instant::now();
        let mut left_out = apply(engine, next).await;
        count.longest = count.longest.max(started.elapsed());
        journal.end();
        left_out.sort();
        assert_eq!(left_out, allowed::broken(next), "change {step}: {kind}");
        let differs = text != written();
        assert_eq!(engine.reloads() - reloads, u64::from(differs), "change {step}: {kind}");
        assert!(plan == Plan::Reload || !differs, "change {step}: {kind}");
        count.spared += u64::from(plan == Plan::Reload && !differs);
    }
    count
}

/// How often nginx itself says that it read its configuration, and what it complains of besides.
fn said(log: &Path) -> (u64, Vec<String>) {
    let text = std::fs::read_to_string(log).expect("a log");
    let reloads = text.lines().filter(|line| line.ends_with(": reconfiguring")).count() as u64;
    let grave = ["[emerg]", "[crit]", "lua entry thread", "fairway/", "was chosen", "certificate"];
    let is_grave = |line: &&str| grave.iter().any(|words| line.contains(words));
    (reloads, text.lines().filter(is_grave).map(str::to_owned).collect())
}

fn judge(tallies: &[(Kind, Tally)]) {
    let failures: Vec<_> = tallies.iter().flat_map(|(_, tally)| &tally.failures).collect();
    assert!(failures.is_empty(), "{} requests failed: {failures:#?}", failures.len());
    for (kind, tally) in tallies {
        let good = tally.statuses.get(&200).or(tally.statuses.get(&101));
        assert!(good.is_some_and(|good| *good > 0), "{kind:?} {tally:?}");
    }
}

/// Workers that leave are gone once their time is over.
async fn left_workers_end(master: i32, engine: &Nginx) {
    let wanted = engine.serving().borrow().global.listeners.threads;
    let wanted = wanted.map_or(engine.environment().workers, |threads| threads.get().into());
    let deadline = Instant::now() + walk::SHUTDOWN + PATIENCE;
    while children(master).len() > wanted {
        assert!(Instant::now() < deadline, "workers stay: {:?}", children(master));
        #[expect(clippy::disallowed_methods, reason = "between two looks at the condition")]
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn children(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let text = text.unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Resident memory in KiB.
fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
