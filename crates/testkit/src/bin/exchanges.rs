//! The program behind `make exchanges`: replays recorded exchanges against a controller.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use testkit::{
    namespace,
    runner::{self, Baseline, Options, Report},
};
use tokio::signal::unix::{SignalKind, signal};

/// Replays the cases of a folder in the exchange format against a controller and compares every step.
///
/// Runs in a network namespace of its own. Ends with success only if no step failed.
#[derive(Debug, Parser)]
#[command(name = "exchanges")]
struct Arguments {
    /// The corpus: a folder of families of cases.
    corpus: PathBuf,
    /// Only these families.
    #[arg(long, value_delimiter = ',')]
    family: Vec<String>,
    /// Only cases whose `family/case` contains this.
    #[arg(long, default_value = "", hide_default_value = true)]
    case: String,
    /// The controller.
    #[arg(long, default_value = "target/release/fairway")]
    binary: PathBuf,
    /// The engine of the controller; `native` is its default and needs no flag.
    #[arg(long, default_value = "native")]
    engine: String,
    /// A folder whose cases say by which decision steps of the corpus differ.
    #[arg(long, default_value = "tests/exchanges")]
    overlay: PathBuf,
    /// How many cases share the controller, where they can.
    #[arg(long, default_value_t = 20)]
    batch: usize,
    /// Milliseconds to wait after a change has shown.
    #[arg(long, default_value_t = 100)]
    settle: u64,
    /// Seconds that a change may take to show.
    #[arg(long, default_value_t = 15)]
    patience: u64,
    /// Where exchanges.json, exchanges.md and the controller's output (exchanges.log) go.
    #[arg(long, default_value = "target")]
    out: PathBuf,
    /// End with success even if steps failed.
    #[arg(long)]
    allow_failures: bool,
    /// A list of steps that are known to fail; others must not.
    #[arg(long)]
    baseline: Option<PathBuf>,
    /// Write the list of the steps that failed.
    #[arg(long)]
    write_baseline: Option<PathBuf>,
}

fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("exchanges: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let binary = arguments.binary.as_path();
    ensure!(
        binary.is_file(),
        "{}: no such file; build it first, or name another with --binary",
        binary.display()
    );
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    namespace::enter(&given)?;
    tokio::runtime::Runtime::new().context("no runtime")?.block_on(async {
        let mut ended = signal(SignalKind::terminate())?;
        tokio::select! {
            code = replay(&arguments) => code,
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
            _ = ended.recv() => Ok(ExitCode::from(143)),
        }
    })
}

async fn replay(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { corpus, family, case, binary, overlay, batch, settle, patience, out, .. } =
        arguments;
    std::fs::create_dir_all(out).with_context(|| format!("{}: cannot be made", out.display()))?;
    let log = out.join("exchanges.log");
    std::fs::write(&log, "").with_context(|| format!("{}: cannot be written", log.display()))?;
    let mut options = Options {
        overlay: overlay.is_dir().then(|| overlay.clone()),
        families: family.clone(),
        filter: case.clone(),
        batch: *batch,
        settle: Duration::from_millis(*settle),
        patience: Duration::from_secs(*patience),
        log,
        ..Options::new(corpus, &binary.canonicalize()?)
    };
    if arguments.engine != "native" {
        options.flags.push(format!("--engine={}", arguments.engine));
        // A folder of its own, so that runs do not meet.
        let directory = std::env::temp_dir().join(format!("exchanges-{}", std::process::id()));
        options.flags.push(format!("--nginx-directory={}", directory.display()));
    }
    let report = runner::run(&options).await?;
    std::fs::write(out.join("exchanges.json"), format!("{:#}\n", report.json()))?;
    std::fs::write(out.join("exchanges.md"), report.markdown())?;
    if let Some(path) = &arguments.write_baseline {
        std::fs::write(path, Baseline::text(&report))
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    let fine = judge(arguments, &report)?;
    eprintln!("the differences are in {}", out.join("exchanges.md").display());
    println!("{report}");
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the run is as good as it must be.
fn judge(arguments: &Arguments, report: &Report) -> Result<bool> {
    let Some(path) = &arguments.baseline else {
        return Ok(arguments.allow_failures || report.total().failed == 0);
    };
    let baseline = Baseline::read(path)?;
    for line in baseline.mended(report) {
        eprintln!("passes now, and can leave {}: {line}", path.display());
    }
    let news = baseline.news(report);
    for result in &news {
        eprintln!(
            "fails, and is not in {}: {} {} {}",
            path.display(),
            result.case,
            result.number,
            result.step
        );
    }
    Ok(arguments.allow_failures || news.is_empty())
}
