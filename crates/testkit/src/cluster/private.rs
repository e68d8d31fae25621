//! Runs a test in a network of its own, by starting the test's program a second time inside new namespaces.
//!
//! Network, mounts and process numbers are new: ports and addresses cannot clash with anything, and when the test
//! ends, however it ends, the kernel takes every process, interface and file of it away.

use std::any::type_name;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::program::{self, Programs};

/// Set inside the namespaces; its value is the folder for the files of the run.
const INSIDE: &str = "FAIRWAY_PRIVATE_NETWORK";

/// More than any test needs, less than a job's time limit.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Runs that may begin at once: each is a whole control plane, which waits more than it computes.
const AT_ONCE: usize = 2;

/// Runs at once where there are cores with nothing to do: on a machine with many of them, nearly always.
const MOST: usize = 4;

/// For so long a core has nothing to do before one run more begins.
const LULL: Duration = Duration::from_secs(2);

/// How many there are.
static RUNS: Mutex<usize> = Mutex::new(0);

/// Told when one has ended.
static ENDED: Condvar = Condvar::new();

/// Whoever is next to begin: the others wait for it, so that one lull begins one run.
static NEXT: Mutex<()> = Mutex::new(());

/// The folder for files of this run, when this process is inside a private network.
pub(super) fn folder() -> Option<PathBuf> {
    std::env::var_os(INSIDE).map(PathBuf::from)
}

/// Runs the body of a `#[test]` in a private network.
///
/// The name of the test is read off the type of `body`, so `body` must be a closure written inside the test itself.
///
/// # Panics
/// When the body fails, or when this machine does not allow namespaces; the message says what would help.
pub fn private_network<F: AsyncFnOnce() -> Result<()>>(body: F) {
    run::<F>(body);
}

/// As `private_network`, where the closure that names the test is not the one to be run.
pub(super) fn run<Named>(body: impl AsyncFnOnce() -> Result<()>) {
    match folder() {
        Some(folder) => inside(&folder, body),
        None => {
            take_place();
            let outcome = outside(&test_name::<Named>());
            *RUNS.lock().expect("nothing panics with it") -= 1;
            ENDED.notify_one();
            if let Err(error) = outcome {
                panic!("{error:?}");
            }
        }
    }
}

/// Waits until one run more may begin.
fn take_place() {
    let _next = NEXT.lock().expect("nothing panics with it");
    let mut runs = RUNS.lock().expect("nothing panics with it");
    while *runs >= AT_ONCE {
        let idle = idle();
        let waited = ENDED.wait_timeout(runs, LULL).expect("nothing panics with it");
        runs = waited.0;
        let is_lull = waited.1.timed_out()
            && idle.zip(self::idle()).is_some_and(|(from, to)| to.saturating_sub(from) >= LULL);
        if is_lull && *runs < MOST {
            break;
        }
    }
    *runs += 1;
}

/// The time for which cores had nothing to do, of all together (proc(5): `/proc/stat`, in hundredths of a second).
fn idle() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let hundredths: u64 = stat.lines().next()?.split_ascii_whitespace().nth(4)?.parse().ok()?;
    Some(Duration::from_millis(hundredths * 10))
}

/// Starts this very program again, in new namespaces, for one test.
fn outside(test: &str) -> Result<()> {
    let program = std::env::current_exe().context("find the test's own program")?;
    let mut command = command(&program)?;
    command.args(["--exact", test, "--nocapture", "--include-ignored", "--test-threads=1"]);
    // The panic inside has its message; a stack of the harness adds nothing.
    command.stdin(Stdio::null()).env("RUST_BACKTRACE", "0");
    // What takes long shows how far it is.
    if std::env::var_os("FAIRWAY_SHOW").is_some() {
        command.stderr(Stdio::inherit());
    }
    let output = command.output().context("start the test in a private network")?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (said(&output.stdout), said(&output.stderr));
    ensure!(
        output.status.success(),
        "inside its private network the test ended with {}\n{stdout}\n{stderr}",
        output.status
    );
    // A name that matches nothing would be a test that cannot fail.
    ensure!(
        stdout.contains("1 passed"),
        "no test is called {test:?}: call private_network from a closure written in the test\n{stdout}"
    );
    let mut terminal = std::io::stderr();
    terminal.write_all(&output.stderr).context("pass on what the test wrote")
}

