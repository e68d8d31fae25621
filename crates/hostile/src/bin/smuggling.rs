//! Sends a table of hostile inputs through Fairway and says how each ended.

use anyhow::{Context, Result, bail};
use clap::Parser;
use hostile::case::{self, Case, Input};
use hostile::h2::script::Script;
use hostile::judge::{Judgement, Verdict, judge};
use hostile::lane::Lane;
use hostile::report::{Report, Row};
use hostile::subject::{Program, Setup};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Sends a table of hostile inputs through Fairway; ends with 1 if any ended worse than the table says.
#[derive(Parser)]
struct Arguments {
    /// The table: id, raw_request_escaped, expected_outcome, proto, outcome_code.
    #[arg(default_value = "tests/hostile/smuggling.csv")]
    file: PathBuf,
    /// The binary that is started.
    #[arg(long, default_value = "target/debug/fairway")]
    binary: PathBuf,
    /// Starts this nginx instead, to compare.
    #[arg(long, conflicts_with = "binary")]
    nginx: Option<PathBuf>,
    /// Uses a proxy that runs already at this address, with the upstream at 127.0.0.1:BACKEND_PORT.
    #[arg(long, requires = "target_https", requires = "backend_port")]
    target_http: Option<SocketAddr>,
    /// Where that proxy speaks TLS.
    #[arg(long)]
    target_https: Option<SocketAddr>,
    /// Where that proxy expects its upstream.
    #[arg(long)]
    backend_port: Option<u16>,
    /// Sends only rows whose id starts so.
    #[arg(long)]
    only: Option<String>,
    /// Where the result goes as JSON.
    #[arg(long, default_value = "target/smuggling.json")]
    json: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(report) => {
            println!("{}", report.table());
            ExitCode::from(u8::from(report.worse > 0))
        }
        Err(error) => {
            eprintln!("smuggling: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: Arguments) -> Result<Report> {
    let mut cases = case::load(&arguments.file)?;
    if let Some(prefix) = &arguments.only {
        cases.retain(|case| case.id.starts_with(prefix));
    }
    if cases.is_empty() {
        bail!("no row of {} is left to send", arguments.file.display());
    }
    let (floods, inputs): (Vec<Case>, Vec<Case>) = cases
        .iter()
        .cloned()
        .partition(|case| matches!(&case.input, Input::Http2(Script::Floods(_))));
    let program = program(&arguments)?;
    let found = match (&program, arguments.backend_port) {
        (Program::Running { .. }, Some(port)) => {
            let lane = Lane::start(&program, &Setup::default(), port).await?;
            let all = [inputs, floods].concat();
            vec![send(&lane, &all, false).await?]
        }
        _ => {
            // Buffering changes what has reached the upstream when an input turns out bad, so every input is sent
            // both ways; floods have a process of their own because some of them take a minute.
            let setup = |streaming| Setup { streaming, ..Setup::default() };
            let buffered = whole(&program, setup(false), &inputs);
            let streaming = whole(&program, setup(true), &inputs);
            let floods = whole(&program, setup(false), &floods);
            let (buffered, streaming, floods) = tokio::try_join!(buffered, streaming, floods)?;
            vec![buffered, streaming, floods]
        }
    };
    let report = Report::new(rows(&cases, &found)?);
    report.write(&arguments.json)?;
    Ok(report)
}

fn program(arguments: &Arguments) -> Result<Program> {
    if let (Some(http), Some(https)) = (arguments.target_http, arguments.target_https) {
        return Ok(Program::Running { http, https });
    }
    if let Some(nginx) = &arguments.nginx {
        return Ok(Program::Nginx(nginx.clone()));
    }
    let binary = &arguments.binary;
    let binary = binary.canonicalize().with_context(|| {
        format!("{} is missing: build it, or name it with --binary", binary.display())
    })?;
    Ok(Program::Fairway(binary))
}

type Found = BTreeMap<String, Judgement>;

async fn whole(program: &Program, setup: Setup, cases: &[Case]) -> Result<Found> {
    if cases.is_empty() {
        return Ok(Found::new());
    }
    let lane = Lane::start(program, &setup, 0).await?;
    send(&lane, cases, setup.streaming).await
}

async fn send(lane: &Lane, cases: &[Case], streaming: bool) -> Result<Found> {
    let mut found = Found::new();
    for case in cases {
        let judgement = match lane.observe(case, streaming).await {
            Ok(seen) => judge(case, &seen),
            Err(error) => (Verdict::Worse, format!("the proxy is gone: {error:#}")),
        };
        found.insert(case.id.clone(), judgement);
    }
    Ok(found)
}

/// The worst of what was found for each case.
fn rows(cases: &[Case], found: &[Found]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in cases {
        let worst = found.iter().filter_map(|lane| lane.get(&case.id)).max_by_key(|found| found.0);
        let (verdict, mut happened) = worst.cloned().context("a case was not sent")?;
        let streaming = found.get(1).and_then(|lane| lane.get(&case.id));
        if found.iter().filter_map(|lane| lane.get(&case.id)).any(|other| other.0 != verdict) {
            let alone = streaming.is_some_and(|streaming| streaming.0 == verdict);
            happened = format!("{}: {happened}", if alone { "streaming" } else { "buffered" });
        }
        rows.push(Row { id: case.id.clone(), expected: case.expected.clone(), verdict, happened });
    }
    Ok(rows)
}
