//! A private network namespace with the addresses of the recordings, so that hashes, cookies and counts compare equal
//! and no port clashes with the machine's.

use std::{
    ffi::OsString,
    fs::File,
    io::{BufRead, BufReader, Write},
    net::{IpAddr, Ipv4Addr},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where the controller listens.
pub const CONTROLLER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));

/// Where the client asks from.
pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 50));

/// Set in the environment of a process that runs in such a namespace.
const MARK: &str = "FAIRWAY_TESTKIT_NAMESPACE";

/// What `unshare` is asked for: as root, and for everybody else.
const WAYS: [&[&str]; 2] = [&["--net"], &["--net", "--user", "--map-root-user"]];

/// Makes sure that this process runs in a namespace of its own, by starting itself again with `arguments` in one.
///
/// # Errors
/// When the machine does not allow it; returns at all only inside the namespace.
pub fn enter(arguments: &[OsString]) -> Result<()> {
    if std::env::var_os(MARK).is_some() {
        return prepare();
    }
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let error = unshare()?.arg("--").arg(own).args(arguments).env(MARK, "1").exec();
    Err(error).context("unshare cannot be started; install util-linux")
}

/// The same for one test of a test program: runs that test again in a namespace and says whether the caller is inside.
/// `module` is the caller's `module_path!()`, `name` its function.
///
/// # Errors
/// When the machine does not allow it, there is no such test, or it fails in there.
pub fn run_test(module: &str, name: &str) -> Result<bool> {
    if std::env::var_os(MARK).is_some() {
        prepare()?;
        return Ok(true);
    }
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    // Tests are listed without the name of their program.
    let name = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{name}"),
        None => name.to_owned(),
    };
    let only = ["--exact", name.as_str(), "--include-ignored"];
    let listed = Command::new(&own).arg("--list").args(only).output()?;
    // A program that is asked for a test it does not have runs none, and is content.
    ensure!(
        String::from_utf8_lossy(&listed.stdout).contains(&format!("{name}: test")),
        "there is no test `{name}`"
    );
    let mut command = unshare()?;
    command.arg("--").arg(own).args(only).arg("--nocapture");
    let status =
        command.env(MARK, "1").status().context("unshare cannot be started; install util-linux")?;
    ensure!(status.success(), "`{name}` failed in its network namespace ({status})");
    Ok(false)
}

/// The same for the calling thread and all that it starts from now on, inside a namespace of [`enter`] or [`run_test`].
///
/// # Errors
/// When the machine does not allow it.
pub fn enter_by_thread() -> Result<()> {
    // A namespace lives as long as anybody is in it; nobody but `unshare` makes one without `unsafe`.
    let mut holder = Command::new("unshare")
        .args(["--net", "sh", "-c", "echo up; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("unshare cannot be started; install util-linux")?;
    let mut line = String::new();
    let said = holder.stdout.take().context("unshare says nothing")?;
    BufReader::new(said).read_line(&mut line)?;
    ensure!(line == "up\n", "`unshare --net` made no namespace");
    let namespace = File::open(format!("/proc/{}/ns/net", holder.id()))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .context("a thread cannot enter a namespace")?;
    // `cat` ends with its input.
    drop(holder.stdin.take());
    holder.wait()?;
    prepare()
}

/// The `unshare` command that works here.
fn unshare() -> Result<Command> {
    for way in WAYS {
        let mut probe = Command::new("unshare");
        let quiet = probe.args(way).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
        if quiet.status().context("unshare cannot be started; install util-linux")?.success() {
            let mut command = Command::new("unshare");
            command.args(way);
            return Ok(command);
        }
    }
    bail!(
        "this machine allows no network namespaces; run as root, or allow unprivileged user namespaces"
    )
}

/// Gives the loopback interface its addresses.
fn prepare() -> Result<()> {
    let last = [1, 2, 50].into_iter().chain(10..=40);
    let mut batch = String::from("link set lo up\n");
    batch.extend(last.map(|last| format!("address add 10.77.0.{last}/32 dev lo\n")));
    // A second test of the same process finds the addresses there already.
    let mut child = Command::new("ip")
        .args(["-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("ip cannot be started; install iproute2")?;
    child.stdin.take().context("ip takes no input")?.write_all(batch.as_bytes())?;
    child.wait()?;
    let probe = std::net::TcpListener::bind((CONTROLLER, 0));
    probe.with_context(|| format!("{CONTROLLER} could not be given to the loopback interface"))?;
    Ok(())
}