fn inside(folder: &Path, body: impl AsyncFnOnce() -> Result<()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads for the test's runtime");
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            prepare().await?;
            let patience = patience()?;
            tokio::time::timeout(patience, body())
                .await
                .with_context(|| format!("the test is not done after {patience:?}"))?
        })
    }));
    if !matches!(outcome, Ok(Ok(()))) {
        print_logs(folder);
    }
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("{error:?}"),
        Err(panic) => resume_unwind(panic),
    }
}

/// What a new network namespace lacks.
pub(super) async fn prepare() -> Result<()> {
    let status = tokio::process::Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status()
        .await
        .context("start `ip`: the cluster tests need Debian's package iproute2")?;
    ensure!(status.success(), "`ip link set lo up` ended with {status}");
    Ok(())
}

/// `program` in new namespaces, with a file system in memory for its files; arguments are still to be added.
pub(super) fn command(program: &Path) -> Result<Command> {
    // Built out here, where there is a network.
    Programs::ready()?;
    let folder = program::cache().join("run");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let mut command = namespaces()?;
    // The parent's death must be the child's: Ctrl-C on a test leaves nothing behind.
    command.args(["sh", "-ec", r#"mount -t tmpfs tmpfs "$0"; exec "$@""#]);
    command.arg(&folder).arg(program).env(INSIDE, &folder);
    Ok(command)
}

/// `unshare` with the flags that this machine allows.
fn namespaces() -> Result<Command> {
    let mut refusals = Vec::new();
    for user in [false, true] {
        if !user && !rustix::process::geteuid().is_root() {
            continue;
        }
        let output = unshare(user)
            .arg("true")
            .output()
            .context("start `unshare`: the cluster tests need Debian's package util-linux")?;
        if output.status.success() {
            return Ok(unshare(user));
        }
        refusals.push(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    bail!(
        "this machine allows no private network namespace ({}): run the tests as root, or allow \
         unprivileged ones with `sysctl kernel.unprivileged_userns_clone=1` (Debian) or \
         `sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu); in a container, start it \
         with `--privileged`",
        refusals.join("; ")
    )
}

fn unshare(user: bool) -> Command {
    let start = if user {
        vec!["unshare", "--user", "--map-root-user", "setpriv"]
    } else {
        vec!["setpriv"]
    };
    let mut command = Command::new(start[0]);
    command.args(&start[1..]).args(["--pdeathsig", "KILL"]);
    command.args([
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    command
}

/// `cluster::a_test::{{closure}}` is the closure of test `a_test` in the crate `cluster`.
fn test_name<F>() -> String {
    let full = type_name::<F>();
    let path = full.split_once("::").map_or(full, |(_, path)| path);
    path.split("::{{closure}}").next().unwrap_or(path).to_owned()
}

/// The ends of all logs of the run: they are gone with the namespaces.
pub(super) fn print_logs(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            print_logs(&path);
        } else if path.extension().is_some_and(|extension| extension == "log") {
            let text = std::fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<_> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(40)..].join("\n");
            eprintln!("---- end of {}\n{end}", path.display());
        }
    }
}

/// How long a test may take: longer for those that are told to do much, such as a million requests.
fn patience() -> Result<Duration> {
    match std::env::var("FAIRWAY_TEST_SECONDS") {
        Ok(seconds) => {
            let seconds = seconds.parse().context("FAIRWAY_TEST_SECONDS is a number")?;
            Ok(Duration::from_secs(seconds))
        }
        Err(_) => Ok(PATIENCE),
    }
}
