//! The control side: from start to ready, memory then, how soon a change shows on the wire, and what a storm of them
//! does.

mod churn;
mod cluster;
mod folder;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::load::{Generator, Latencies, Pace, Plan, Stage};
use crate::machine::Cores;
use crate::peers::{Peer, Ports, Running, fairway_command};
use crate::probe::Probe;
use crate::process::pause;
use crate::results::{Control, Propagation, Spread, Storm};

pub(crate) use cluster::{Cluster, Objects, endpoint_address};
pub(crate) use folder::Folder;

/// The name of HTTPRoutes from a cluster in benchmarks.json.
pub(crate) const ROUTES: &str = "cluster, HTTPRoutes";

/// Changes a second in a storm, and how many.
const STORM: usize = 1_000;

/// The path that every Ingress of the control side keeps; what it has besides is changed.
pub(crate) const STAYS: &str = "/stays";

/// No start and no change may take longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between changes whose processor time is measured: each of them shall be handled by itself.
const APART: Duration = Duration::from_millis(100);

/// Where Fairway's objects come from.
pub(crate) trait Source {
    /// Its name in benchmarks.json.
    fn name(&self) -> &'static str;
    /// The flags that point Fairway at it.
    fn flags(&self) -> Vec<String>;
    /// Makes `count` Ingresses exist, numbered from zero, with two paths each.
    fn fill(&mut self, count: usize) -> Result<()>;
    /// Gives the Ingress `number` another second path; returns when that is acknowledged.
    fn change(&mut self, number: usize, path: &str) -> Result<()>;
    /// Whether Fairway alone works for a change: an API server on the same machine takes more of it.
    fn is_alone(&self) -> bool {
        false
    }
    /// Makes all these changes, so many a second; returns when all are acknowledged, or false if there are no storms.
    fn storm(&mut self, _changes: &[(usize, String)], _rate: f64) -> Result<bool> {
        Ok(false)
    }
}

/// What is measured, and how often.
pub(crate) struct Wanted {
    /// The program `fairway`.
    pub(crate) binary: PathBuf,
    /// For logs.
    pub(crate) folder: PathBuf,
    /// Who runs where.
    pub(crate) cores: Cores,
    /// Numbers of Ingresses, from small to large.
    pub(crate) sizes: Vec<usize>,
    /// Starts for each number.
    pub(crate) rounds: usize,
    /// Changes of each kind of measurement.
    pub(crate) changes: usize,
    /// How long answers are timed, with changes and without.
    pub(crate) turn: Duration,
    /// Requests per second while changes are made under load.
    pub(crate) rate: f64,
    /// The day.
    pub(crate) date: String,
}

/// The host of the Ingress `number`.
pub(crate) fn host(number: usize) -> String {
    format!("app-{number:05}.bench.test")
}

impl Wanted {
    /// Measures all sizes with `source`; `done` is handed the results one by one.
    pub(crate) fn measure(
        &self,
        source: &mut dyn Source,
        generator: &mut Generator,
        done: &mut dyn FnMut(Control) -> Result<()>,
    ) -> Result<()> {
        for size in &self.sizes {
            source.fill(*size)?;
            done(self.size(source, generator, *size)?)?;
        }
        Ok(())
    }

    fn size(
        &self,
        source: &mut dyn Source,
        generator: &mut Generator,
        size: usize,
    ) -> Result<Control> {
        let (mut ready, mut resident) = (Vec::new(), Vec::new());
        let mut last = None;
        for round in 1..=self.rounds {
            // One at a time: the one before has ended when the next one starts.
            drop(last.take());
            let (running, milliseconds) = self.start(source, round, size)?;
            ready.push(milliseconds);
            let mib = running.family().resident()? as f64 / f64::from(1 << 20);
            resident.push(mib);
            eprintln!("{} {size}: ready after {milliseconds:.0} ms, {mib:.1} MiB", source.name());
            last = Some(running);
        }
        let running = last.context("at least one round")?;
        let mut changes = Changes { source, size, made: 0, probe: Probe::new(running.http) };
        let idle = with_upstream(generator, || changes.propagation(self.changes))?;
        report(size, "idle", &idle);
        let cpu = with_upstream(generator, || changes.processor_time(&running, self.changes))?;
        eprintln!("{size}: {cpu:.2} ms CPU for each change");
        let under_load = self.under_load(&mut changes, generator, running.http)?;
        report(size, "under load", &under_load);
        let storm = with_upstream(generator, || changes.storm(&running))?;
        let churn = self.churn(&mut changes, generator, running.http)?;
        Ok(Control {
            date: self.date.clone(),
            source: changes.source.name().to_owned(),
            ingresses: size,
            ready_ms: Spread::of(&ready).context("at least one round")?,
            resident_mib: Spread::of(&resident).context("at least one round")?,
            changes: self.changes,
            cpu_ms_per_change: Some(cpu),
            propagation: Some(idle),
            propagation_under_load: Some(under_load),
            storm,
            churn,
        })
    }

    fn start(&self, source: &dyn Source, round: usize, size: usize) -> Result<(Running, f64)> {
        let folder = self.folder.join(format!("{}-{size}-{round}", source.name()));
        std::fs::create_dir_all(&folder).context("create a folder for logs")?;
        let ports = Ports::free()?;
        let flags = source.flags();
        let command = fairway_command(&self.binary, ports, &flags);
        let begin = Instant::now();
        let mut running = Running::start(Peer::Fairway, &command, ports, &folder, &self.cores)?;
        let health = SocketAddr::from(([127, 0, 0, 1], ports.health));
        running.wait(|| {
            let status = Probe::new(health).status("localhost", "/healthz")?;
            ensure!(status == 200, "/healthz has status {status}");
            Ok(())
        })?;
        Ok((running, begin.elapsed().as_secs_f64() * 1000.0))
    }

