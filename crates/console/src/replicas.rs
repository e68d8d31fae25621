//! The replicas side by side: asked for while somebody looks at the overview, and never waited for long.

use crate::query::shown;
use parking_lot::Mutex;
use serde::Serialize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Replicas that are told.
const MOST: usize = 50;
/// What is younger is not asked for again.
const FRESH: Duration = Duration::from_secs(4);
/// How long an answer waits for the first ones.
const PATIENCE: Duration = Duration::from_millis(500);

/// A replica, as the API server and its own page of metrics tell.
#[derive(Clone, Debug)]
pub struct Replica {
    /// The name of its Pod.
    pub pod: String,
    /// The node that it is on.
    pub node: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// When its Pod was started.
    pub since: Option<f64>,
    /// Whether it leads; none where there is no election, or nobody knows.
    pub leads: Option<bool>,
    /// What it says of itself, or why it could not be asked.
    pub says: Result<Says, String>,
}

/// What a replica says of itself.
#[derive(Clone, Debug, Default)]
pub struct Says {
    /// Its version.
    pub version: Option<String>,
    /// Requests since its start, where it counts them.
    pub requests: Option<u64>,
    /// Connections of clients, where it counts them.
    pub connections: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// A number that is the same in all replicas that serve the same.
    pub configuration: Option<String>,
}

/// All replicas, this one among them; or why they are not known.
pub type Replicas = Result<Vec<Replica>, String>;

/// Asks for them.
pub type AskReplicas =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Replicas> + Send>> + Send + Sync>;

/// What is known of them.
#[derive(Default)]
pub(crate) struct Kept {
    last: Mutex<Option<Look>>,
    asking: AtomicBool,
}

#[derive(Clone)]
struct Look {
    at: Instant,
    replicas: Arc<Replicas>,
    /// Requests a second since the look before, in the order of the replicas.
    rates: Arc<Vec<Option<f64>>>,
}

/// A replica beside the others.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Row {
    /// The name of its Pod.
    pub(crate) pod: String,
    /// The node that it is on.
    pub(crate) node: Option<String>,
    /// Whether its Pod is ready.
    pub(crate) ready: bool,
    /// Since when its Pod runs.
    pub(crate) since: Option<f64>,
    /// Whether it leads; none where there is no election.
    pub(crate) leads: Option<bool>,
    /// Whether it is the one that answers here.
    pub(crate) here: bool,
    /// Its version.
    pub(crate) version: Option<String>,
    /// Whether it serves the same configuration as the one that answers here.
    pub(crate) same: Option<bool>,
    /// Requests a second; none before a second look.
    pub(crate) rate: Option<f64>,
    /// Connections of clients.
    pub(crate) connections: Option<u64>,
    /// Bytes of memory.
    pub(crate) memory: Option<u64>,
    /// Why it could not be asked about itself.
    pub(crate) unreached: Option<String>,
}

/// All of them.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Beside {
    /// By name.
    pub(crate) rows: Vec<Row>,
    /// How many more there are.
    pub(crate) more: usize,
    /// Why nothing is known of them: outside of a cluster nobody can be asked.
    pub(crate) unknown: Option<String>,
}

impl Kept {
    /// What is known, newer if it can be had soon.
    pub(crate) async fn look(self: &Arc<Self>, ask: &Arc<AskReplicas>, own: &str) -> Beside {
        let is_fresh = |look: &Look| look.at.elapsed() < FRESH;
        if !self.last.lock().as_ref().is_some_and(is_fresh)
            && !self.asking.swap(true, Ordering::AcqRel)
        {
            let (kept, ask) = (self.clone(), ask.clone());
            let asked = tokio::spawn(async move {
                let replicas = ask().await;
                kept.note(replicas);
                kept.asking.store(false, Ordering::Release);
            });
            let _ = tokio::time::timeout(PATIENCE, asked).await;
        }
        let last = self.last.lock().clone();
        last.map(|look| look.rows(own)).unwrap_or_default()
    }

    fn note(&self, replicas: Replicas) {
        let mut last = self.last.lock();
        let now = Instant::now();
        let rates = rates(last.as_ref(), &replicas, now);
        *last = Some(Look { at: now, replicas: Arc::new(replicas), rates: Arc::new(rates) });
    }

