//! The overview: what serves, how it goes, and what wants a look.

use super::json;
use super::routes::Traffic;
use crate::now::Now;
use crate::query::{Query, Refusal, shown, told};
use crate::replicas::Beside;
use serde::Serialize;
use std::collections::BTreeMap;

/// What there is to see at once.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Overview {
    /// Now, by the clock of this process.
    pub(crate) now: f64,
    /// The version and the commit that it was built from.
    pub(crate) version: String,
    /// The controller class that it serves.
    pub(crate) class: String,
    /// Its Pod; empty where it has none.
    pub(crate) pod: String,
    /// `native` or `nginx`.
    pub(crate) engine: &'static str,
    /// Whether this replica leads; none where there is no election.
    pub(crate) leads: Option<bool>,
    /// When the process started.
    pub(crate) started: Option<f64>,
    /// The generation in force.
    pub(crate) generation: u64,
    /// Since when.
    pub(crate) generation_at: f64,
    /// Why the engine refused the newest change; what was served stays.
    pub(crate) refused: Option<String>,
    /// Ingresses that are seen.
    pub(crate) ingresses: usize,
    /// Those of them that are served.
    pub(crate) served_ingresses: usize,
    /// Hosts that are served.
    pub(crate) hosts: usize,
    /// Paths of all hosts.
    pub(crate) routes: usize,
    /// Service ports that routes lead to.
    pub(crate) upstreams: usize,
    /// Those of them without any endpoint.
    pub(crate) empty_upstreams: usize,
    /// Certificates.
    pub(crate) certificates: usize,
    /// When the first of them expires.
    pub(crate) next_expiry: Option<i64>,
    /// Problems, by severity.
    pub(crate) problems: BTreeMap<&'static str, usize>,
    /// Whether requests are counted (`--enable-metrics`).
    pub(crate) counted: bool,
    /// Requests at the places that there are.
    pub(crate) traffic: Traffic,
    /// Connections of clients.
    pub(crate) connections: Option<Connections>,
    /// Bytes of memory that the processes that carry traffic hold.
    pub(crate) memory: u64,
    /// `normal`, `high` or `full`; none with `--engine=nginx`.
    pub(crate) pressure: Option<&'static str>,
    /// The replicas, this one among them.
    pub(crate) replicas: Beside,
    /// With `--shadow`, where nothing is served: how many copies came.
    pub(crate) copies: Option<u64>,
}

/// Connections of clients.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Connections {
    /// Requests that were begun over all of them since the start, whatever became of them.
    pub(crate) requests: u64,
    /// Open ones.
    pub(crate) active: u64,
    /// Those whose request is being answered.
    pub(crate) writing: u64,
    /// Those between two requests.
    pub(crate) waiting: u64,
}

/// The word for a pressure.
pub(crate) fn pressure_text(pressure: u8) -> &'static str {
    match pressure {
        0 => "normal",
        1 => "high",
        _ => "full",
    }
}

pub(crate) fn make(now: &Now, _: &Query) -> Result<String, Refusal> {
    let (identity, known, progress) = (&now.identity, &now.known, &now.progress);
    let served = now.served();
    let mut problems = BTreeMap::from([("error", 0), ("notice", 0), ("warning", 0)]);
    for problem in known.problems.iter() {
        *problems.entry(problem.severity.name()).or_default() += 1;
    }
    let upstreams = &known.serving.upstreams;
    let is_empty = |one: &&std::sync::Arc<model::Upstream>| {
        one.external.is_none() && one.endpoints.usable().is_empty()
    };
    let Some(sample) = now.sample.as_ref() else {
        return Err(Refusal::Broken("nothing was sampled".to_owned()));
    };
    let processes = &sample.traffic.processes;
    let connections = sample.traffic.connections.as_ref();
    json(&Overview {
        now: crate::clock::seconds(),
        version: identity.version.clone(),
        class: shown(&identity.class),
        pod: shown(&identity.pod),
        engine: if sample.within.is_some() { "native" } else { "nginx" },
        leads: now.leads,
        started: processes.iter().map(|usage| usage.started).min_by(f64::total_cmp),
        generation: progress.generation,
        generation_at: progress.applied_at_seconds(),
        refused: known.refused.as_ref().map(told),
        ingresses: known.snapshot.ingresses.len(),
        served_ingresses: known.served.len(),
        hosts: known.serving.servers.len(),
        routes: served.routes.len(),
        upstreams: upstreams.len(),
        empty_upstreams: upstreams.values().filter(is_empty).count(),
        certificates: known.serving.certificates.len(),
        next_expiry: known.serving.certificates.values().map(|one| one.not_after).min(),
        problems,
        counted: sample.is_counted(),
        traffic: sample.all().into(),
        connections: connections.map(|now| Connections {
            requests: now.requests,
            active: now.active,
            writing: now.writing,
            waiting: now.waiting,
        }),
        memory: processes.iter().map(|usage| usage.resident_bytes).sum(),
        pressure: sample.within.as_ref().map(|within| pressure_text(within.pressure)),
        replicas: std::mem::take(&mut *now.replicas.lock()),
        copies: now.copies.as_ref().map(|copies| copies.sums.iter().map(|(_, count)| count).sum()),
    })
}
