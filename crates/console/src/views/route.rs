//! One route with all that is in force there.

use super::json;
use super::routes::{Row, kind_text};
use crate::difference::{short, text, value};
use crate::now::Now;
use crate::query::{Query, Refusal, shown, told};
use crate::sample::AtOne;
use crate::served::{Place, Route};
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
    /// The settings in force that are not the defaults, each with who asks for it.
    pub(crate) settings: Vec<Setting>,
    /// The names of its Ingress's annotations that ask for none of them.
    pub(crate) other_annotations: Vec<String>,
    /// The problems of its Ingress or route.
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

/// A setting in force.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Setting {
    /// What a user calls it: its annotation without prefix, its key of the ConfigMap, or its field of a route.
    pub(crate) name: String,
    /// The same as `/configuration` and the changes name it.
    pub(crate) field: &'static str,
    /// Its value as a user writes it; what opens a door is shown as `…`.
    pub(crate) value: String,
    /// Who asks for it; nobody where it comes of what it belongs to.
    pub(crate) asked: Vec<Asked>,
}

/// Who asks for a setting.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Asked {
    /// The Ingress, the ConfigMap or the route.
    pub(crate) object: String,
    /// The annotation with its prefix, the key of the ConfigMap, or the field of the route.
    pub(crate) key: String,
    /// What is written there; none for fields. What opens a door is shown as `…`.
    pub(crate) written: Option<String>,
}

pub(crate) fn make(now: &Now, query: &Query) -> Result<String, Refusal> {
    let served = now.served();
    let route = wanted(&served.routes, query)?;
    let origin = route.origin.as_ref();
    let problems = origin.map(|origin| now.known.problems.of(origin));
    let (aliases, certificate) = match &route.place {
        Place::Ingress { server } => (server.other_names(), server.certificate.as_ref()),
        Place::Rule { host, .. } => (Vec::new(), host.certificate.as_ref()),
        Place::Tls(_) | Place::Port(_) => (Vec::new(), None),
    };
    let (settings, other_annotations) = settings(now, route);
    json(&Details {
        route: Row::new(route, now.sample.as_deref()),
        aliases: aliases.iter().map(|alias| text(&value(alias))).collect(),
        certificate: certificate.map(shown),
        failed: now.failure.as_ref().map(|(at, why)| FailedTry { at: *at, why: told(why) }),
        endpoints: endpoints(now, route),
        settings,
        other_annotations,
        problems: problems.unwrap_or_default().iter().map(told).collect(),
    })
}

/// The route that is asked for.
fn wanted<'a>(routes: &'a [Route], query: &Query) -> Result<&'a Route, Refusal> {
    let host = query.needed("host", "shop.example")?;
    let kind = query.get("kind").unwrap_or("Prefix");
    let path = match kind {
        "Port" | "Host" => query.get("path").unwrap_or_default(),
        _ => query.needed("path", "/")?,
    };
    let id = query.get("id");
    let is_it = |route: &&Route| {
        shown(&route.host) == host
            && shown(route.path()) == path
            && kind_text(route) == kind
            && id.is_none_or(|id| route.id.as_deref() == Some(id))
    };
    // Without an id it is that of an Ingress, if there is one.
    let mut found = routes.iter().filter(is_it);
    let first = found.next();
    let route = match first {
        Some(route) if id.is_none() && route.id.is_some() => {
            found.find(|other| other.id.is_none()).or(first)
        }
        _ => first,
    };
    route.ok_or_else(|| {
        Refusal::Missing(format!(
            "no route of {host} has {kind} path {path}: /api/v1/routes lists all"
        ))
    })
}

fn endpoints(now: &Now, route: &Route) -> Vec<Endpoint> {
    let sample = now.sample.as_deref();
    let of = |state| {
        move |address: &std::net::SocketAddr| {
            let AtOne { rate, errors, p50, p99, failed } =
                sample.map(|sample| sample.at_endpoint(*address)).unwrap_or_default();
            let failed = failed.map(|(at, why)| FailedTry { at, why: shown(why) });
            Endpoint { address: address.to_string(), state, rate, errors, p50, p99, failed }
        }
    };
    let own = route.own_endpoints();
    let ready = own.iter().flat_map(|group| &group.ready).map(of("ready"));
    let draining = own.iter().flat_map(|group| &group.draining).map(of("draining"));
    ready.chain(draining).take(ENDPOINTS).collect()
}

/// What is in force, and the annotations of its Ingress that ask for none of it.
fn settings(now: &Now, route: &Route) -> (Vec<Setting>, Vec<String>) {
    let Some(location) = &route.location else { return Default::default() };
    let server = match &route.place {
        Place::Ingress { server } => Some(&**server),
        Place::Rule { .. } | Place::Tls(_) | Place::Port(_) => None,
    };
    let objects = now.known.in_force();
    let all = objects.at(location, server);
    let ingress = location.origin.as_deref().and_then(|origin| objects.ingress(origin));
    let names = |name: &&String| {
        let asked = all.iter().flat_map(|one| &one.asked);
        asked.filter(|one| Some(&one.by) == location.origin.as_deref()).all(|one| one.key != **name)
    };
    let annotations = ingress.into_iter().flat_map(|ingress| ingress.meta.annotations.keys());
    let others = annotations.filter(names).map(shown).collect();
    let setting = all.iter().map(|one| Setting {
        name: shown(&one.name),
        field: one.field,
        value: short(told(&one.value)),
        asked: one
            .asked
            .iter()
            .map(|one| Asked {
                object: shown(&one.by),
                key: shown(&one.key),
                written: one.written.as_ref().map(|text| short(told(text))),
            })
            .collect(),
    });
    (setting.collect(), others)
}