    fn under_load(
        &self,
        changes: &mut Changes<'_>,
        generator: &mut Generator,
        target: SocketAddr,
    ) -> Result<Propagation> {
        let request = |number| {
            let host = host(number);
            format!("GET {STAYS} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: fairway-bench\r\n\r\n")
        };
        let requests = (0..changes.size).map(|number| request(number).into_bytes()).collect();
        let plan = Plan {
            requests: Arc::new(requests),
            connections: 64,
            pace: Pace::Open { rate: self.rate, spins: false },
            warm_up: Duration::from_millis(500),
            measure: Duration::from_secs(3600),
            ..Plan::one(target, Vec::new())
        };
        let (stop, flows) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let mut watch = |stage| {
                flows.fetch_or(stage == Stage::Begin, Ordering::Relaxed);
                Ok(())
            };
            let (stop_load, plan) = (&stop, &plan);
            let load = scope.spawn(move || generator.run_until(plan, &mut watch, stop_load));
            while !flows.load(Ordering::Relaxed) && !load.is_finished() {
                pause(Duration::from_millis(1));
            }
            let propagation = changes.propagation(self.changes);
            stop.store(true, Ordering::Relaxed);
            let load = load.join().map_err(|_| anyhow!("the load generator panicked"))??;
            ensure!(
                load.errors == 0,
                "{} requests failed during changes: {}",
                load.errors,
                load.first_error.unwrap_or_default()
            );
            let requests_per_second = load.requests as f64 / load.seconds;
            Ok(Propagation { requests_per_second, ..propagation? })
        })
    }
}

/// Changes to Ingresses, and the eye on what they do.
struct Changes<'a> {
    source: &'a mut dyn Source,
    size: usize,
    made: usize,
    probe: Probe,
}

impl Changes<'_> {
    /// The Ingress and the path of the next change; no path comes twice.
    fn next(&mut self) -> (usize, String) {
        self.made += 1;
        // A prime, so that the changes wander over all Ingresses.
        ((self.made * 7_919) % self.size, format!("/change-{}-{}", self.size, self.made))
    }

    fn propagation(&mut self, count: usize) -> Result<Propagation> {
        let mut latencies = Latencies::default();
        for _ in 0..count {
            let (number, path) = self.next();
            let host = host(number);
            let before = self.probe.status(&host, &path)?;
            ensure!(before == 404, "http://{host}{path} has status {before} before it exists");
            self.source.change(number, &path)?;
            latencies.add(self.probe.until(&host, &path, 200, (Instant::now(), PATIENCE))?);
        }
        let mut milliseconds = |part: f64| {
            latencies.microseconds(part).map(|value| value / 1000.0).context("at least one change")
        };
        let (p50_ms, p99_ms) = (milliseconds(0.5)?, milliseconds(0.99)?);
        Ok(Propagation { requests_per_second: 0.0, p50_ms, p99_ms, max_ms: milliseconds(1.0)? })
    }

    /// Milliseconds of processor time for each change, while nobody asks for anything.
    fn processor_time(&mut self, running: &Running, count: usize) -> Result<f64> {
        let family = running.family();
        let before = family.nanoseconds()?;
        for _ in 0..count {
            let (number, path) = self.next();
            self.source.change(number, &path)?;
            pause(APART);
        }
        let used = family.nanoseconds()?.saturating_sub(before);
        let (number, path) = self.next();
        self.source.change(number, &path)?;
        self.probe.until(&host(number), &path, 200, (Instant::now(), PATIENCE))?;
        Ok(used as f64 / 1e6 / count as f64)
    }
}

impl Changes<'_> {
    /// As many changes in a second as there are, each of another object; then how long until all of them show.
    fn storm(&mut self, running: &Running) -> Result<Option<Storm>> {
        let count = STORM.min(self.size);
        let changes: Vec<_> = (0..count).map(|_| self.next()).collect();
        let (family, begin) = (running.family(), Instant::now());
        let before = family.nanoseconds()?;
        if !self.source.storm(&changes, STORM as f64)? {
            return Ok(None);
        }
        let (end, took) = (Instant::now(), begin.elapsed().as_secs_f64());
        let mut settled = Duration::ZERO;
        for (number, path) in changes.iter().rev() {
            let host = host(*number);
            // Asking takes time as well: only where it was not there yet it is known when it came.
            if self.probe.status(&host, path)? != 200 {
                settled = self.probe.until(&host, path, 200, (end, PATIENCE))?;
            }
        }
        let settled_ms = settled.as_secs_f64() * 1000.0;
        let used = family.nanoseconds()?.saturating_sub(before) as f64 / 1e6;
        let storm = Storm {
            changes: count,
            changes_per_second: count as f64 / took,
            settled_ms,
            cpu_ms_per_change: used / count as f64,
            resident_mib: family.resident()? as f64 / f64::from(1 << 20),
        };
        eprintln!("{}: a storm: {storm:?}", self.size);
        Ok(Some(storm))
    }
}

/// Runs `work` while the generator's thread serves as the upstream.
fn with_upstream<T>(generator: &mut Generator, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let upstream = scope.spawn(|| generator.serve(&stop));
        let result = work();
        stop.store(true, Ordering::Relaxed);
        upstream.join().map_err(|_| anyhow!("the upstream panicked"))??;
        result
    })
}

fn report(size: usize, when: &str, propagation: &Propagation) {
    let Propagation { requests_per_second, p50_ms, p99_ms, max_ms } = propagation;
    eprintln!(
        "{size} {when}: a change shows after {p50_ms:.1} ms (p50), {p99_ms:.1} ms (p99), \
         {max_ms:.1} ms (max) at {requests_per_second:.0} requests/s"
    );
}
