//! How long an upstream may take nothing of a request that is being sent (`proxy_send_timeout` of nginx).

use crate::TryError;
use std::task::{Context, Poll};
use std::time::Duration;
use wire::Timer;

/// How much an upstream has taken.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Bytes.
    gone: u64,
    /// What it had taken when the deadline was set.
    due: Option<u64>,
}

impl Sent {
    /// It took so many bytes more.
    pub(super) fn took(&mut self, bytes: usize) {
        self.gone += bytes as u64;
    }

    /// Ready when nothing is taken for longer than `limit`. Where nothing `waits` to be taken, the time-outs of whoever
    /// brings the body govern.
    pub(super) fn poll_late(
        &mut self,
        waits: bool,
        timer: &Timer,
        limit: Duration,
        cx: &mut Context<'_>,
    ) -> Poll<TryError> {
        if !waits {
            self.due = None;
            return Poll::Pending;
        }
        if self.due != Some(self.gone) {
            self.due = Some(self.gone);
            timer.reset(limit);
        }
        timer.poll(cx).map(|_| TryError::Timeout("sending the request"))
    }
}
