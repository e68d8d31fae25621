//! Threads: whether the system has some, and the spare one of an event loop, for work which would hold it up (files,
//! passwords). tokio makes such threads when they are needed, ends them after a while, and panics where there is none
//! and the system gives none (a limit of processes). With one that is there, work waits for it instead.

use parking_lot::Mutex;
use rustix::process::Pid;
use rustix::thread::gettid;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::LocalRuntime;
use tokio::task::spawn_blocking;

/// Often enough that it does not end: tokio ends it after 10 s without work.
const BEAT: Duration = Duration::from_secs(4);
/// More than the system needs to forget a thread.
const GONE: Duration = Duration::from_secs(1);

/// Fails where the system has not so many further threads: an event loop that starts its own ones panics then.
///
/// # Errors
///
/// What the system says about the first one that it does not give.
pub fn ask_for(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    let asked = thread::scope(|scope| {
        let closed = gate.lock();
        let wait = || {
            drop(gate.lock());
            gettid()
        };
        let started: Vec<_> =
            (0..count).map(|_| thread::Builder::new().spawn_scoped(scope, wait)).collect();
        drop(closed);
        let ended = started.into_iter().map(|thread| Ok(thread?.join().ok()));
        ended.collect::<io::Result<Vec<_>>>()
    })?;
    for thread in asked.into_iter().flatten() {
        until_gone(thread);
    }
    Ok(())
}

/// A thread that was waited for may count a moment longer, and would stand in the way of those that it was asked for.
fn until_gone(thread: Pid) {
    let place = format!("/proc/self/task/{thread}");
    let began = Instant::now();
    while Path::new(&place).exists() && began.elapsed() < GONE {
        thread::yield_now();
    }
}

/// Gets the spare thread of this event loop.
///
/// # Errors
///
/// The system has none.
pub async fn spare() -> io::Result<()> {
    ask_for(1)?;
    spawn_blocking(|| ()).await.map_err(io::Error::other)
}

/// Starts a thread with an event loop that has a spare one. Returns once both are there.
///
/// # Errors
///
/// The system has not so many.
pub fn with_loop(
    name: &str,
    build: impl FnOnce() -> io::Result<LocalRuntime> + Send + 'static,
    run: impl FnOnce(&LocalRuntime) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (tell, told) = mpsc::sync_channel::<io::Result<()>>(1);
    let start = move || {
        let event_loop = build()?;
        event_loop.block_on(spare())?;
        event_loop.spawn_local(keep_spare());
        Ok(event_loop)
    };
    let handle = thread::Builder::new().name(name.to_owned()).spawn(move || match start() {
        Ok(event_loop) => {
            let _ = tell.send(Ok(()));
            run(&event_loop);
        }
        Err(error) => drop(tell.send(Err(error))),
    })?;
    told.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
    Ok(handle)
}

/// Keeps it, as long as this runs.
pub async fn keep_spare() {
    keep(BEAT).await;
}

async fn keep(beat: Duration) {
    loop {
        #[expect(
            clippy::disallowed_methods,
            reason = "the time between two pieces of work is the matter"
        )]
        tokio::time::sleep(beat).await;
        if spawn_blocking(|| ()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{keep, spare};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    /// After this time without work a thread ends.
    const ALIVE: Duration = Duration::from_secs(1);

    /// Threads that were made for work at two times, if something else is done in between.
    fn made(between: impl AsyncFnOnce()) -> usize {
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let runtime = Builder::new_current_thread()
            .enable_time()
            .thread_keep_alive(ALIVE)
            .on_thread_start(move || {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .build();
        runtime.expect("it starts").block_on(async {
            spare().await.expect("there is one");
            between().await;
            spare().await.expect("there is one");
        });
        made.load(Ordering::Relaxed)
    }

    #[test]
    fn a_thread_that_is_kept_does_not_end() {
        let never = std::future::pending::<()>;
        let idle = made(async || drop(timeout(3 * ALIVE, never()).await));
        assert_eq!(idle, 2, "it ends where nobody keeps it");
        let kept = made(async || drop(timeout(3 * ALIVE, keep(ALIVE / 10)).await));
        assert_eq!(kept, 1);
    }
}
