//! The routes: host, path, Ingress, Service and endpoints, each with its traffic.

use super::json;
use crate::now::Now;
use crate::query::{Query, Refusal, shown};
use crate::sample::{Live, Sample};
use crate::served::{Route, backend};
use model::PathKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Routes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Routes<'a> {
    /// How many are served.
    pub(crate) total: usize,
    /// How many were found.
    pub(crate) found: usize,
    /// The number of the first row.
    pub(crate) offset: usize,
    /// Whether requests are counted (`--enable-metrics`).
    pub(crate) counted: bool,
    /// The rows.
    pub(crate) routes: Vec<Row<'a>>,
}

/// A path of a host.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Row<'a> {
    /// The host; `_` for all that no Ingress names.
    pub(crate) host: String,
    /// The path, as the Ingress has it.
    pub(crate) path: String,
    /// How it is meant: `Exact` or `Prefix`.
    pub(crate) kind: &'static str,
    /// Whether the host's paths are regular expressions.
    pub(crate) regex: bool,
    /// `namespace/name` of the Ingress that owns it.
    pub(crate) ingress: Option<String>,
    /// `namespace/name:port` of its Service.
    pub(crate) service: Option<String>,
    /// Where its requests go: an upstream, `404`, or `503` with the reason.
    pub(crate) backend: String,
    /// The name that is resolved instead of endpoints, `host:port`.
    pub(crate) external: Option<&'a str>,
    /// Endpoints that are ready.
    pub(crate) ready: usize,
    /// Endpoints that only finish what they have.
    pub(crate) draining: usize,
    /// Its traffic.
    pub(crate) traffic: Traffic,
}

/// How it goes.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Traffic {
    /// Requests since the start, as far as they are counted.
    pub(crate) requests: u64,
    /// Requests per second; none before a second look.
    pub(crate) rate: Option<f64>,
    /// Answers of 500 and more per second.
    pub(crate) errors: Option<f64>,
    /// Half of the requests took less.
    pub(crate) p50: Option<f64>,
    /// 99 of 100 requests took less.
    pub(crate) p99: Option<f64>,
    /// Answers of 500 and more since the start, by status.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failures: BTreeMap<String, u64>,
    /// The last failure, as far as somebody looked.
    pub(crate) failed: Option<Failed>,
}

/// A failure that was seen.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Failed {
    /// When it was seen.
    pub(crate) at: f64,
    /// Its status.
    pub(crate) status: String,
}

impl From<Live> for Traffic {
    fn from(live: Live) -> Self {
        let Live { requests, rate, errors, p50, p99, failures, failed } = live;
        let failures = failures.into_iter().map(|(status, count)| (status.to_string(), count));
        let failed = failed.map(|(at, status)| Failed { at, status: status.to_string() });
        Self { requests, rate, errors, p50, p99, failures: failures.collect(), failed }
    }
}

impl<'a> Row<'a> {
    pub(crate) fn new(route: &'a Route, sample: Option<&Sample>) -> Self {
        let location = &route.location;
        let service = location.service.as_ref();
        let origin = location.origin.as_ref();
        Self {
            host: shown(&route.server.name),
            path: shown(&location.path),
            kind: kind_text(location.kind),
            regex: route.server.regex,
            ingress: origin
                .map(|origin| shown(format_args!("{}/{}", origin.namespace, origin.name))),
            service: service
                .map(|one| shown(format_args!("{}/{}:{}", one.namespace, one.name, one.port))),
            backend: backend(location),
            external: route.external.as_deref(),
            ready: route.ready,
            draining: route.draining,
            traffic: sample.map(|sample| sample.at(&route.spot).into()).unwrap_or_default(),
        }
    }
}

/// As it is written.
pub(crate) fn kind_text(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Exact => "Exact",
        PathKind::Prefix => "Prefix",
    }
}

/// What a sorted list begins with.
type Most = fn(&Live) -> Option<f64>;

const SORTS: &[(&str, Option<Most>)] = &[
    ("host", None),
    ("rate", Some(|live| live.rate)),
    ("errors", Some(|live| live.errors)),
    ("latency", Some(|live| live.p99)),
];

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    let served = now.served();
    let ((offset, limit), sort) = (query.window()?, query.one_of("sort", SORTS)?);
    let words = query.words();
    let mut found: Vec<&Route> = served.found(&words).collect();
    if let Some((most, sample)) = sort.zip(now.sample.as_ref()) {
        sort_by_most(&mut found, most, sample);
    }
    let rows = found.iter().skip(offset).take(limit);
    json(&Routes {
        total: served.routes.len(),
        found: found.len(),
        offset,
        counted: now.sample.as_ref().is_some_and(|sample| sample.is_counted()),
        routes: rows.map(|route| Row::new(route, now.sample.as_deref())).collect(),
    })
}

/// What is not known counts as least; what is equal stays in the order of hosts.
fn sort_by_most(found: &mut Vec<&Route>, most: Most, sample: &Arc<Sample>) {
    let by = |route: &&Route| most(&sample.at(&route.spot)).unwrap_or(-1.0);
    let mut keyed: Vec<(f64, &Route)> = found.iter().map(|route| (by(route), *route)).collect();
    keyed.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    *found = keyed.into_iter().map(|(_, route)| route).collect();
}
