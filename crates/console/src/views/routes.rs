//! The routes: host, path, Ingress or route, Service and endpoints, each with its traffic.

use super::json;
use crate::now::Now;
use crate::query::{Query, Refusal, shown};
use crate::sample::{Live, Sample};
use crate::served::{Place, Route, asks, listener};
use model::{Kind, PathKind, Transport};
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

/// A path of a host, a host whose connections are carried on, or a port.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Row<'a> {
    /// What is understood there: `HTTP`, `TLS` (carried on as it is, or what is in it), `TCP` or `UDP`.
    pub(crate) protocol: &'static str,
    /// The host; `_` for all that nobody names. For `TCP` and `UDP` the port, such as `9000/tcp`.
    pub(crate) host: String,
    /// The path, as its object has it; empty but for `HTTP`.
    pub(crate) path: String,
    /// How it is meant: `Exact` or `Prefix`; `Port` and `Host` where there is no path.
    pub(crate) kind: &'static str,
    /// Whether the path is a regular expression.
    pub(crate) regex: bool,
    /// Whether it is of the host itself: the `/` that no Ingress has written, with the settings of `ingress`.
    pub(crate) of_host: bool,
    /// `namespace/name` of the Ingress that owns it.
    pub(crate) ingress: Option<String>,
    /// The same of a route of the Gateway API, such as `HTTPRoute namespace/name`.
    pub(crate) route: Option<String>,
    /// The listener of a Gateway with an address of its own, such as `192.0.2.1:443 *.example.com`.
    pub(crate) listener: Option<String>,
    /// What its requests must be besides the path; no values of header fields and queries.
    pub(crate) asks: Option<String>,
    /// Its part of the requests where there are several, such as `1 of 10`.
    pub(crate) weight: Option<String>,
    /// What tells it from others of the same host, path and kind; none for the path of an Ingress.
    pub(crate) id: Option<&'a str>,
    /// `namespace/name:port` of its Service.
    pub(crate) service: Option<String>,
    /// Where its requests go: an upstream, a redirect, `404`, or `403`, `503` or `500` with the reason.
    pub(crate) backend: &'a str,
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
    /// Requests since the place where they are counted is there: what a change has taken away is gone with its numbers.
    pub(crate) requests: u64,
    /// Requests per second; none before a second look.
    pub(crate) rate: Option<f64>,
    /// Answers of 500 and more per second.
    pub(crate) errors: Option<f64>,
    /// Half of the requests took less.
    pub(crate) p50: Option<f64>,
    /// 99 of 100 requests took less.
    pub(crate) p99: Option<f64>,
    /// Answers of 500 and more since then, by status.
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
        let service = route.location.as_ref().and_then(|location| location.service.as_deref());
        let origin = route.origin.as_ref();
        let of_ingress = origin.filter(|origin| origin.kind == Kind::Ingress);
        let (listener, asks, regex) = match &route.place {
            Place::Ingress { server } => (None, None, server.regex),
            Place::Rule { key, host, rule } => {
                let matches = &host.rules[*rule].matches;
                (listener(key), Some(asks(matches)), matches.pattern.is_some())
            }
            Place::Tls(key) => (listener(key), None, false),
            Place::Port(_) => (None, None, false),
        };
        Self {
            protocol: protocol(&route.place),
            host: shown(&route.host),
            path: shown(route.path()),
            kind: kind_text(route),
            regex,
            of_host: route.is_of_host(),
            ingress: of_ingress.map(|one| shown(format_args!("{}/{}", one.namespace, one.name))),
            route: origin.filter(|one| one.kind != Kind::Ingress).map(shown),
            listener,
            asks,
            weight: route.weight.map(|(part, all)| format!("{part} of {all}")),
            id: route.id.as_deref(),
            service: service
                .map(|one| shown(format_args!("{}/{}:{}", one.namespace, one.name, one.port))),
            backend: &route.backend,
            external: route.external.as_deref(),
            ready: route.ready,
            draining: route.draining,
            traffic: sample.map(|sample| route.live(sample).into()).unwrap_or_default(),
        }
    }
}

fn protocol(place: &Place) -> &'static str {
    match place {
        Place::Ingress { .. } | Place::Rule { .. } => "HTTP",
        Place::Tls(_) => "TLS",
        Place::Port(port) => match port.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        },
    }
}

/// As it is written.
pub(crate) fn kind_text(route: &Route) -> &'static str {
    match (route.kind(), &route.place) {
        (Some(PathKind::Exact), _) => "Exact",
        (Some(PathKind::Prefix), _) => "Prefix",
        (None, Place::Port(_)) => "Port",
        (None, _) => "Host",
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
    let words = query.words()?;
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
    let by = |route: &&Route| most(&route.live(sample)).unwrap_or(-1.0);
    let mut keyed: Vec<(f64, &Route)> = found.iter().map(|route| (by(route), *route)).collect();
    keyed.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    *found = keyed.into_iter().map(|(_, route)| route).collect();
}
