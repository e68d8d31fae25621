//! What ten people cost who look at the page: the processor time of Fairway while nobody does, and while they do.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::measure::Bench;
use crate::peers::Peer;
use crate::probe::Probe;
use crate::process::pause;
use crate::scenario::hosts;

/// What is wanted at most, in percent of one processor.
const WANTED: f64 = 1.0;
/// How long each half is measured.
const SPAN: Duration = Duration::from_secs(30);
/// Until all of them have their first view.
const SETTLING: Duration = Duration::from_secs(6);
/// What they look at: as the page asks for it when a view is open, a list of as many rows as are in sight.
const VIEWS: [&str; 5] = [
    "/api/v1/overview",
    "/api/v1/routes?sort=host&offset=0&limit=57",
    "/api/v1/routes?sort=errors&offset=0&limit=57",
    "/api/v1/problems?offset=0&limit=100",
    "/api/v1/route?host={host}&path=%2F&kind=Prefix",
];

impl Bench {
    /// Measures with `viewers` people and `count` hosts, each of which has been asked for.
    pub(crate) fn viewers(&mut self, viewers: usize, count: usize) -> Result<()> {
        ensure!(viewers > 0 && count > 0, "--viewers and --hosts must be at least 1");
        self.flags.push("--enable-metrics=true".to_owned());
        let running = self.start_one(Peer::Fairway, count)?;
        let (generator, stop) = (&mut self.generator, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let upstream = scope.spawn(|| generator.serve(&stop));
            let mut probe = Probe::new(running.http);
            let asked = hosts(count).iter().try_for_each(|host| {
                let status = probe.status(host, "/")?;
                ensure!(status == 200, "status {status} instead of 200");
                Ok(())
            });
            stop.store(true, Ordering::Relaxed);
            upstream.join().map_err(|_| anyhow::anyhow!("the upstream panicked"))??;
            asked
        })?;
        let idle = busy(running.id(), SPAN)?;
        let (over, views) = (AtomicBool::new(false), AtomicU64::new(0));
        let looked = std::thread::scope(|scope| {
            let first = hosts(1).concat();
            for number in 0..viewers {
                let path = VIEWS[number % VIEWS.len()].replace("{host}", &first);
                let (over, views, address) = (&over, &views, running.health);
                scope.spawn(move || look(address, &path, over, views));
            }
            pause(SETTLING);
            let (before, busy) = (views.load(Ordering::Relaxed), busy(running.id(), SPAN));
            let made = views.load(Ordering::Relaxed) - before;
            over.store(true, Ordering::Relaxed);
            busy.map(|busy| (busy, made))
        });
        let (busy, made) = looked?;
        ensure!(made >= viewers as u64 * 4, "only {made} views were shown: they were refused");
        let cost = (busy - idle) * 100.0;
        println!(
            "{viewers} viewers of {count} routes: {cost:.2} % of one processor ({:.2} % with nobody, {:.2} % with them, {made} \
             views in {} s); wanted: at most {WANTED} %",
            idle * 100.0,
            busy * 100.0,
            SPAN.as_secs()
        );
        ensure!(cost <= WANTED, "more than {WANTED} %");
        Ok(())
    }
}

/// The share of one processor that a process takes, with its threads that end meanwhile: those that make answers come
/// and go.
fn busy(process: u32, span: Duration) -> Result<f64> {
    let (before, began) = (hundredths(process)?, Instant::now());
    pause(span);
    let used = hundredths(process)?.saturating_sub(before);
    Ok(used as f64 / 100.0 / began.elapsed().as_secs_f64())
}

/// Processor time of a process in hundredths of a second, its own and the system's for it.
fn hundredths(process: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).context("read stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // Behind the name: the state, and nine more before utime and stime.
    let times: Vec<u64> = fields.skip(11).take(2).filter_map(|time| time.parse().ok()).collect();
    ensure!(times.len() == 2, "stat without times");
    Ok(times.iter().sum())
}

/// One page: it follows the events, and asks for its view after each of them.
fn look(address: SocketAddr, path: &str, over: &AtomicBool, views: &AtomicU64) -> Result<()> {
    let mut events = TcpStream::connect(address).context("connect to the admin port")?;
    events.set_read_timeout(Some(Duration::from_secs(1))).context("set a time limit")?;
    events.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").context("ask")?;
    let (mut reader, mut line) = (BufReader::new(events), String::new());
    let mut probe = Probe::new(address);
    while !over.load(Ordering::Relaxed) {
        match reader.read_line(&mut line) {
            Ok(0) => return Ok(()),
            Ok(_) if line.starts_with("event: ") => {
                if probe.status("localhost", path)? == 200 {
                    views.fetch_add(1, Ordering::Relaxed);
                }
                line.clear();
            }
            Ok(_) => line.clear(),
            // Nothing came; what there is of a line stays.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("read events"),
        }
    }
    Ok(())
}
