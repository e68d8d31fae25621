//! What the log tells of refused Ingresses. Anybody may ask for a review of whatever he likes, in any namespace that he
//! makes up: lines and their length have bounds. Whoever asked is told all of it.

use crate::clock::Moment;
use crate::lines::{Shares, cut};
use parking_lot::Mutex;

/// Lines about all namespaces in a span, since each that is made up has its own share.
const LINES: usize = 600;
/// Bytes of a reason that are told, and of the name of a namespace.
const REASON: usize = 2 << 10;
const NAMESPACE: usize = 63;
const NAME: usize = 253;

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    shares: Shares,
    /// Lines that were told in this span.
    lines: usize,
    /// Refusals since the last line.
    before: usize,
}

impl Refusals {
    /// Tells why an Ingress of a namespace was refused, if there may be one more line.
    pub(super) fn tell(&self, namespace: &str, name: &str, reason: &str) {
        let (namespace, reason) = (cut(namespace, NAMESPACE), cut(reason, REASON));
        let name = cut(name, NAME);
        let mut told = self.told.lock();
        if let Some(before) = told.take(namespace, Moment::now()) {
            drop(told);
            let not_told_before = (before > 0).then_some(before);
            tracing::info!(namespace, name, not_told_before, reason, "an Ingress was refused");
        }
    }
}

impl Told {
    /// How many were not told before, if there may be one more line about a namespace.
    fn take(&mut self, namespace: &str, now: Moment) -> Option<usize> {
        if self.shares.renew(now).is_some() {
            self.lines = 0;
        }
        if self.lines < LINES && self.shares.take(namespace.into()) {
            self.lines += 1;
            return Some(std::mem::take(&mut self.before));
        }
        self.before += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES, Told};
    use crate::clock::Moment;
    use crate::lines::{LINES as OF_ONE, SPAN};

    #[test]
    fn who_sends_refused_ingresses_in_a_loop_has_a_minute_s_share_of_the_log_under_any_name() {
        let (mut told, start) = (Told::default(), Moment::now());
        let lines = (0..1000).filter(|_| told.take("one", start).is_some());
        assert_eq!(lines.count(), OF_ONE);
        assert_eq!(told.take("other", start), Some(1000 - OF_ONE), "others have theirs");
        let made_up = (0..1000).filter(|n| told.take(&format!("made-up-{n}"), start).is_some());
        assert_eq!(made_up.count(), LINES - OF_ONE - 1);
        assert_eq!(told.take("one", start + SPAN), Some(1000 - (LINES - OF_ONE - 1)));
    }
}
