//! Canaries beside the locations of a host: each hangs on the routes that it names, and on no other of the same Service
//! (compat/behaviour.md section 10, compat/decisions.md rows 5a and 25).

use super::Surroundings;
use crate::annotations::CanaryAsked;
use crate::ingress::{Draft, Drafts, Route, origin};
use crate::tenancy::{CrossNamespace, Item, remedy};
use model::policy::{Balance, Canary, Policy};
use model::{Backend, Location, Message, Problem, ServerName, Severity, Why};
use std::sync::Arc;

/// Annotations that close the paths of an Ingress. Those of a canary count for nothing, since it has no paths.
const GUARDS: [&str; 6] = [
    "auth-type",
    "auth-url",
    "auth-tls-secret",
    "allowlist-source-range",
    "whitelist-source-range",
    "denylist-source-range",
];

/// The locations with their canaries, the first of each path; the others are problems.
pub(super) fn attach(
    name: &ServerName,
    drafts: &Drafts,
    mut locations: Vec<Arc<Location>>,
    allowed: CrossNamespace,
    surroundings: &impl Surroundings,
    problems: &mut Vec<Problem>,
) -> Vec<Arc<Location>> {
    for (draft, asked, route) in routes(name, drafts) {
        let wanted = &route.location;
        let same = |location: &&mut Arc<Location>| {
            location.kind == wanted.kind && location.path == wanted.path
        };
        let message = match locations.iter_mut().find(same) {
            None => nobody(name, route).into(),
            Some(location) if !is_own(location, draft) && !allowed.allows(Item::Canary) => {
                let path = &location.path;
                let remedy = remedy(Item::Canary);
                Why::OtherNamespace
                    .says(format!("path {path} is that of another namespace; {remedy}"))
            }
            Some(location) => match beside(location, draft, asked, route, surroundings) {
                Ok(canary) => {
                    problems.extend(unguarded(draft, route, &location.policy));
                    Arc::make_mut(location).canary = Some(canary.into());
                    continue;
                }
                Err(message) => message.into(),
            },
        };
        problems.push(without_effect(draft, message));
    }
    locations
}

/// The problems of canaries of a host that no other Ingress has.
pub(crate) fn beside_nobody(name: &ServerName, drafts: &Drafts) -> Vec<Problem> {
    routes(name, drafts)
        .map(|(draft, _, route)| without_effect(draft, nobody(name, route).into()))
        .collect()
}

fn routes<'a>(
    name: &'a ServerName,
    drafts: &'a Drafts,
) -> impl Iterator<Item = (&'a Draft, &'a CanaryAsked, &'a Route)> {
    drafts.values().flat_map(move |draft| {
        let canary = draft.canary.iter();
        canary.flat_map(move |canary| {
            let (asked, hosts) = &**canary;
            let routes = hosts.get(name).into_iter().flatten();
            routes.map(move |route| (&**draft, asked, route))
        })
    })
}

/// Whether a location is of the namespace of a canary, or nobody's.
fn is_own(location: &Location, draft: &Draft) -> bool {
    let origin = location.origin.as_deref();
    origin.is_none_or(|origin| origin.namespace == draft.ingress.meta.key.namespace)
}

fn beside(
    location: &Location,
    draft: &Draft,
    asked: &CanaryAsked,
    route: &Route,
    surroundings: &impl Surroundings,
) -> Result<Canary, String> {
    let path = &location.path;
    if let Some(reason) = &draft.denied {
        // What its Ingress asks for is unknown: nobody is sent there in spite of that.
        return Err(format!("path {path} has none, because of {reason}"));
    }
    if let Some(other) = &location.canary {
        let origin = &other.origin;
        return Err(format!("path {path} has a canary already, {origin}, which comes first"));
    }
    let upstream = surroundings.upstream(&route.target);
    match &location.backend {
        Backend::Upstream(main) if *main == upstream => {
            Err(format!("the main side of path {path} has the same backend: name another"))
        }
        // The default backend of the controller is nobody's route.
        Backend::Upstream(_) if location.service.is_some() => {
            let policy = &location.policy.balance;
            let affinity = policy.affinity.clone().filter(|_| asked.sticky);
            Ok(Canary {
                upstream,
                origin: origin(&draft.ingress.meta.key),
                rules: asked.rules.clone(),
                balance: Balance { algorithm: asked.algorithm.clone(), affinity },
            })
        }
        Backend::Denied(_) | Backend::Broken(_) => Err(format!("path {path} answers 503 itself")),
        Backend::Upstream(_) | Backend::NotFound => {
            Err(format!("path {path} has no Ingress of its own"))
        }
    }
}

/// A guard that only the canary asks for, which reaches its Service open.
fn unguarded(draft: &Draft, route: &Route, main: &Policy) -> Option<Problem> {
    let own = &route.location.policy;
    let same = own.access == main.access
        && own.auth_basic == main.auth_basic
        && own.auth_external == main.auth_external
        && own.client_certificate == main.client_certificate;
    let last = |name: &String| name.rsplit('/').next().unwrap_or_default().to_owned();
    let asks = |name: &&String| GUARDS.contains(&last(name).as_str());
    let key = draft.ingress.meta.annotations.keys().find(asks)?;
    (!same).then(|| Problem {
        origin: origin(&draft.ingress.meta.key),
        key: Some(key.clone()),
        severity: Severity::Warning,
        message: format!(
            "a canary has the guards of its main Ingress and none of its own: requests for path {} reach its Service \
             without this one; write the same annotations at the main Ingress",
            route.location.path
        )
        .into(),
    })
}

fn nobody(name: &ServerName, route: &Route) -> String {
    let location = &route.location;
    format!(
        "no other Ingress has path {} ({:?}) of host {name}: write host, path and pathType as there",
        location.path, location.kind
    )
}

fn without_effect(draft: &Draft, message: Message) -> Problem {
    let sentence = format!("the canary has no effect here: {message}");
    Problem {
        origin: origin(&draft.ingress.meta.key),
        key: Some("spec.rules".to_owned()),
        severity: Severity::Warning,
        message: message.why().unwrap_or(Why::InVain).says(sentence),
    }
}
