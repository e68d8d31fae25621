//! Whether nginx still answers: it is asked again and again, as ingress-nginx's check of its health did.

use crate::push;
use crate::stub_status::PATH;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    care: Care,
}

impl Pulse {
    /// Asks on a socket of nginx from now on, as long as anybody wants to know.
    pub(crate) fn feel(socket: PathBuf, care: Care) -> Arc<Self> {
        let pulse = Arc::new(Self { began: Instant::now(), last: AtomicU64::new(0), care });
        let felt = Arc::downgrade(&pulse);
        tokio::spawn(async move {
            loop {
                #[expect(clippy::disallowed_methods, reason = "a pause between questions")]
                sleep(care.every).await;
                // One that hangs is asked for longer than that, and answers late if it goes on.
                let answered = push::get(&socket, PATH).await.is_ok();
                let Some(pulse) = felt.upgrade() else { return };
                if answered {
                    pulse.last.store(pulse.age().max(1), Ordering::Relaxed);
                }
            }
        });
        pulse
    }

    /// Whether nginx has answered once, and nothing any more for too long.
    pub(crate) fn is_silent(&self) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        last > 0 && Duration::from_millis(self.age().saturating_sub(last)) > self.care.silence
    }

    fn age(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
