//! Whether nginx still answers: it is asked again and again, as ingress-nginx's check of its health did.

use crate::push::{self, Control};
use crate::stub_status::PATH;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// When nginx is asked, and when its silence is an ailment.
#[derive(Clone, Copy, Debug)]
pub struct Care {
    /// The time from one question to the next.
    pub every: Duration,
    /// An nginx that answers nothing for so long serves nobody.
    pub silence: Duration,
}

impl Default for Care {
    fn default() -> Self {
        Self { every: Duration::from_secs(5), silence: Duration::from_secs(30) }
    }
}

/// What nginx has answered.
#[derive(Debug)]
pub(crate) struct Pulse {
    began: Instant,
    /// Milliseconds from the beginning to the last answer; 0 before the first one.
    last: AtomicU64,
    /// Whether it runs with anything that was asked for: one that waits for that answers, and serves nobody.
    serves: AtomicBool,
    /// It is meant to end: what it answers is of no interest any more.
    over: AtomicBool,
    care: Care,
}

impl Pulse {
    /// Asks on a socket of nginx from now on, as long as anybody wants to know.
    pub(crate) fn feel(socket: Control, care: Care) -> Arc<Self> {
        let [serves, over] = [false; 2].map(AtomicBool::new);
        let (began, last) = (Instant::now(), AtomicU64::new(0));
        let pulse = Arc::new(Self { began, last, serves, over, care });
        let felt = Arc::downgrade(&pulse);
        tokio::spawn(async move {
            let mut was_silent = false;
            loop {
                #[expect(clippy::disallowed_methods, reason = "a pause between questions")]
                sleep(care.every).await;
                // One that hangs is asked for longer than that, and answers late if it goes on.
                let answered = push::get(&socket, PATH).await.is_ok();
                let Some(pulse) = felt.upgrade().filter(|pulse| !pulse.is_over()) else { return };
                if answered && pulse.serves.load(Ordering::Relaxed) {
                    pulse.last.store(pulse.age().max(1), Ordering::Relaxed);
                }
                let is_silent = pulse.is_silent();
                if is_silent != std::mem::replace(&mut was_silent, is_silent) {
                    pulse.tell(is_silent);
                }
            }
        });
        pulse
    }

    /// nginx runs with something that was asked for from now on, or with nothing.
    pub(crate) fn serves(&self, serves: bool) {
        self.serves.store(serves, Ordering::Relaxed);
        if serves {
            // Its workers have taken over just now.
            self.last.store(self.age().max(1), Ordering::Relaxed);
        }
    }

    /// Whether nginx has answered once, and nothing any more for too long.
    pub(crate) fn is_silent(&self) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        last > 0 && Duration::from_millis(self.age().saturating_sub(last)) > self.care.silence
    }

    /// It is meant to end within this time; at once if it does not answer: such a one finishes nothing.
    pub(crate) fn end(&self, deadline: Duration) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        if self.is_silent() { Duration::ZERO } else { deadline }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn tell(&self, is_silent: bool) {
        if is_silent {
            let seconds = self.care.silence.as_secs();
            tracing::error!(
                "nginx has served nobody for {seconds} s: the probes fail until it does, so that the Pod starts anew"
            );
        } else {
            tracing::info!("nginx answers again");
        }
    }

    fn age(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
