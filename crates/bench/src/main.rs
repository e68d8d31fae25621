//! Measures Fairway beside nginx and HAProxy, from the outside, and writes what it measured.

mod load;
mod machine;
mod measure;
mod peers;
mod process;
mod results;
mod scenario;
mod tls;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::load::{Generator, Upstream};
use crate::machine::{Cores, Machine};
use crate::measure::{Bench, fresh_folder};
use crate::peers::Peer;
use crate::results::Results;
use crate::scenario::SCENARIOS;
use crate::tls::Certificate;

/// Measures Fairway beside nginx and HAProxy.
#[derive(Debug, Parser)]
struct Flags {
    /// The program to measure
    #[arg(long, value_name = "PATH", default_value = "target/release/fairway")]
    binary: PathBuf,
    /// Measure only this (may be given several times); unknown names print the list
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measure only this proxy: fairway, nginx or haproxy (may be given several times)
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,
    /// How often every proxy has its turn
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Length of a turn in seconds
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<()> {
    let machine = Machine::here()?;
    let cores = Cores::of(&machine);
    if let Some(core) = cores.generator {
        process::pin(core)?;
    }
    let folder = fresh_folder(&PathBuf::from("target/bench"))?;
    let certificate = Certificate::create(&folder, &Bench::NAMES)?;
    let mut bench = Bench {
        binary: flags.binary.clone(),
        folder,
        peers: Peer::ALL.into_iter().filter(|p| flags.peer.is_empty() || flags.peer.iter().any(|n| n == p.name())).collect(),
        rounds: flags.rounds,
        turn: Duration::from_secs_f64(flags.seconds),
        cores,
        certificate,
        generator: Generator::new(Upstream::bind()?)?,
        date: jiff::Timestamp::now().strftime("%F").to_string(),
    };
    let mut results = Results { machine, ..Results::default() };
    for scenario in &SCENARIOS {
        if !flags.only.is_empty() && !flags.only.iter().any(|n| n == scenario.name) { continue; }
        let running = bench.start(scenario.hosts)?;
        if let Some(alone) = bench.alone(scenario)? {
            eprintln!("{} alone: {:.0}", scenario.name, alone.median);
        }
        results.traffic.insert(scenario.name.into(), bench.traffic(scenario, &running)?);
    }
    results.save(&PathBuf::from("target/bench.json"))
}
