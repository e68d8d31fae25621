//! Floods Fairway with cheap frames and slow peers and says what ended each.

use anyhow::{Context, Result};
use clap::Parser;
use hostile::flood::slow::{self, Slow};
use hostile::flood::unread::{self, Unread};
use hostile::flood::{self, Flood};
use hostile::lane::Lane;
use hostile::report::write_json;
use hostile::subject::{Program, Setup};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Floods Fairway with cheap frames and slow peers; ends with 1 if one of them is not stopped.
#[derive(Parser)]
struct Arguments {
    /// The binary that is started.
    #[arg(long, default_value = "target/debug/fairway")]
    binary: PathBuf,
    /// Starts this nginx instead, to compare.
    #[arg(long, conflicts_with = "binary")]
    nginx: Option<PathBuf>,
    /// Frames of each flood.
    #[arg(long, default_value_t = 10_000)]
    frames: usize,
    /// Seconds of client-header-timeout and client-body-timeout.
    #[arg(long, default_value_t = 2)]
    timeout: u64,
    /// Seconds that a slow body is watched.
    #[arg(long, default_value_t = 30)]
    body_patience: u64,
    /// Seconds that slow readers are watched; they have no key, only the sixty seconds between two writes.
    #[arg(long, default_value_t = 130)]
    reader_patience: u64,
    /// Seconds that nothing is read of many answers.
    #[arg(long, default_value_t = 20)]
    unread_patience: u64,
    /// Only the floods whose name has this in it, of those that are measured on their own.
    #[arg(long)]
    only: Option<String>,
    /// Where the result goes as JSON.
    #[arg(long, default_value = "target/floods.json")]
    json: PathBuf,
}

#[derive(Serialize)]
struct Row {
    sent: &'static str,
    ended: String,
    ok: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(bad) => ExitCode::from(u8::from(bad > 0)),
        Err(error) => {
            eprintln!("floods: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: &Arguments) -> Result<usize> {
    let program = match &arguments.nginx {
        Some(nginx) => Program::Nginx(nginx.clone()),
        None => Program::Fairway(arguments.binary.canonicalize().with_context(|| {
            let binary = arguments.binary.display();
            format!("{binary} is missing: build it, or name it with --binary")
        })?),
    };
    let mut rows = Vec::new();
    if arguments.only.is_none() {
        let (fast, stall, slow) = tokio::try_join!(
            fast(arguments, &program),
            stall(arguments, &program),
            slow_peers(arguments, &program)
        )?;
        rows.extend(fast.into_iter().chain(stall).chain(slow));
    }
    // On their own: what they measure is the memory and the time that others get.
    let wanted = |unread: &Unread| {
        arguments.only.as_ref().is_none_or(|only| unread.name().contains(only.as_str()))
    };
    for unread in Unread::ALL.into_iter().filter(wanted) {
        rows.push(unread_answers(arguments, &program, unread).await?);
    }
    for row in &rows {
        println!("{:<44} {:<7} {}", row.sent, if row.ok { "ok" } else { "NOT OK" }, row.ended);
    }
    let bad = rows.iter().filter(|row| !row.ok).count();
    println!("{} ok, {bad} not ok", rows.len() - bad);
    write_json(&arguments.json, &rows)?;
    Ok(bad)
}

async fn fast(arguments: &Arguments, program: &Program) -> Result<Vec<Row>> {
    // What is left in the log is what strangers can write there.
    let configuration = vec![("disable-access-log", "true".to_owned())];
    let lane = Lane::start(program, &Setup { configuration, ..Setup::default() }, 0).await?;
    let mut rows = Vec::new();
    for flood in Flood::FAST {
        rows.push(one(&lane, flood, arguments, arguments.reader_patience).await?);
    }
    let size = lane.subject().log_size();
    let quiet = Row {
        sent: "all that in the log",
        ended: format!("{size} bytes"),
        ok: size < LOG || matches!(program, Program::Nginx(_)),
    };
    rows.push(quiet);
    Ok(rows)
}

/// Bytes of a log in which a few events are told, and no line for each frame.
const LOG: u64 = 20_000;

async fn unread_answers(arguments: &Arguments, program: &Program, unread: Unread) -> Result<Row> {
    let flags = vec!["--memory-limit=128Mi"];
    let setup = Setup { flags, configuration: unread.configuration(), ..Setup::default() };
    let lane = Lane::start(program, &setup, 0).await?;
    let patience = Duration::from_secs(arguments.unread_patience);
    let honest = unread::run(unread, lane.subject().http, patience).await?;
    let peak = lane.subject().peak().map(|peak| format!(", {peak} MiB of its own at most"));
    let ended = honest.words() + &peak.unwrap_or_default();
    Ok(Row { sent: unread.name(), ended, ok: honest.ok() })
}

async fn stall(arguments: &Arguments, program: &Program) -> Result<Vec<Row>> {
    let lane = Lane::start(program, &Setup::default(), 0).await?;
    Ok(vec![one(&lane, Flood::WindowStall, arguments, arguments.reader_patience).await?])
}

async fn one(lane: &Lane, flood: Flood, arguments: &Arguments, seconds: u64) -> Result<Row> {
    let patience = Duration::from_secs(seconds);
    let addresses = (lane.subject().https, lane.subject().http);
    let outcome = flood::run(flood, arguments.frames, addresses, lane.backend(), patience)
        .await
        .with_context(|| format!("the proxy is gone before {}", flood.name()))?;
    Ok(Row { sent: flood.name(), ended: outcome.words(), ok: outcome.ok() })
}

async fn slow_peers(arguments: &Arguments, program: &Program) -> Result<Vec<Row>> {
    let seconds = arguments.timeout.to_string();
    let configuration =
        vec![("client-header-timeout", seconds.clone()), ("client-body-timeout", seconds)];
    let lane = Lane::start(program, &Setup { configuration, ..Setup::default() }, 0).await?;
    let http = lane.subject().http;
    let attempt = |slow: Slow| {
        let seconds = match slow {
            Slow::Header | Slow::BodyStops => arguments.timeout + 5,
            Slow::BodyDrips => arguments.body_patience,
            Slow::Reader => arguments.reader_patience,
        };
        slow::run(slow, http, Duration::from_secs(seconds))
    };
    let [header, stops, drips, reader] = Slow::ALL;
    let found = tokio::try_join!(attempt(header), attempt(stops), attempt(drips), attempt(reader))?;
    let found = [found.0, found.1, found.2, found.3];
    let row = |outcome: slow::Outcome| Row {
        sent: outcome.slow.name(),
        ended: outcome.words(),
        ok: outcome.cut.is_some(),
    };
    let mut rows: Vec<Row> = found.into_iter().map(row).collect();
    for flood in Flood::SLOW {
        rows.push(one(&lane, flood, arguments, arguments.body_patience).await?);
    }
    Ok(rows)
}
