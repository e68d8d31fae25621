//! Leader election: the one replica that holds a Lease writes what all replicas share.
//!
//! Times are measured by the local clock alone, from when a request was sent (by the holder) and from when a change
//! was seen (by the others): the holder stops at three quarters of the time after which another may begin. What the
//! clocks of others say is written down for people and never compared.

mod contest;
mod view;

use crate::clock::Moment;
use crate::task::Task;
use contest::Contest;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a release may take; the others need no longer than the lease's time without it.
const FAREWELL: Duration = Duration::from_secs(5);

/// What to contend for, and as whom.
#[derive(Clone)]
pub struct ElectionOptions {
    /// A client of its own, so that nothing else that waits for the API server delays a renewal.
    pub client: Client,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease: `--election-id`.
    pub name: String,
    /// The name of this replica's Pod.
    pub identity: String,
    /// How long a holder that falls silent keeps the Lease: `--election-ttl`.
    pub ttl: Duration,
}

/// Who leads, as far as this replica knows.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// This replica does, until then.
    until: Option<Moment>,
    /// The holder of the Lease.
    leader: Option<Arc<str>>,
    /// This replica does, or did.
    has_led: bool,
}

/// Says whether this replica leads. Copies share what they know.
#[derive(Clone, Debug)]
pub struct Leadership {
    standing: watch::Receiver<Standing>,
    /// Every replica counts as leader: there is no election.
    always: bool,
}

impl Leadership {
    /// Nobody leads.
    pub fn never() -> Self {
        Self { standing: watch::Sender::default().subscribe(), always: false }
    }

    /// Each replica speaks for itself.
    pub fn always() -> Self {
        Self { always: true, ..Self::never() }
    }

    /// Whether this replica leads at this moment. Ask again right before each write: it ends with time, whatever else
    /// happens or does not.
    pub fn is_leader(&self) -> bool {
        self.remaining().is_some()
    }

    /// Whether it leads or ever did, though nobody asked meanwhile.
    pub fn has_led(&self) -> bool {
        self.always || self.standing.borrow().has_led
    }

    /// How long this replica leads without a further renewal; a write has to end by then. None if it does not lead.
    pub fn remaining(&self) -> Option<Duration> {
        if self.always {
            return Some(Duration::MAX);
        }
        let until = self.standing.borrow().until?;
        Some(Moment::now().until(until)).filter(|left| !left.is_zero())
    }

    /// The identity of the leader, as far as it is known.
    pub fn leader(&self) -> Option<Arc<str>> {
        self.standing.borrow().leader.clone()
    }

    /// Returns when something was heard of the Lease: won, renewed, lost, or another holder.
    pub async fn changed(&mut self) {
        if self.standing.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// This replica's part in an election.
#[derive(Debug)]
pub struct Election {
    leadership: Leadership,
    task: Task,
}

impl Election {
    /// Contends from now on. Must be called within a tokio runtime.
    pub fn start(options: ElectionOptions) -> Self {
        let (sender, standing) = watch::channel(Standing::default());
        let contest = Contest::new(options, sender);
        let task = Task::start(|stop| contest.run(stop));
        Self { leadership: Leadership { standing, always: false }, task }
    }

    /// Whether this replica leads.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Gives the Lease back, so that another replica need not wait for its end.
    pub async fn release(self) {
        if !self.task.end(FAREWELL).await {
            tracing::warn!("the Lease could not be given back; another replica waits for its end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Leadership, Moment, Standing};
    use std::time::Duration;
    use tokio::sync::watch;

    #[test]
    fn leadership_ends_with_its_time_though_nobody_says_so() {
        let (sender, standing) = watch::channel(Standing::default());
        let leadership = Leadership { standing, always: false };
        assert!(!leadership.is_leader());
        let until = Some(Moment::now() + Duration::from_secs(60));
        sender.send_replace(Standing { until, has_led: true, ..Standing::default() });
        assert!(leadership.remaining().is_some_and(|left| left > Duration::from_secs(50)));
        let until = Some(Moment::now());
        sender.send_replace(Standing { until, has_led: true, ..Standing::default() });
        assert!(!leadership.is_leader() && leadership.has_led(), "nobody asked while it led");
        assert!(!Leadership::never().has_led() && Leadership::always().has_led());
        assert!(Leadership::always().is_leader() && !Leadership::never().is_leader());
    }
}
