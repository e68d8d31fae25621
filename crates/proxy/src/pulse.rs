//! Whether a thread of traffic still turns: it leaves a mark whenever its event loop comes round.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread that leaves no mark for so long hangs. Nothing that a request does takes a fraction of that.
const SILENCE: Duration = Duration::from_secs(30);

/// The marks of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    started: Instant,
    /// Milliseconds from the start to the last mark.
    last: Arc<AtomicU64>,
}

impl Pulse {
    /// A thread that starts now.
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), last: Arc::default() }
    }

    /// The thread turns.
    pub(crate) fn beat(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    fn is_silent(&self, now: Instant) -> bool {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        now.saturating_duration_since(self.started).saturating_sub(last) > SILENCE
    }
}

/// A thread of traffic.
#[derive(Debug)]
pub(crate) struct Running {
    /// Its end.
    pub handle: JoinHandle<()>,
    /// Its marks.
    pub pulse: Pulse,
}

impl Running {
    /// Why the thread serves nobody.
    pub(crate) fn ailment(&self, now: Instant) -> Option<&'static str> {
        if self.handle.is_finished() {
            return Some("a thread of traffic has ended");
        }
        self.pulse.is_silent(now).then_some("a thread of traffic hangs")
    }
}

#[cfg(test)]
mod tests {
    use super::{Pulse, Running, SILENCE};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_thread_that_ends_or_falls_silent_ails() {
        let (end, ended) = mpsc::sync_channel::<()>(0);
        let handle = std::thread::spawn(move || {
            let _ = ended.recv();
        });
        let running = Running { handle, pulse: Pulse::new() };
        let later = Instant::now() + SILENCE + Duration::from_secs(1);
        assert_eq!(running.ailment(Instant::now()), None);
        assert_eq!(running.ailment(later), Some("a thread of traffic hangs"));
        let two = Duration::from_millis(2000);
        running.pulse.last.store(2000, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(running.ailment(later - two), None);
        drop(end);
        while !running.handle.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(running.ailment(Instant::now()), Some("a thread of traffic has ended"));
    }
}
