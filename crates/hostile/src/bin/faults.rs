//! Runs the tests that the table of faults names, and prints for each fault what became of it.

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Runs the tests that the table of faults names; ends with 1 if one of them fails.
#[derive(Parser)]
struct Arguments {
    /// The table.
    #[arg(long, default_value = "tests/faults/table.tsv")]
    table: PathBuf,
    /// The binary that floods go to; tests start the one that cargo builds.
    #[arg(long, default_value = "target/debug/fairway")]
    binary: PathBuf,
    /// Only faults whose id begins so, such as CP or DP03.
    #[arg(long, default_value = "")]
    only: String,
}

/// A row of the table.
struct Fault {
    id: String,
    fault: String,
    wanted: String,
    tests: Vec<Test>,
    remark: String,
}

/// What injects a fault.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Test {
    /// A test of cargo: package, target, name.
    Cargo { package: String, target: String, name: String },
    /// A row of `make floods`.
    Flood(String),
}

/// Floods and slow peers in front of a row of their table.
const FLOOD: &str = "make floods: ";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("faults: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let mut faults = read(&arguments.table)?;
    faults.retain(|fault| fault.id.starts_with(&arguments.only));
    ensure!(!faults.is_empty(), "no fault begins with {:?}", arguments.only);
    let passed = inject(&faults, arguments)?;
    println!("\n{:<5} {:<48} {:<12} injected by", "id", "fault", "outcome");
    let (mut good, mut bad, mut left) = (0, 0, 0);
    for fault in &faults {
        let Fault { id, fault: what, wanted, tests, remark } = fault;
        let outcome = match tests.as_slice() {
            [] => "not injected",
            tests if tests.iter().all(|test| passed.contains(test)) => "as wanted",
            _ => "NOT AS WANTED",
        };
        match outcome {
            "not injected" => left += 1,
            "as wanted" => good += 1,
            _ => bad += 1,
        }
        let by: Vec<String> = tests.iter().map(Test::words).collect();
        let by = if by.is_empty() { remark.clone() } else { by.join(", ") };
        println!("{id:<5} {what:<48} {outcome:<12} {by}");
        println!("{:<5} wanted: {wanted}", "");
    }
    println!(
        "\n{good} as wanted, {bad} not as wanted, {left} not injected (the reason stands beside them)"
    );
    Ok(bad == 0)
}

fn read(table: &PathBuf) -> Result<Vec<Fault>> {
    let text =
        std::fs::read_to_string(table).with_context(|| format!("read {}", table.display()))?;
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[id, fault, wanted, tests, remark] = cells.as_slice() else {
            bail!("{}: not five cells: {line}", table.display());
        };
        let tests = tests.split("; ").filter(|test| !test.is_empty()).map(Test::read);
        let [id, fault, wanted, remark] = [id, fault, wanted, remark].map(str::to_owned);
        Ok(Fault { id, fault, wanted, tests: tests.collect::<Result<_>>()?, remark })
    });
    rows.collect()
}

impl Test {
    fn read(text: &str) -> Result<Self> {
        if let Some(sent) = text.strip_prefix(FLOOD) {
            return Ok(Self::Flood(sent.to_owned()));
        }
        let parts = text.split_once('/').and_then(|(package, rest)| {
            let (target, name) = rest.split_once("::")?;
            Some([package, target, name].map(str::to_owned))
        });
        let [package, target, name] =
            parts.with_context(|| format!("{text:?} is not package/target::test"))?;
        Ok(Self::Cargo { package, target, name })
    }

    fn words(&self) -> String {
        match self {
            Self::Cargo { package, target, name } => format!("{package}/{target}::{name}"),
            Self::Flood(sent) => format!("{FLOOD}{sent}"),
        }
    }
}

