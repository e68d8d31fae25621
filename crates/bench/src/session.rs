//! One run of the program: what is measured, in which order, and where the results go.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::control::{Cluster, Folder, Objects, ROUTES, Source, Wanted, endpoint_address};
use crate::fairness;
use crate::flags::{Command, Flags, Shared};
use crate::idle::connections;
use crate::instructions::ensure_no_more;
use crate::limits;
use crate::load::{Generator, Upstream};
use crate::machine::{Cores, Machine};
use crate::measure::{Bench, fresh_folder};
use crate::peers::{Peer, floor};
use crate::process::pin;
use crate::report;
use crate::results::{Control, Results};
use crate::scenario::{IDLE, SCENARIOS};
use crate::tls::Certificate;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The control side's name for `--only`.
const MANIFESTS: &str = "manifests";

/// A run.
struct Session<'a> {
    flags: &'a Shared,
    bench: Bench,
    results: Results,
    json: PathBuf,
    docs: PathBuf,
}

/// Does what the command line says.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    let shared = &flags.shared;
    match &flags.command {
        Some(Command::Floor { port, upstream }) => floor(*port, *upstream),
        Some(Command::Report) => report::write(&Results::read(&shared.json)?, &shared.docs),
        None => {
            let names = chosen(shared)?;
            let mut session = Session::start(shared, peers(shared)?, LOOPBACK, true)?;
            session.everything(&names)
        }
        Some(Command::Cluster { routes }) => {
            let objects = if *routes { Objects::Routes } else { Objects::Ingresses };
            Session::start(shared, vec![Peer::Fairway], endpoint_address()?, false)?
                .cluster(objects)
        }
        Some(Command::Soak { time }) => {
            let mut session = Session::start(shared, vec![Peer::Fairway], LOOPBACK, false)?;
            session.bench.soak(Duration::from_secs(*time))
        }
        Some(Command::Viewers { viewers, hosts }) => {
            let mut session = Session::start(shared, vec![Peer::Fairway], LOOPBACK, false)?;
            session.bench.viewers(*viewers, *hosts)
        }
        Some(Command::Instructions { requests }) => {
            let mut session = Session::start(shared, vec![Peer::Fairway], LOOPBACK, false)?;
            let counted = session.bench.instructions(*requests)?;
            for (name, count) in &counted {
                println!("{count} instructions per request: {name}");
                session.results.instructions.insert((*name).to_owned(), *count);
            }
            session.save()?;
            // Another binary may have been built in another way.
            if shared.binary.is_none() { ensure_no_more(&counted) } else { Ok(()) }
        }
    }
}

/// What `--only` names, or everything.
fn chosen(flags: &Shared) -> Result<Vec<&str>> {
    let scenarios = SCENARIOS.iter().chain(&IDLE).map(|scenario| scenario.name);
    let all: Vec<&str> = scenarios.chain([limits::NAME, fairness::NAME, MANIFESTS]).collect();
    if let Some(wrong) = flags.only.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("--only {wrong}: there is no such measurement; there are {}", all.join(", "));
    }
    if flags.only.is_empty() {
        return Ok(all);
    }
    Ok(flags.only.iter().map(String::as_str).collect())
}

/// Whom `--peer` names, or everybody.
fn peers(flags: &Shared) -> Result<Vec<Peer>> {
    let all = Peer::ALL.map(Peer::name);
    if let Some(wrong) = flags.peer.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("--peer {wrong}: there is no such proxy; there are {}", all.join(", "));
    }
    let named = |peer: &Peer| flags.peer.is_empty() || flags.peer.iter().any(|n| n == peer.name());
    Ok(Peer::ALL.into_iter().filter(named).collect())
}

