//! Canaries beside the locations of a host: each hangs on the routes that it names, and on no other of the same Service
//! (compat/behaviour.md section 10, compat/decisions.md rows 5a and 25).

use super::Surroundings;
use crate::annotations::CanaryAsked;
use crate::ingress::{BesideOthers, Draft, Drafts, Route, origin};
use crate::tenancy::{CrossNamespace, Item, remedy};
use model::policy::{Balance, Canary, Policy};
use model::{Backend, Location, Message, PathKind, Problem, ServerName, Severity, Why};
use std::collections::HashMap;
use std::sync::Arc;

/// The locations with their canaries, the first of each path; the others are problems.
pub(super) fn attach(
    name: &ServerName,
    drafts: &Drafts,
    mut locations: Vec<Arc<Location>>,
    allowed: CrossNamespace,
    surroundings: &impl Surroundings,
    problems: &mut Vec<Problem>,
) -> Vec<Arc<Location>> {
    let places = places(name, drafts, &locations);
    for ((draft, canary, route), place) in routes(name, drafts).zip(places) {
        let message = match place.and_then(|place| locations.get_mut(place)) {
            None => nobody(name, route).into(),
            Some(location) if !is_own(location, draft) && !allowed.allows(Item::Canary) => {
                let path = &location.path;
                let remedy = remedy(Item::Canary);
                Why::OtherNamespace
                    .says(format!("path {path} is that of another namespace; {remedy}"))
            }
            Some(location) => match beside(location, draft, &canary.asked, route, surroundings) {
                Ok(made) => {
                    problems.extend(unguarded(draft, canary, route, &location.policy));
                    Arc::make_mut(location).canary = Some(made.into());
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
) -> impl Iterator<Item = (&'a Draft, &'a BesideOthers, &'a Route)> {
    drafts.values().flat_map(move |draft| {
        let canary = draft.canary.iter();
        canary.flat_map(move |canary| {
            let routes = canary.hosts.get(name).into_iter().flatten();
            routes.map(move |route| (&**draft, &**canary, route))
        })
    })
}

/// Where the first location stands that each of the routes names. There may be as many of the one as of the other.
fn places(name: &ServerName, drafts: &Drafts, locations: &[Arc<Location>]) -> Vec<Option<usize>> {
    let mut wanted = routes(name, drafts).peekable();
    if wanted.peek().is_none() {
        return Vec::new();
    }
    let mut first: HashMap<(PathKind, &str), usize> = HashMap::with_capacity(locations.len());
    for (place, location) in locations.iter().enumerate() {
        first.entry((location.kind, &location.path)).or_insert(place);
    }
    let place = |route: &Route| first.get(&(route.location.kind, &*route.location.path)).copied();
    wanted.map(|(_, _, route)| place(route)).collect()
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
                rules: Arc::clone(&asked.rules),
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
fn unguarded(
    draft: &Draft,
    canary: &BesideOthers,
    route: &Route,
    main: &Policy,
) -> Option<Problem> {
    let key = canary.guard.as_deref()?;
    let own = &route.location.policy;
    let same = own.access == main.access
        && own.auth_basic == main.auth_basic
        && own.auth_external == main.auth_external
        && own.client_certificate == main.client_certificate;
    (!same).then(|| Problem {
        origin: origin(&draft.ingress.meta.key),
        key: Some(key.to_owned()),
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
