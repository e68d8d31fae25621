//! Instructions per request: Fairway under callgrind, which counts the same on a busy machine as on an idle one.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, ensure};

use crate::measure::Bench;
use crate::peers::{HEADERS, PLAIN, Peer, REWRITE, Running, TWO_PATHS};
use crate::probe::Probe;
use crate::scenario::hosts;

/// Requests before the ones that are counted: they open connections and fill caches.
const FIRST: u64 = 100;

/// A traffic that is counted: its name, its host and its path.
type Asked = (&'static str, &'static str, &'static str);

/// What is counted beside the one host of `http1`: the second path of a host without snippets, the same of one with a
/// snippet elsewhere, which is to cost nothing more, and locations with each snippet.
const BESIDE: [Asked; 4] = [
    ("two-paths", TWO_PATHS, PLAIN),
    ("beside-snippet", HEADERS.host, PLAIN),
    ("snippet-headers", HEADERS.host, "/"),
    ("snippet-rewrite", REWRITE.host, "/old/path/"),
];

impl Bench {
    /// Instructions for each of `count` requests of each traffic, nearly all of them on one HTTP/1.1 connection.
    pub(crate) fn instructions(&mut self, count: u64) -> Result<Vec<(&'static str, u64)>> {
        ensure!(count > 0, "--requests must be at least 1");
        let report = self.folder.join("callgrind.out");
        let file = format!("--callgrind-out-file={}", report.display());
        let wrapper = ["valgrind", "--tool=callgrind", file.as_str()];
        let running = self.start_wrapped(Peer::Fairway, 1, &wrapper)?;
        let host = hosts(1).concat();
        let all = [("http1", host.as_str(), "/")].into_iter().chain(BESIDE);
        let (generator, stop) = (&mut self.generator, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let upstream = scope.spawn(|| generator.serve(&stop));
            let mut counting = all.clone();
            let result = counting.try_for_each(|asked| count_between(&running, asked, count));
            stop.store(true, Ordering::Relaxed);
            upstream.join().map_err(|_| anyhow!("the upstream panicked"))??;
            result
        })?;
        running.finish()?;
        // A report with a number is that of a dump, the one without that of the end.
        let counted = all.zip(1..).map(|((name, ..), number)| {
            let text = fs::read_to_string(report.with_extension(format!("out.{number}")));
            let text = text.context("valgrind wrote no report")?;
            Ok((name, collected(&text).context("valgrind's report tells no sum")? / count))
        });
        counted.collect()
    }
}

/// Lets callgrind count these requests and nothing else: what starting costs varies by more than a request does, since
/// keys are made of random numbers.
fn count_between(running: &Running, (_, host, path): (&str, &str, &str), count: u64) -> Result<()> {
    let mut probe = Probe::new(running.http);
    ask(&mut probe, (host, path), FIRST)?;
    control("--zero", running.id())?;
    ask(&mut probe, (host, path), count)?;
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

fn ask(probe: &mut Probe, (host, path): (&str, &str), count: u64) -> Result<()> {
    for _ in 0..count {
        let status = probe.status(host, path)?;
        ensure!(status == 200, "status {status} instead of 200 ({host}{path})");
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
