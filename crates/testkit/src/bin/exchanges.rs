//! The program behind `make exchanges`: replays recorded exchanges against a controller.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use testkit::{
    namespace,
    runner::{self, Engine, Options},
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
    /// The engine of the controller.
    #[arg(long, value_enum, default_value_t)]
    engine: Engine,
    /// A folder whose cases say by which decision steps of the corpus differ.
    #[arg(long, default_value = "tests/exchanges")]
    overlay: PathBuf,
    /// How many cases share the controller, where they can.
    #[arg(long, default_value_t = 20)]
    batch: usize,
    /// How many controllers run at a time.
    #[arg(long, default_value_t = 3)]
    lanes: usize,
    /// Milliseconds to wait after a change has shown.
    #[arg(long, default_value_t = 100)]
    settle: u64,
    /// Seconds that a change may take to show.
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// Where exchanges.json, exchanges.md and the controller's output (exchanges.<engine>-<lane>.log) go.
    #[arg(long, default_value = "target")]
    out: PathBuf,
    /// End with success even if steps failed.
    #[arg(long)]
    allow_failures: bool,
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
    let Arguments { corpus, family, case, binary, engine, overlay, batch, lanes, out, .. } =
        arguments;
    std::fs::create_dir_all(out).with_context(|| format!("{}: cannot be made", out.display()))?;
    let options = Options {
        engine: *engine,
        overlay: overlay.is_dir().then(|| overlay.clone()),
        families: family.clone(),
        filter: case.clone(),
        batch: *batch,
        lanes: *lanes,
        settle: Duration::from_millis(arguments.settle),
        patience: Duration::from_secs(arguments.patience),
        log: out.join("exchanges.log"),
        ..Options::new(corpus, &binary.canonicalize()?)
    };
    let report = runner::run(&options).await?;
    std::fs::write(out.join("exchanges.json"), format!("{:#}\n", report.json()))?;
    std::fs::write(out.join("exchanges.md"), report.markdown())?;
    eprintln!("the differences are in {}", out.join("exchanges.md").display());
    println!("{report}");
    let fine = arguments.allow_failures || report.total().failed == 0;
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