/// Runs everything once: what passed.
fn inject(faults: &[Fault], arguments: &Arguments) -> Result<BTreeSet<Test>> {
    let tests: BTreeSet<Test> = faults.iter().flat_map(|fault| fault.tests.clone()).collect();
    let mut targets: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for test in &tests {
        if let Test::Cargo { package, target, name } = test {
            targets.entry((package, target)).or_default().push(name);
        }
    }
    let mut passed = BTreeSet::new();
    let mut failed = Vec::new();
    let programs = if targets.is_empty() { BTreeMap::new() } else { programs()? };
    for ((package, target), names) in targets {
        eprintln!("{package}/{target}: {} tests", names.len());
        let program = programs.get(&(package.to_owned(), target.to_owned()));
        let program = program.with_context(|| format!("{package} has no tests {target}"))?;
        let found = program.run(&names)?;
        for name in names {
            let [package, target, name] = [package, target, name].map(str::to_owned);
            if found.contains(&name) {
                passed.insert(Test::Cargo { package, target, name });
            } else {
                failed.push(format!("{package}/{target}::{name}"));
            }
        }
    }
    if tests.iter().any(|test| matches!(test, Test::Flood(_))) {
        passed.extend(floods(&arguments.binary)?.into_iter().map(Test::Flood));
    }
    for test in failed {
        eprintln!("failed: {test}; run it alone to see why");
    }
    Ok(passed)
}

/// A test program that was built.
struct Program {
    path: PathBuf,
    /// The folder of its package, where cargo would start it.
    home: PathBuf,
}

/// What cargo says of something that it built, as far as it is read here.
#[derive(Deserialize)]
struct Built {
    package_id: String,
    manifest_path: PathBuf,
    target: Target,
    executable: Option<PathBuf>,
}

/// Of which target it is.
#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Built {
    /// The name of its package: behind the `#`, unless that is its folder's and only the version stands there.
    fn package(&self) -> Option<&str> {
        let (path, rest) = self.package_id.rsplit_once('#')?;
        rest.split_once('@').map(|(name, _)| name).or_else(|| path.rsplit('/').next())
    }
}

/// All test programs of the workspace by package and target, built together: one by one, each would have its
/// dependencies built anew with the features that it alone asks for.
fn programs() -> Result<BTreeMap<(String, String), Program>> {
    eprintln!("building the tests");
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-run", "--quiet"]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command.stderr(std::process::Stdio::inherit()).output().context("start cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let mut programs = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // What is not about something built has other fields.
        let Ok(built) = serde_json::from_str::<Built>(line) else { continue };
        let (Some(package), Some(path)) = (built.package(), &built.executable) else { continue };
        let is_lib = built.target.kind.iter().any(|kind| kind == "lib");
        let target = if is_lib { "lib" } else { built.target.name.as_str() };
        let home = built.manifest_path.parent().map(PathBuf::from).unwrap_or_default();
        let program = Program { path: path.clone(), home };
        programs.insert((package.to_owned(), target.to_owned()), program);
    }
    Ok(programs)
}

impl Program {
    /// Runs tests; the names of those that passed.
    fn run(&self, names: &[&str]) -> Result<BTreeSet<String>> {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.home);
        // One line for each test, whatever the others do.
        command.args(["--exact", "--include-ignored", "--format=pretty"]).args(names);
        let output = command.stderr(std::process::Stdio::inherit()).output();
        let output = output.with_context(|| format!("start {}", self.path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let passed = |line: &str| {
            let name = line.strip_prefix("test ")?.strip_suffix(" ... ok")?;
            Some(name.trim_end_matches(" - should panic").to_owned())
        };
        Ok(text.lines().filter_map(passed).collect())
    }
}

/// A row of what `floods` writes.
#[derive(Deserialize)]
struct Row {
    sent: String,
    ok: bool,
}

/// Runs all floods; the names of those that were stopped.
fn floods(binary: &PathBuf) -> Result<Vec<String>> {
    eprintln!("floods: some minutes, since slow readers are watched");
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("floods.json");
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "hostile", "--bin", "floods", "--"]);
    command.arg("--binary").arg(binary).arg("--json").arg(&json);
    let status = command.stdout(std::process::Stdio::null()).status().context("start cargo")?;
    let text = std::fs::read(&json).with_context(|| format!("floods ended with {status}"))?;
    let rows: Vec<Row> = serde_json::from_slice(&text).context("read the result of floods")?;
    Ok(rows.into_iter().filter(|row| row.ok).map(|row| row.sent).collect())
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
