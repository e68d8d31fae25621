//! Instructions per request: Fairway under callgrind, which counts the same on a busy machine as on an idle one.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, ensure};

use crate::measure::Bench;
use crate::peers::{Peer, Running};
use crate::probe::Probe;
use crate::scenario::hosts;

/// Callgrind without its report: only the sum is of interest.
const WRAPPER: [&str; 3] = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
/// Requests that both runs make before the ones that are counted.
const FIRST: u64 = 100;

impl Bench {
    /// Instructions for each of `count` requests on one HTTP/1.1 connection.
    pub(crate) fn instructions(&mut self, count: u64) -> Result<u64> {
        ensure!(count > 0, "--requests must be at least 1");
        // What starting and ending cost cancels out.
        let few = self.counted(FIRST)?;
        let many = self.counted(FIRST + count)?;
        let difference = many.checked_sub(few).context("fewer instructions for more requests")?;
        Ok(difference / count)
    }

    fn counted(&mut self, requests: u64) -> Result<u64> {
        let running = self.start_wrapped(Peer::Fairway, 1, &WRAPPER)?;
        let host = hosts(1).concat();
        let (generator, stop) = (&mut self.generator, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let upstream = scope.spawn(|| generator.serve(&stop));
            let result = ask(&running, &host, requests);
            stop.store(true, Ordering::Relaxed);
            upstream.join().map_err(|_| anyhow!("the upstream panicked"))??;
            result
        })?;
        let words = running.finish()?;
        collected(&words).with_context(|| format!("valgrind tells no sum:\n{words}"))
    }
}

fn ask(running: &Running, host: &str, requests: u64) -> Result<()> {
    let mut probe = Probe::new(running.http);
    for _ in 0..requests {
        let status = probe.status(host, "/")?;
        ensure!(status == 200, "status {status} instead of 200");
    }
    Ok(())
}

/// The number after `Collected :` in callgrind's last words.
fn collected(words: &str) -> Option<u64> {
    let (_, after) = words.rsplit_once("Collected :")?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_read_from_the_last_words() {
        let words = "==7== \n==7== Events    : Ir\n==7== Collected : 153242\n==7== \n";
        assert_eq!(collected(words), Some(153_242));
        assert_eq!(collected("killed"), None);
    }
}
