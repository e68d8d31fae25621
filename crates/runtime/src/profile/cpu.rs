//! Where the processor's time goes: the stacks of the threads that run, a hundred times in a second of it.

use super::format::{Builder, Place};
use pprof::{Frames, ProfilerGuardBuilder, Symbol};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{Semaphore, oneshot};

/// Samples in a second of processor time: Go's number. An odd one would not beat in time with timers, but this is what
/// tools expect.
const FREQUENCY: i32 = 100;
/// Code that a stack cannot be taken in.
const SKIPPED: [&str; 3] = ["libgcc", "ld-linux", "vdso"];

/// The timer and its signal are there once in a process.
static TURN: Semaphore = Semaphore::const_new(1);

/// There is no profile.
#[derive(Debug, Error)]
#[error("cannot take a profile: {0}")]
pub(super) struct NoProfile(String);

/// Records for some time. Nothing is measured, and nothing costs anything, before and after it.
pub(super) async fn record(time: Duration) -> Result<Vec<u8>, NoProfile> {
    let busy = |_| NoProfile("another one is being taken; try again when it has ended".to_owned());
    let turn = TURN.try_acquire().map_err(busy)?;
    let (wanted, over) = mpsc::sync_channel::<()>(0);
    let (done, profile) = oneshot::channel();
    // A thread that ends with it gives back what it took: a profile is a hundred megabytes while it is made.
    let take = move || {
        let taken = take(time, &over);
        drop(turn);
        drop(done.send(taken));
    };
    let thread = std::thread::Builder::new().name("profile".to_owned()).spawn(take);
    thread.map_err(|error| NoProfile(error.to_string()))?;
    let taken = profile.await.map_err(|error| NoProfile(error.to_string()));
    drop(wanted);
    taken?
}

/// Records until the time is over, or nobody waits for it any more.
fn take(time: Duration, over: &Receiver<()>) -> Result<Vec<u8>, NoProfile> {
    let wrong = |error: pprof::Error| NoProfile(error.to_string());
    let start = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&SKIPPED);
    let guard = start.build().map_err(wrong)?;
    if over.recv_timeout(time) != Err(RecvTimeoutError::Timeout) {
        return Err(NoProfile("nobody waits for it".to_owned()));
    }
    let report = guard.report().build_unresolved();
    // Names are looked up once the timer is off; what was read for it is as large as the program.
    drop(guard);
    let profile = report.map(encode).map_err(wrong);
    backtrace::clear_symbol_cache();
    profile
}

fn encode(report: pprof::UnresolvedReport) -> Vec<u8> {
    let period = 1_000_000_000 / i64::from(FREQUENCY);
    let duration = i64::try_from(report.timing.duration.as_nanos()).unwrap_or(i64::MAX);
    let types = [("samples", "count"), ("cpu", "nanoseconds")];
    let mut builder = Builder::new(&types, report.timing.start_time);
    builder.period("cpu", "nanoseconds", period, duration);
    for (stack, count) in report.data {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let frames = Frames::from(stack);
        let thread = frames.thread_name_or_id();
        let stack = frames.frames.iter().map(|frame| frame.iter().map(place).collect());
        let value = vec![count, count.saturating_mul(period)];
        builder.sample(stack.collect(), value, ("thread", &thread));
    }
    builder.encode()
}

fn place(symbol: &Symbol) -> Place {
    Place { function: symbol.name(), file: symbol.filename().into_owned(), line: symbol.lineno() }
}

#[cfg(test)]
mod tests {
    use super::super::format::Profile;
    use super::record;
    use prost::Message;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    /// One profile is taken at a time, so tests take theirs in turn.
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    #[inline(never)]
    fn busy_with_sums(stop: &AtomicBool) -> u64 {
        let total = AtomicU64::new(0);
        while !stop.load(Ordering::Relaxed) {
            total.fetch_add(1, Ordering::Relaxed);
        }
        total.into_inner()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_busy_function_is_seen_and_a_second_profile_is_refused_meanwhile() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let _turn = TURN.lock().await;
        let busy = std::thread::Builder::new().name("busy".to_owned());
        let busy = busy.spawn(|| busy_with_sums(&STOP)).expect("a thread starts");
        // The first one has its turn at once; the second one asks while it has it.
        let second = record(Duration::from_secs(1));
        let (first, second) = tokio::join!(biased; record(Duration::from_secs(1)), second);
        STOP.store(true, Ordering::Relaxed);
        busy.join().expect("it ends");
        assert!(
            second.is_err_and(|error| error.to_string().contains("another one is being taken"))
        );
        let profile = Profile::decode(first.expect("a profile").as_slice()).expect("it is one");
        let known = |text: &str| profile.string_table.iter().any(|known| known.contains(text));
        assert!(
            known("busy_with_sums") && known("cpu.rs") && known("busy"),
            "{:?}",
            profile.string_table
        );
        let samples: i64 = profile.sample.iter().map(|sample| sample.value[0]).sum();
        assert!(samples > 5, "{samples}");
    }

    #[tokio::test]
    async fn who_goes_away_ends_the_profile() {
        let _turn = TURN.lock().await;
        let asked = record(Duration::from_secs(120));
        let asked = tokio::time::timeout(Duration::from_secs(10), asked);
        assert!(asked.await.is_err(), "it takes longer");
        let next = async {
            while record(Duration::from_millis(10)).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), next).await.expect("the first one has ended");
    }
}
