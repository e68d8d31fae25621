//! Instructions per request: Fairway under callgrind, which counts the same on a busy machine as on an idle one.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::load::{Pace, Plan, Stage};
use crate::measure::Bench;
use crate::peers::{GUARDED, HEADERS, PLAIN, Peer, REWRITE, Running, SECURE, TWO_PATHS};
use crate::probe::Probe;
use crate::process::pause;
use crate::scenario::{SCENARIOS, Scenario, hosts};

/// Requests before the ones that are counted: they open connections and fill caches.
const FIRST: u64 = 100;

/// How long its work is watched at a time before anything is counted, and how long it may have some.
const LOOK: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);

/// A question of a lone client: its name, its host, its path and the status of its answer.
#[derive(Clone, Copy)]
struct Asked<'a>(&'static str, &'a str, &'static str, u16);

/// What a lone client asks beside the one host of `http1`: the second path of a host without snippets, the same of one
/// with a snippet elsewhere, which is to cost nothing more, locations with each snippet, and short answers.
const BESIDE: [Asked<'static>; 7] = [
    Asked("two-paths", TWO_PATHS, PLAIN, 200),
    Asked("beside-snippet", HEADERS.host, PLAIN, 200),
    Asked("snippet-headers", HEADERS.host, "/", 200),
    Asked("snippet-rewrite", REWRITE.host, "/old/path/", 200),
    Asked("guarded", GUARDED, "/", 200),
    Asked("redirect", SECURE, "/", 308),
    Asked("not-found", "nobody.bench.test", "/", 404),
];

/// How many hosts are known where many are, and the paths that each of them has.
const MANY: usize = 10_000;
const PATHS: [&str; 10] = ["/", "/a", "/b/c", PLAIN, "/e/f/g", "/h", "/i", "/j/k", "/l", "/m"];

/// What is asked by as many clients as where times are measured.
const LOADS: [&str; 5] = ["tls", "http2", "grpc", "upload-16k", "websocket"];

impl Bench {
    /// Instructions for each of about `count` requests of each traffic.
    pub(crate) fn instructions(&mut self, count: u64) -> Result<Vec<(&'static str, u64)>> {
        ensure!(count > 0, "--requests must be at least 1");
        let host = hosts(1).concat();
        let mut counted = self.counted((1, &["/"]), |bench, running| {
            let all = [Asked("http1", &host, "/", 200)].into_iter().chain(BESIDE);
            let mut requests = bench.asked(running, all, count)?;
            for name in LOADS {
                let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
                let scenario = scenario.with_context(|| format!("no scenario is called {name}"))?;
                eprintln!("counting {name}");
                requests.push((name, bench.loaded(running, scenario, count)?));
            }
            Ok(requests)
        })?;
        counted.extend(self.counted((MANY, &PATHS), |bench, running| {
            bench.asked(running, [Asked("many-hosts", &host, PLAIN, 200)], count)
        })?);
        Ok(counted)
    }

    /// Starts Fairway with so many hosts that have these paths, and tells what callgrind counted for each request of
    /// what `ask` asked, by the number of its requests.
    fn counted(
        &mut self,
        served: (usize, &[&str]),
        ask: impl FnOnce(&mut Self, &Running) -> Result<Vec<(&'static str, u64)>>,
    ) -> Result<Vec<(&'static str, u64)>> {
        let report = self.folder.join(format!("callgrind-{}.out", served.0));
        let file = format!("--callgrind-out-file={}", report.display());
        // Nothing is counted before it serves: ten thousand hosts take minutes to read while each instruction is.
        let wrapper = ["valgrind", "--tool=callgrind", "--instr-atstart=no", file.as_str()];
        let running = self.start_wrapped(Peer::Fairway, served, &wrapper)?;
        settle(&running)?;
        control("--instr=on", running.id())?;
        let requests = ask(self, &running)?;
        running.finish()?;
        // A report with a number is that of a dump, the one without that of the end.
        let counted = requests.into_iter().zip(1..).map(|((name, count), number)| {
            let text = fs::read_to_string(report.with_extension(format!("out.{number}")));
            let text = text.context("valgrind wrote no report")?;
            Ok((name, collected(&text).context("valgrind's report tells no sum")? / count))
        });
        counted.collect()
    }

    /// Counts requests of a lone client, nearly all of them on one connection.
    fn asked<'a>(
        &mut self,
        running: &Running,
        all: impl IntoIterator<Item = Asked<'a>>,
        count: u64,
    ) -> Result<Vec<(&'static str, u64)>> {
        let (generator, stop) = (&mut self.generator, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let upstream = scope.spawn(|| generator.serve(&stop));
            let counted = all.into_iter().map(|asked| {
                count_between(running, asked, count)?;
                Ok((asked.0, count))
            });
            let result = counted.collect();
            stop.store(true, Ordering::Relaxed);
            upstream.join().map_err(|_| anyhow!("the upstream panicked"))??;
            result
        })
    }

    /// Counts a scenario of many clients: at least `least` requests, and how many there were.
    fn loaded(&mut self, running: &Running, scenario: &Scenario, least: u64) -> Result<u64> {
        let plan = scenario.plan(running, &self.certificate, Pace::Closed, Duration::ZERO)?;
        let plan = Plan { answers: least, ..plan };
        let mut sample = |stage| match stage {
            Stage::Start => Ok(()),
            Stage::Begin => control("--zero", running.id()),
            Stage::End => control("--dump", running.id()),
        };
        let outcome = self.generator.run(&plan, &mut sample)?;
        let failed = outcome.first_error.unwrap_or_default();
        ensure!(outcome.errors == 0 && outcome.requests > 0, "{}: {failed}", scenario.name);
        Ok(outcome.requests)
    }
}

