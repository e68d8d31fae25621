//! One route with all that is in force there.

use super::json;
use super::routes::{Row, kind_text};
use crate::difference::{leaves, text, value};
use crate::now::Now;
use crate::query::{Query, Refusal, shown, told};
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
    let of = |state| {
        move |address: &std::net::SocketAddr| Endpoint { address: address.to_string(), state }
    };
    let ready = upstream.endpoints.ready.iter().map(of("ready"));
    ready.chain(upstream.endpoints.draining.iter().map(of("draining"))).take(ENDPOINTS).collect()
}

fn settings(policy: &Policy) -> Vec<Setting> {
    let differing = leaves(&value(&Policy::default()), &value(policy));
    differing.into_iter().map(|(name, value)| Setting { name, value }).collect()
}
