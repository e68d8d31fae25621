//! What the kernel knows of a process and of those that it started: processor time, memory; and where it may run.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};

/// A process and its descendants, as they were when they were looked up.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    members: Vec<u32>,
}

/// Processor time that this thread has used.
pub(crate) fn thread_nanoseconds() -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").context("read schedstat")?;
    first_number(&text).context("schedstat without a number")
}

/// Waits for all of `time`; parking alone may end early.
pub(crate) fn pause(time: Duration) {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}

/// Keeps this thread, and what it starts, on one core.
pub(crate) fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).with_context(|| format!("stay on core {core}"))
}

impl Family {
    /// The process `root`, its children and theirs.
    pub(crate) fn of(root: u32) -> Self {
        let parents: Vec<(u32, u32)> = processes().collect();
        let mut members = vec![root];
        let mut next = 0;
        while let Some(parent) = members.get(next).copied() {
            let children = parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child);
            members.extend(children);
            next += 1;
        }
        Self { members }
    }

    /// Ends all of them at once.
    pub(crate) fn kill(&self) {
        let pids = self.members.iter().filter_map(|member| Pid::from_raw(member.cast_signed()));
        for pid in pids {
            // One that has ended needs no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Processor time of all threads of all its processes, with the scheduler's resolution.
    pub(crate) fn nanoseconds(&self) -> Result<u64> {
        let mut total = 0;
        for process in &self.members {
            // A process or a thread may have ended since.
            let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
            total += threads
                .flatten()
                .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
                .filter_map(|text| first_number(&text))
                .sum::<u64>();
        }
        Ok(total)
    }

    /// Resident memory of all its processes, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let mut total = 0;
        for process in &self.members {
            let path = format!("/proc/{process}/status");
            let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kib = line.and_then(first_number).with_context(|| format!("no VmRSS in {path}"))?;
            total += kib << 10;
        }
        Ok(total)
    }
}

/// All processes with their parents.
fn processes() -> impl Iterator<Item = (u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name stands in parentheses and may contain anything; state and parent follow it.
        let parent = text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((process, parent))
    })
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn work_of_this_thread_and_of_a_child_is_counted() {
        let before = thread_nanoseconds().expect("schedstat");
        let mut sum = 0_u64;
        while thread_nanoseconds().expect("schedstat") == before {
            sum = std::hint::black_box(sum + 1);
        }
        let mut child = Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut line = [0; 1];
        let out = child.stdout.as_mut().expect("piped");
        std::io::Read::read_exact(out, &mut line).expect("the loop is done");
        let (all, own) = (Family::of(std::process::id()), Family::of(child.id()));
        assert!(all.members.contains(&child.id()));
        assert!(own.nanoseconds().expect("schedstat") > 1_000_000);
        assert!(all.nanoseconds().expect("schedstat") > own.nanoseconds().expect("schedstat"));
        assert!(all.resident().expect("status") > own.resident().expect("status"));
        drop(child.stdin.take());
        child.wait().expect("cat ends with its input");
    }
}