/// Waits until it has nothing more to do with what it read: that would be counted with the requests.
fn settle(running: &Running) -> Result<()> {
    let (family, begin) = (running.family(), Instant::now());
    loop {
        let before = family.nanoseconds()?;
        pause(LOOK);
        let used = Duration::from_nanos(family.nanoseconds()?.saturating_sub(before));
        if used < LOOK / 10 {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "it is still busy after {PATIENCE:?}");
    }
}

/// Lets callgrind count these requests and nothing else: what starting costs varies by more than a request does, since
/// keys are made of random numbers.
fn count_between(running: &Running, asked: Asked<'_>, count: u64) -> Result<()> {
    let mut probe = Probe::new(running.http);
    ask(&mut probe, asked, FIRST)?;
    control("--zero", running.id())?;
    ask(&mut probe, asked, count)?;
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

fn ask(probe: &mut Probe, Asked(_, host, path, wanted): Asked<'_>, count: u64) -> Result<()> {
    for _ in 0..count {
        let status = probe.status(host, path)?;
        ensure!(status == wanted, "status {status} instead of {wanted} ({host}{path})");
    }
    Ok(())
}

/// What was counted before, by traffic.
const REACHED: &str = include_str!("../instructions.csv");

/// Fails where more was counted of the released build than before, by more than one in a hundred, which two runs may
/// differ by.
pub(crate) fn ensure_no_more(counted: &[(&str, u64)]) -> Result<()> {
    let above = above(REACHED, counted)?;
    ensure!(above.is_empty(), "more than crates/bench/instructions.csv says: {}", above.join(", "));
    Ok(())
}

fn above(reached: &str, counted: &[(&str, u64)]) -> Result<Vec<String>> {
    let mut above = Vec::new();
    for line in reached.lines().filter(|line| !line.starts_with('#')) {
        let (name, most) = line.split_once(',').with_context(|| format!("{line}: no number"))?;
        let most: u64 = most.parse().with_context(|| format!("{line}: no number"))?;
        let found = counted.iter().find(|(counted, _)| *counted == name);
        let (_, count) = found.with_context(|| format!("nothing is called {name}"))?;
        if *count > most + most / 100 {
            above.push(format!("{name} {count} in place of {most}"));
        }
    }
    Ok(above)
}

/// The number after `summary:` in a report.
fn collected(report: &str) -> Option<u64> {
    report.lines().find_map(|line| line.strip_prefix("summary:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_one_in_a_hundred_above_its_line_is_told() {
        let counted = [("http1", 10_100), ("tls", 1), ("grpc", 10_101)];
        let above = |reached| above(reached, &counted).map_err(|error| error.to_string());
        assert_eq!(above("# words\nhttp1,10000\n"), Ok(Vec::new()));
        let told = vec!["grpc 10101 in place of 10000".to_owned()];
        assert_eq!(above("http1,10000\ngrpc,10000\n"), Ok(told));
        assert!(above("http3,1\n").is_err() && above("http1\n").is_err());
        assert!(super::above(REACHED, &[]).is_err(), "each line names what is counted");
    }

    #[test]
    fn the_sum_is_read_from_a_report() {
        let report = "version: 1\npositions: line\nevents: Ir\nsummary: 153242\n\nfn=(1) main\n";
        assert_eq!(collected(report), Some(153_242));
        assert_eq!(collected("version: 1\n"), None);
    }
}
