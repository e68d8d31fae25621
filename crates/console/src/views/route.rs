//! One route with all that is in force there.

use super::json;
use super::routes::{Row, kind_text};
use crate::difference::{leaves, text, value};
use crate::now::Now;
use crate::query::{Query, Refusal, shown, told};
use crate::sample::AtOne;
use crate::served::Route;
use model::Backend;
use model::policy::Policy;
use objects::ObjectKey;
use serde::Serialize;

/// Endpoints that are named.
const ENDPOINTS: usize = 200;

/// A route and what is in force there.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Details<'a> {
    /// As among all routes.
    pub(crate) route: Row<'a>,
    /// The host's other names.
    pub(crate) aliases: Vec<String>,
    /// The host's certificate; `default` for that of hosts without one.
    pub(crate) certificate: Option<String>,
    /// Why a request of it failed last, as far as the error log told.
    pub(crate) failed: Option<FailedTry>,
    /// Who is behind it, 200 at most.
    pub(crate) endpoints: Vec<Endpoint>,
    /// The settings that differ from those of an Ingress without annotations, as `/configuration` names them.
    pub(crate) settings: Vec<Setting>,
    /// The names of its Ingress's annotations.
    pub(crate) annotations: Vec<String>,
    /// The problems of its Ingress.
    pub(crate) problems: Vec<String>,
}

/// An address.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Endpoint {
    /// Address and port.
    pub(crate) address: String,
    /// `ready`, or `draining` while it only finishes what it has.
    pub(crate) state: &'static str,
    /// Tries per second; none before a second look, and with `--engine=nginx`.
    pub(crate) rate: Option<f64>,
    /// Those that failed, or were answered with 500 and more.
    pub(crate) errors: Option<f64>,
    /// Half of the answers began sooner.
    pub(crate) p50: Option<f64>,
    /// 99 of 100 answers began sooner.
    pub(crate) p99: Option<f64>,
    /// The last failure.
    pub(crate) failed: Option<FailedTry>,
}

/// What failed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FailedTry {
    /// When.
    pub(crate) at: f64,
    /// Why.
    pub(crate) why: String,
}

/// A setting.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Setting {
    /// Its name.
    pub(crate) name: String,
    /// Its value; what opens a door is shown as `…`.
    pub(crate) value: String,
}

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    let served = now.served();
    let (host, path) = (query.needed("host", "shop.example")?, query.needed("path", "/")?);
    let kind = query.get("kind").unwrap_or("Prefix");
    let is_it = |route: &&Route| {
        shown(&route.server.name) == host
            && shown(&route.location.path) == path
            && kind_text(route.location.kind) == kind
    };
    let route = served.routes.iter().find(is_it).ok_or_else(|| {
        Refusal::Missing(format!(
            "no route of {host} has {kind} path {path}: /api/v1/routes lists all"
        ))
    })?;
    let location = &route.location;
    let ingress = location
        .origin
        .as_ref()
        .map(|origin| ObjectKey::new(origin.namespace.clone(), origin.name.clone()));
    let ingress = ingress.and_then(|key| now.known.snapshot.ingresses.get(&key));
    let problems = location.origin.as_ref().map(|origin| now.known.problems.of(origin));
    json(&Details {
        route: Row::new(route, now.sample.as_deref()),
        aliases: route.server.other_names().iter().map(|alias| text(&value(alias))).collect(),
        certificate: route.server.certificate.as_ref().map(shown),
        failed: now.failure.as_ref().map(|(at, why)| FailedTry { at: *at, why: told(why) }),
        endpoints: endpoints(now, route),
        settings: settings(&location.policy),
        annotations: ingress
            .map(|one| one.meta.annotations.keys().map(shown).collect())
            .unwrap_or_default(),
        problems: problems.unwrap_or_default().iter().map(told).collect(),
    })
}

fn endpoints(now: &Now, route: &Route) -> Vec<Endpoint> {
    let Backend::Upstream(id) = &route.location.backend else { return Vec::new() };
    let Some(upstream) = now.known.serving.upstreams.get(id) else { return Vec::new() };
    let sample = now.sample.as_deref();
    let of = |state| {
        move |address: &std::net::SocketAddr| {
            let AtOne { rate, errors, p50, p99, failed } =
                sample.map(|sample| sample.at_endpoint(*address)).unwrap_or_default();
            let failed = failed.map(|(at, why)| FailedTry { at, why: shown(why) });
            Endpoint { address: address.to_string(), state, rate, errors, p50, p99, failed }
        }
    };
    let ready = upstream.endpoints.ready.iter().map(of("ready"));
    ready.chain(upstream.endpoints.draining.iter().map(of("draining"))).take(ENDPOINTS).collect()
}

fn settings(policy: &Policy) -> Vec<Setting> {
    let differing = leaves(&value(&Policy::default()), &value(policy));
    differing.into_iter().map(|(name, value)| Setting { name, value }).collect()
}
