//! Asks other processes of this container to end and waits until they have: what a preStop hook does.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A running process. It stays this one, even if its number is given to another.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub number: i32,
    handle: OwnedFd,
}

/// The processes that run the program of this one in the same container, and whose arguments are `wanted`. Where
/// containers share their process numbers, those of the others are none of them.
pub fn find(wanted: impl Fn(Vec<OsString>) -> bool) -> io::Result<Vec<Process>> {
    let own = getpid().as_raw_nonzero().get();
    let numbers = fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    let mut found = Vec::new();
    for number in numbers.filter(|number| *number != own) {
        let Some(pid) = Pid::from_raw(number) else { continue };
        // The handle comes first: what is read after it is about this very process, or it is gone.
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH | Errno::INVAL) => continue,
            Err(error) => return Err(error.into()),
        };
        if is_same_program(number) && wanted(arguments(number)) {
            found.push(Process { number, handle });
        }
    }
    Ok(found)
}

/// Sends SIGTERM to each of them and waits for them to end, however long that takes where no time is given; how many
/// still run when the time is over.
pub fn end(processes: &[Process], patience: Option<Duration>) -> io::Result<usize> {
    let until = patience.map(|patience| Instant::now() + patience);
    for process in processes {
        match pidfd_send_signal(&process.handle, Signal::TERM) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut left = 0;
    for process in processes {
        left += usize::from(!has_ended(process, until)?);
    }
    Ok(left)
}

/// Waits until a process has ended, or the time is over.
fn has_ended(process: &Process, until: Option<Instant>) -> io::Result<bool> {
    loop {
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        let rest = rest.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        let mut ended = [PollFd::new(&process.handle, PollFlags::IN)];
        match poll(&mut ended, rest.as_ref()) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The file of the program tells: another container has its own, even of the same image. A program with capabilities
/// hides its file; then its name and its control group tell.
fn is_same_program(number: i32) -> bool {
    let of = |process: &str, name: &str| PathBuf::from(format!("/proc/{process}/{name}"));
    let number = number.to_string();
    let file =
        |process: &str| fs::metadata(of(process, "exe")).map(|file| (file.dev(), file.ino()));
    match (file("self"), file(&number)) {
        (Ok(own), Ok(other)) => own == other,
        _ => ["comm", "cgroup"].iter().all(|what| {
            let text = |process: &str| fs::read_to_string(of(process, what)).ok();
            text("self").is_some_and(|own| is_alike(&own, text(&number).as_deref()))
        }),
    }
}

/// Control groups are alike when they are equal; names of programs also when one is a link to the other.
fn is_alike(own: &str, other: Option<&str>) -> bool {
    const NAMES: [&str; 3] = ["fairway", "nginx-ingress-c", "wait-shutdown"];
    let is_ours = |name: &str| NAMES.contains(&name.trim_end());
    other.is_some_and(|other| own == other || (is_ours(own) && is_ours(other)))
}

fn arguments(number: i32) -> Vec<OsString> {
    let bytes = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::{end, find};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// Not a test of its own: the process that `a_process_of_this_program_…` ends.
    #[test]
    #[ignore = "it is started by another test, as the process that is asked to end"]
    fn victim() {
        std::thread::park_timeout(Duration::from_secs(60));
    }

    #[test]
    fn a_process_of_this_program_is_found_by_its_arguments_and_ended() {
        let own = std::env::current_exe().expect("this program has a path");
        let mark = format!("victim-of-{}", std::process::id());
        let mut child = Command::new(own)
            .args(["--ignored", "--exact", "farewell::tests::victim", "--skip", &mark])
            .stdout(Stdio::null())
            .spawn()
            .expect("this program runs");
        let found = find(|arguments| arguments.iter().any(|word| *word == *mark)).expect("/proc");
        let numbers: Vec<i32> = found.iter().map(|process| process.number).collect();
        assert_eq!(numbers, [i32::try_from(child.id()).expect("a number")]);
        assert_eq!(end(&found, Some(Duration::from_secs(30))).expect("it may be asked"), 0);
        assert!(!child.wait().expect("it has ended").success());
        assert!(
            find(|arguments| arguments.iter().any(|word| *word == *mark))
                .expect("/proc")
                .is_empty()
        );
    }

    #[test]
    fn another_program_is_not_found() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep runs");
        let number = i32::try_from(child.id()).expect("a number");
        let found = find(|_| true).expect("/proc");
        assert!(found.iter().all(|process| process.number != number));
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }

    #[test]
    fn what_does_not_end_in_time_is_counted() {
        let own = std::env::current_exe().expect("this program has a path");
        let mark = format!("stubborn-of-{}", std::process::id());
        // A shell that ignores SIGTERM hands this on to the program it starts.
        let script = "trap '' TERM; exec \"$0\" \"$@\"";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(own)
            .args(["--ignored", "--exact", "farewell::tests::victim", "--skip", &mark])
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell runs");
        let found = loop {
            let found = find(|arguments| {
                arguments.first().is_some_and(|name| !name.eq_ignore_ascii_case("sh"))
                    && arguments.iter().any(|word| *word == *mark)
            })
            .expect("/proc");
            if !found.is_empty() {
                break found;
            }
            std::thread::yield_now();
        };
        assert_eq!(end(&found, Some(Duration::from_millis(50))).expect("it may be asked"), 1);
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }
}