impl<'a> Session<'a> {
    /// What is measured is `whole` unless flags leave something out.
    fn start(flags: &'a Shared, peers: Vec<Peer>, upstream: IpAddr, whole: bool) -> Result<Self> {
        let rounds = flags.rounds.unwrap_or(if flags.quick { 1 } else { 3 });
        let seconds = flags.seconds.unwrap_or(if flags.quick { 0.2 } else { 2.0 });
        ensure!(rounds > 0, "--rounds must be at least 1");
        ensure!(seconds > 0.0 && seconds < 3600.0, "--seconds must be above 0 and below 3600");
        let (json, docs) = if flags.quick {
            (flags.folder.with_extension("quick.json"), flags.folder.with_extension("quick.md"))
        } else {
            (flags.json.clone(), flags.docs.clone())
        };
        let machine = Machine::here()?;
        let cores = Cores::of(&machine);
        let is_whole = whole && flags.only.is_empty() && flags.peer.is_empty();
        let mut results = Results::load(&json, &machine, is_whole || flags.quick)?;
        let binary = match &flags.binary {
            Some(binary) => binary.clone(),
            // Cargo puts both into the same folder, wherever that is.
            None => std::env::current_exe().context("find this program")?.with_file_name("fairway"),
        };
        for peer in &peers {
            results.versions.insert(peer.name().to_owned(), peer.version(&binary)?);
        }
        // From here on everything that this program starts inherits its core, unless told otherwise.
        if let Some(core) = cores.generator {
            pin(core)?;
        }
        let folder = fresh_folder(&flags.folder)?;
        let bench = Bench {
            binary,
            flags: flags.flag.clone(),
            certificate: Certificate::create(&folder, &Bench::NAMES)?,
            folder,
            peers,
            rounds,
            turn: Duration::from_secs_f64(seconds),
            cores,
            generator: Generator::new(Upstream::bind(upstream)?)?,
            date: jiff::Timestamp::now().strftime("%F").to_string(),
        };
        Ok(Self { flags, bench, results, json, docs })
    }

    /// Results are written after each measurement: a run that is broken off loses only the last one.
    fn save(&self) -> Result<()> {
        self.results.save(&self.json)?;
        report::write(&self.results, &self.docs)
    }

    fn everything(&mut self, names: &[&str]) -> Result<()> {
        self.traffic(names)?;
        for scenario in IDLE.iter().filter(|scenario| names.contains(&scenario.name)) {
            let count = connections(self.results.machine.open_files, self.flags.quick);
            let idle = self.bench.idle(scenario, count)?;
            self.results.idle.insert(scenario.name.to_owned(), idle);
            self.save()?;
        }
        if names.contains(&limits::NAME) && self.bench.peers.contains(&Peer::Fairway) {
            self.results.limits = Some(self.bench.limits(self.flags.quick)?);
            self.save()?;
        }
        if names.contains(&fairness::NAME) {
            self.results.fairness = self.bench.fairness()?;
            self.save()?;
        }
        if names.contains(&MANIFESTS) && self.bench.peers.contains(&Peer::Fairway) {
            let folder = self.bench.folder.join(MANIFESTS);
            let mut source = Folder::create(&folder, self.bench.generator.upstream().http())?;
            self.control(&mut source)?;
        }
        eprintln!("written: {} and {}", self.json.display(), self.docs.display());
        Ok(())
    }

    fn traffic(&mut self, names: &[&str]) -> Result<()> {
        let mut running = Vec::new();
        let mut running_hosts = 0;
        for scenario in SCENARIOS.iter().filter(|scenario| names.contains(&scenario.name)) {
            if self.flags.quick && scenario.hosts > 1_000 {
                eprintln!("{}: left out by --quick", scenario.name);
                continue;
            }
            if scenario.hosts != running_hosts {
                // The old ones end before the new ones start.
                drop(running);
                running = self.bench.start(scenario.hosts)?;
                running_hosts = scenario.hosts;
            }
            if let Some(alone) = self.bench.alone(scenario)? {
                self.results.generator_alone.insert(scenario.name.to_owned(), alone);
            }
            let traffic = self.bench.traffic(scenario, &running)?;
            self.results.traffic.insert(scenario.name.to_owned(), traffic);
            self.save()?;
        }
        Ok(())
    }

    fn cluster(&mut self, objects: Objects) -> Result<()> {
        let mut source = Cluster::connect(self.bench.generator.upstream().http(), objects)?;
        self.control(&mut source)
    }

    fn control(&mut self, source: &mut dyn Source) -> Result<()> {
        let Self { flags, bench, results, json, docs } = self;
        let mut sizes = flags.sizes.clone();
        if sizes.is_empty() {
            sizes = match source.name() {
                _ if flags.quick => vec![20],
                ROUTES => vec![5_000],
                _ => vec![1_000, 5_000, 10_000],
            };
        }
        ensure!(sizes.is_sorted() && sizes[0] > 0, "--sizes must be above 0 and grow");
        let wanted = Wanted {
            binary: bench.binary.clone(),
            folder: bench.folder.clone(),
            cores: bench.cores,
            sizes,
            rounds: bench.rounds,
            changes: flags.changes.unwrap_or(if flags.quick { 5 } else { 100 }),
            turn: bench.turn,
            rate: flags.rate,
            date: bench.date.clone(),
        };
        ensure!(wanted.changes > 0, "--changes must be at least 1");
        wanted
            .measure(source, &mut bench.generator, &mut |control: Control| {
                let key = Control::key(&control.source, control.ingresses);
                results.control.insert(key, control);
                results.save(json)?;
                report::write(results, docs)
            })
            .context("the control side")
    }
}
