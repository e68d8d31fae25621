//! Sends requests to both sides, no faster than allowed, and ends where the new one does harm.

use super::normal::differences;
use super::requests::{Requests, Send, is_safe};
use super::send::{Answer, Client, Target};
use super::state::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// How a comparison is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The old controller.
    pub old: Target,
    /// The new one.
    pub new: Target,
    /// Requests a second, to each of them.
    pub rate: u32,
    /// Requests at the same time.
    pub concurrency: usize,
    /// So many errors of the new one that the old one has not end it.
    pub stop_after: u64,
    /// Bodies of errors count.
    pub strict_body: bool,
}

/// What came of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The request without its query.
    pub request: String,
    /// What the old one answered.
    pub old: u16,
    /// What the new one answered.
    pub new: u16,
    /// What differs, and how.
    pub differences: BTreeMap<String, String>,
    /// What the old one itself answers otherwise the next time: that does not count.
    #[serde(default)]
    pub unstable: Vec<String>,
    /// Whether the new one fails where the old one does not.
    #[serde(default)]
    pub harm: bool,
}

/// Why a comparison ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// So many errors of the new one that the old one has not.
    pub harms: u64,
    /// So many requests were not sent.
    pub left: usize,
}

/// All outcomes.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The old controller.
    pub old: String,
    /// The new one.
    pub new: String,
    /// Different requests.
    pub requests: usize,
    /// Left out since their method may change something.
    pub unsafe_methods: u64,
    /// Left out since their host is unknown.
    pub hostless: u64,
    /// Left out since there were too many.
    pub beyond: u64,
    /// Those that are answered alike.
    pub alike: usize,
    /// Those that are not.
    pub different: usize,
    /// Why it ended early.
    pub stopped: Option<Stopped>,
    /// In the order of requests.
    pub outcomes: Vec<Outcome>,
}

/// Sends all requests to both. `told` hears how many are done.
///
/// # Errors
/// When the state cannot be written.
pub async fn compare(
    requests: &Requests,
    options: &Options,
    client: &Client,
    mut state: Option<State>,
    told: impl Fn(usize),
) -> io::Result<Report> {
    let mut known =
        state.as_mut().map(|state| std::mem::take(&mut state.known)).unwrap_or_default();
    let mut harms = known.values().filter(|outcome| outcome.harm).count() as u64;
    let todo: Vec<usize> =
        (0..requests.list.len()).filter(|number| !known.contains_key(number)).collect();
    let mut left = todo.into_iter();
    let mut running: JoinSet<(usize, Outcome)> = JoinSet::new();
    let mut ticks = interval(Duration::from_secs(1) / options.rate.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let both = Arc::new((client.clone(), options.clone()));
    loop {
        let stops = harms >= options.stop_after;
        if !stops && running.len() < options.concurrency.max(1) && left.len() > 0 {
            ticks.tick().await;
            if let Some(number) = left.next() {
                let (both, send) = (both.clone(), requests.list[number].clone());
                running.spawn(async move { (number, one(&both.0, &both.1, &send).await) });
                continue;
            }
        }
        let Some(done) = running.join_next().await else { break };
        let (number, outcome) = done.map_err(io::Error::other)?;
        harms += u64::from(outcome.harm);
        if let Some(state) = &mut state {
            state.note(number, &outcome)?;
        }
        known.insert(number, outcome);
        told(known.len());
    }
    let stopped = (left.len() > 0).then(|| Stopped { harms, left: left.len() });
    Ok(report(requests, options, known.into_values().collect(), stopped))
}

fn report(
    requests: &Requests,
    options: &Options,
    outcomes: Vec<Outcome>,
    stopped: Option<Stopped>,
) -> Report {
    let different = outcomes.iter().filter(|outcome| !outcome.differences.is_empty()).count();
    Report {
        old: options.old.to_string(),
        new: options.new.to_string(),
        requests: requests.list.len(),
        unsafe_methods: requests.unsafe_methods,
        hostless: requests.hostless,
        beyond: requests.beyond,
        alike: outcomes.len() - different,
        different,
        stopped,
        outcomes,
    }
}

async fn one(client: &Client, options: &Options, send: &Send) -> Outcome {
    let Options { old, new, strict_body, .. } = options;
    let (first, other) = tokio::join!(client.send(old, send), client.send(new, send));
    let mut found = differences((&first, old), (&other, new), *strict_body);
    let mut unstable = Vec::new();
    // What the old side itself answers otherwise the next time is no difference between the two.
    if !found.is_empty() && is_safe(&send.method) {
        let again = client.send(old, send).await;
        let moves = differences((&first, old), (&again, old), *strict_body);
        found.retain(|what, _| {
            let moved = moves.contains_key(what);
            if moved {
                unstable.push(what.clone());
            }
            !moved
        });
    }
    let harm = is_failure(&other) && !is_failure(&first);
    let path = send.target.split('?').next().unwrap_or_default();
    let query = if send.target.contains('?') { "?…" } else { "" };
    let request = format!("{} {}{path}{query}", send.method, send.host);
    Outcome { request, old: first.status, new: other.status, differences: found, unstable, harm }
}

fn is_failure(answer: &Answer) -> bool {
    answer.error.is_some() || answer.status >= 500
}
