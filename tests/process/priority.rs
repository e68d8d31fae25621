//! Who goes first where threads share a core.

use super::Running;
use std::collections::BTreeSet;
use std::fs;

/// The nice values of the threads of a process, by the beginnings of their names.
fn nice(process: u32, name: &str) -> BTreeSet<i32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let stats = threads.flatten().filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        let (before, after) = stat.rsplit_once(") ")?;
        let is_one = before.split_once('(')?.1.starts_with(name);
        // Field 19 of proc_pid_stat(5); the third is the first after the name.
        is_one.then(|| after.split(' ').nth(16)?.parse().ok())?
    });
    stats.collect()
}

#[test]
fn control_gives_way_to_traffic() {
    let running = Running::start("fairway", &["--worker-threads=1"]);
    let own = nice(std::process::id(), "");
    let own = *own.first().expect("this process has threads");
    let process = running.child.id();
    assert_eq!(nice(process, "traffic"), [own].into());
    assert_eq!(nice(process, "streams"), [own].into());
    assert_eq!(nice(process, "fairway").last(), Some(&(own + 5)));
    assert_eq!(nice(process, "tokio-rt-worker").last(), Some(&(own + 5)));
}
