//! The nginx process: started in a group of its own, watched, ended. What a crash of ours left behind is found by its
//! process id in the private folder.

use crate::conf::Environment;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process, waitpgid,
};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// How often a condition is looked at that nobody announces.
const LOOK: Duration = Duration::from_millis(5);
/// A reload takes no longer, unless something is wrong.
const SLOW: Duration = Duration::from_secs(10);
/// What nginx takes of the kernel beyond what it needs, for glibc's malloc. Every `map` and every hash zeroes up to
/// 1.2 MB while it is read, and gives them back: out of this room a configuration is read in a fifth of the time.
pub(crate) const ROOM: (&str, &str) = ("MALLOC_TOP_PAD_", "8388608");
/// How long a process that a crash left behind may take to finish its requests.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// A worker process of nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its process id.
    pub pid: i32,
    /// Whether it takes no more connections and only finishes what it has.
    pub is_leaving: bool,
}

/// Starts nginx on the configuration of an environment, in the foreground of a process group of its own.
pub(crate) fn spawn(program: &Path, environment: &Environment) -> io::Result<Child> {
    Command::new(program)
        .args(["-p".as_ref(), environment.directory.as_os_str()])
        .args(["-c".as_ref(), environment.conf().as_os_str()])
        .args(["-e", "stderr"])
        .envs([ROOM])
        .stdin(Stdio::null())
        .process_group(0)
        .kill_on_drop(false)
        .spawn()
}

/// The workers of a master process.
pub(crate) fn workers(master: i32) -> Vec<Worker> {
    let children = children(master);
    let pids = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
    pids.filter_map(|pid| {
        let title = title(pid)?;
        title
            .starts_with("nginx: worker process")
            .then(|| Worker { pid, is_leaving: title.contains("shutting down") })
    })
    .collect()
}

/// The process ids of its children. The kernel may skip some while others end (proc(5)), so what it says twice counts.
fn children(pid: i32) -> String {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    let mut last = read();
    loop {
        let next = read();
        if next == last {
            return next;
        }
        last = next;
    }
}

fn title(pid: i32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).replace('\0', " "))
}

/// Whether a process has ended, if only its parent has not asked yet.
pub(crate) fn has_ended(pid: i32) -> bool {
    title(pid).is_none_or(|title| title.is_empty())
}

/// Waits until the workers of `before` have stopped to take connections and others have taken over. False if that takes
/// longer than `patience`; an error where `fails` gives one, which is asked all the time.
pub(crate) async fn taken_over<E>(
    master: i32,
    before: &[Worker],
    patience: Duration,
    mut fails: impl FnMut() -> Option<E>,
) -> Result<bool, E> {
    let (deadline, mut slow) = (Instant::now() + patience, Some(Instant::now() + SLOW));
    loop {
        let now = workers(master);
        let is_old = |worker: &Worker| before.iter().any(|old| old.pid == worker.pid);
        let has_new = now.iter().any(|worker| !is_old(worker) && !worker.is_leaving);
        if has_new && now.iter().all(|worker| !is_old(worker) || worker.is_leaving) {
            return Ok(true);
        }
        if let Some(failure) = fails() {
            return Err(failure);
        }
        if Instant::now() > deadline {
            return Ok(false);
        }
        if slow.take_if(|slow| Instant::now() > *slow).is_some() {
            tracing::warn!(
                seconds = SLOW.as_secs(),
                "nginx was asked to reload and has no new workers yet: changes wait for it"
            );
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing tells when a process of others ends"
        )]
        sleep(LOOK).await;
    }
}

/// Asks a process for something.
pub(crate) fn signal(pid: i32, signal: Signal) -> io::Result<()> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

/// Ends all processes of a group at once.
pub(crate) fn end_group(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // One that has ended needs no signal.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Takes leave of the processes of a group that has been ended, where they are ours now: in a container their parent's
/// end makes them children of its first process, and zombies of it until it asks.
pub(crate) async fn reap_group(pid: i32) {
    let Some(group) = Pid::from_raw(pid) else { return };
    let deadline = Instant::now() + LEFT_BEHIND;
    // An error says that there are none.
    while let Ok(one) = waitpgid(group, WaitOptions::NOHANG) {
        if one.is_none() && Instant::now() > deadline {
            return;
        }
        if one.is_none() {
            #[expect(
                clippy::disallowed_methods,
                reason = "nothing tells when a process of others ends"
            )]
            sleep(LOOK).await;
        }
    }
}

/// Ends the nginx that an earlier process with this environment left behind, if there is one and it is ours.
pub(crate) async fn end_left_behind(environment: &Environment) {
    let Some(pid) = left_behind(environment) else { return };
    tracing::warn!(pid, "an nginx that was left behind by an earlier process is ended");
    drop(signal(pid, Signal::QUIT));
    if ended(pid, LEFT_BEHIND).await {
        return;
    }
    drop(signal(pid, Signal::TERM));
    if !ended(pid, LEFT_BEHIND).await {
        end_group(pid);
        ended(pid, LEFT_BEHIND).await;
    }
}

/// The process in the pid file, if it is a master of nginx on our configuration: numbers are used again.
fn left_behind(environment: &Environment) -> Option<i32> {
    let pid: i32 = std::fs::read_to_string(environment.pid()).ok()?.trim().parse().ok()?;
    let title = title(pid)?;
    let is_ours = title.starts_with("nginx: master process")
        && title.split(' ').any(|word| Path::new(word) == environment.conf());
    is_ours.then_some(pid)
}

/// Waits until a process that is no child of ours has ended.
async fn ended(pid: i32, patience: Duration) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return true };
    let deadline = Instant::now() + patience;
    while test_kill_process(pid).is_ok() {
        if Instant::now() > deadline {
            return false;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing tells when a process of others ends"
        )]
        sleep(LOOK).await;
    }
    true
}
