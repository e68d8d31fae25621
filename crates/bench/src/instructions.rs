//! Instructions per request: Fairway under callgrind, which counts the same on a busy machine as on an idle one.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, ensure};

use crate::measure::Bench;
use crate::peers::{Peer, Running};
use crate::probe::Probe;
use crate::scenario::hosts;

/// Requests before the ones that are counted: they open connections and fill caches.
const FIRST: u64 = 100;

impl Bench {
    /// Instructions for each of `count` requests, nearly all of them on one HTTP/1.1 connection.
    pub(crate) fn instructions(&mut self, count: u64) -> Result<u64> {
        ensure!(count > 0, "--requests must be at least 1");
        let report = self.folder.join("callgrind.out");
        let file = format!("--callgrind-out-file={}", report.display());
        let wrapper = ["valgrind", "--tool=callgrind", file.as_str()];
        let running = self.start_wrapped(Peer::Fairway, 1, &wrapper)?;
        let host = hosts(1).concat();
        let (generator, stop) = (&mut self.generator, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let upstream = scope.spawn(|| generator.serve(&stop));
            let result = count_between(&running, &host, count);
            stop.store(true, Ordering::Relaxed);
            upstream.join().map_err(|_| anyhow!("the upstream panicked"))??;
            result
        })?;
        running.finish()?;
        // The first report is that of the dump, the one without a number that of the end.
        let text = fs::read_to_string(report.with_extension("out.1"));
        let text = text.context("valgrind wrote no report")?;
        Ok(collected(&text).context("valgrind's report tells no sum")? / count)
    }
}

/// Lets callgrind count these requests and nothing else: what starting costs varies by more than a request does, since
/// keys are made of random numbers.
fn count_between(running: &Running, host: &str, count: u64) -> Result<()> {
    let mut probe = Probe::new(running.http);
    ask(&mut probe, host, FIRST)?;
    control("--zero", running.id())?;
    ask(&mut probe, host, count)?;
    control("--dump", running.id())
}

/// Tells callgrind what to do, and waits until it has done it.
fn control(order: &str, process: u32) -> Result<()> {
    let status = Command::new("callgrind_control")
        .args([order, &process.to_string()])
        .stdout(Stdio::null())
        .status();
    let status = status.context("start callgrind_control: it is part of Debian's valgrind")?;
    ensure!(status.success(), "callgrind_control {order} ended with {status}");
    Ok(())
}

fn ask(probe: &mut Probe, host: &str, count: u64) -> Result<()> {
    for _ in 0..count {
        let status = probe.status(host, "/")?;
        ensure!(status == 200, "status {status} instead of 200");
    }
    Ok(())
}

/// The number after `summary:` in a report.
fn collected(report: &str) -> Option<u64> {
    report.lines().find_map(|line| line.strip_prefix("summary:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_read_from_a_report() {
        let report = "version: 1\npositions: line\nevents: Ir\nsummary: 153242\n\nfn=(1) main\n";
        assert_eq!(collected(report), Some(153_242));
        assert_eq!(collected("version: 1\n"), None);
    }
}