    pub(crate) fn forget(&self) {
        *self.last.lock() = None;
    }
}

fn rates(before: Option<&Look>, now: &Replicas, at: Instant) -> Vec<Option<f64>> {
    let each = now.as_ref().map(Vec::as_slice).unwrap_or_default().iter();
    let rate = |replica: &Replica| {
        let before = before?;
        let all = before.replicas.as_ref().as_ref().ok()?;
        let requests = |replica: &Replica| replica.says.as_ref().ok()?.requests;
        let old = requests(all.iter().find(|old| old.pod == replica.pod)?)?;
        let new = requests(replica)?.checked_sub(old)?;
        Some(new as f64 / at.duration_since(before.at).as_secs_f64().max(0.001))
    };
    each.map(rate).collect()
}

impl Look {
    fn rows(&self, own: &str) -> Beside {
        let all = match self.replicas.as_ref() {
            Ok(all) => all,
            Err(why) => return Beside { unknown: Some(shown(why)), ..Beside::default() },
        };
        let of = |replica: &Replica| replica.says.as_ref().ok()?.configuration.clone();
        let here = all.iter().find(|replica| replica.pod == own).and_then(of);
        let rows = all.iter().zip(self.rates.iter()).take(MOST).map(|(replica, rate)| {
            let Replica { pod, node, ready, since, leads, says } = replica;
            let (says, unreached) = match says {
                Ok(says) => (says.clone(), None),
                Err(why) => (Says::default(), Some(shown(why))),
            };
            Row {
                pod: shown(pod),
                node: node.as_ref().map(shown),
                ready: *ready,
                since: *since,
                leads: *leads,
                here: pod == own,
                version: says.version.as_ref().map(shown),
                same: here.as_ref().zip(says.configuration.as_ref()).map(|(a, b)| a == b),
                rate: *rate,
                connections: says.connections,
                memory: says.memory,
                unreached,
            }
        });
        Beside { rows: rows.collect(), more: all.len().saturating_sub(MOST), unknown: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saying(pod: &str, says: Result<Says, String>) -> Replica {
        let (node, since, leads) = (None, None, None);
        Replica { pod: pod.to_owned(), node, ready: true, since, leads, says }
    }

    fn replica(pod: &str, requests: u64, configuration: &str) -> Replica {
        let says = Says {
            requests: Some(requests),
            configuration: Some(configuration.to_owned()),
            ..Says::default()
        };
        saying(pod, Ok(says))
    }

    #[tokio::test]
    async fn rates_lie_between_two_looks_and_who_serves_something_else_is_seen() {
        let kept = Kept::default();
        kept.note(Ok(vec![replica("a", 10, "7"), replica("b", 5, "7")]));
        if let Some(look) = kept.last.lock().as_mut() {
            look.at -= Duration::from_millis(500);
        }
        let away = saying("c", Err("no answer".to_owned()));
        kept.note(Ok(vec![replica("a", 110, "8"), replica("b", 2, "7"), away]));
        let beside = kept.last.lock().clone().expect("a look").rows("a");
        let [a, b, c] = beside.rows.as_slice() else { panic!("{beside:?}") };
        assert!(a.here && a.same == Some(true) && a.rate.is_some_and(|rate| rate > 100.0), "{a:?}");
        assert_eq!((b.here, b.same, b.rate), (false, Some(false), None), "it began anew");
        assert_eq!((c.same, c.unreached.as_deref()), (None, Some("no answer")));
    }

    #[tokio::test]
    async fn whoever_does_not_answer_holds_nobody_up() {
        let kept = Arc::new(Kept::default());
        let never: AskReplicas = Box::new(|| Box::pin(std::future::pending()));
        let began = Instant::now();
        let beside = kept.look(&Arc::new(never), "a").await;
        assert!(beside.rows.is_empty() && began.elapsed() < Duration::from_secs(30));
        let many: Replicas =
            Ok((0..60).map(|number| replica(&format!("{number}"), 0, "")).collect());
        kept.note(many);
        let beside = kept.last.lock().clone().expect("a look").rows("a");
        assert_eq!((beside.rows.len(), beside.more), (MOST, 10));
    }
}
