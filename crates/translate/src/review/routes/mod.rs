//! What the admission webhook says of a route of the Gateway API: what its status would say, before it is stored. A
//! warning, never a refusal: what a route names may come later.

mod around;

use crate::{Options, gateway, translate};
use around::around;
use model::{Configuration, PathKind};
use objects::gateway::{HttpRoute, ParentRef, PathMatch, RouteRule, StreamRoute, parse_route};
use objects::{Kind, Object, ObjectKey, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is said of one route at most: the API server keeps 4096 bytes of warnings.
const MOST: usize = 8;

/// What the definitions take of each at most. Whoever asks without an API server gets no review of more.
const PARENTS: usize = 32;
const HOSTS: usize = 16;
const RULES: usize = 16;
const MATCHES: usize = 64;
const BACKENDS: usize = 16;

/// Warnings about a route in JSON. `served` is what is served now. The cost is that of the route, of the Gateways and
/// Services that it names, and of the paths of Ingresses on its hosts.
pub fn useless_route(
    kind: Kind,
    json: &str,
    snapshot: &Snapshot,
    served: &Configuration,
    options: &Options,
) -> Vec<String> {
    let route = match parse_route(kind, json) {
        Ok(Object::HttpRoute(route)) => Route::Http(route),
        Ok(Object::StreamRoute(route)) => Route::Stream(route),
        Ok(_) => return Vec::new(),
        Err(why) => return vec![why],
    };
    let watched = options.watch_namespace.as_deref();
    if watched.is_some_and(|watched| watched != &*route.key().namespace) {
        return Vec::new();
    }
    if let Some((field, count, most)) = route.beyond_bounds() {
        return vec![format!("{field}: {count} entries, at most {most} are taken")];
    }
    let small = around(&route, snapshot, options);
    let made = translate(&small, options);
    let (mut warnings, is_ours) = of_status(&route, &made);
    let key = route.key();
    // What other namespaces lack is none of the asker's business.
    let own = route.parents().iter().filter_map(|parent| named(parent, key));
    let absent: BTreeSet<_> = own
        .filter(|(kind, parent)| {
            let is_there = match kind {
                Kind::ListenerSet => snapshot.listener_sets.contains_key(parent),
                _ => snapshot.gateways.contains_key(parent),
            };
            parent.namespace == key.namespace && !is_there
        })
        .collect();
    warnings.extend(absent.into_iter().map(|(kind, ObjectKey { namespace, name })| {
        let kind = kind.name();
        format!("no {kind} {namespace}/{name} is there: nobody serves the route until it is")
    }));
    if let (Route::Http(route), true) = (&route, is_ours) {
        warnings.extend(hidden_by_ingresses(route, served));
    }
    let more = warnings.len().saturating_sub(MOST);
    warnings.truncate(MOST);
    warnings.extend((more > 0).then(|| format!("and {more} more")));
    warnings
}

/// The route that is asked about.
enum Route {
    Http(Arc<HttpRoute>),
    Stream(Arc<StreamRoute>),
}

impl Route {
    fn key(&self) -> &ObjectKey {
        match self {
            Self::Http(route) => &route.meta.key,
            Self::Stream(route) => &route.meta.key,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Http(route) => route.kind,
            Self::Stream(route) => route.kind,
        }
    }

    fn parents(&self) -> &[ParentRef] {
        match self {
            Self::Http(route) => &route.parents,
            Self::Stream(route) => &route.parents,
        }
    }

    /// A field with more entries than the definitions take: how many it has, and how many they take.
    fn beyond_bounds(&self) -> Option<(&'static str, usize, usize)> {
        const NONE: &[RouteRule] = &[];
        let (hostnames, rules, backends) = match self {
            Self::Http(route) => (route.hostnames.len(), &*route.rules, 0),
            Self::Stream(route) => (route.hostnames.len(), NONE, route.backends.len()),
        };
        let longest = |of: fn(&RouteRule) -> usize| rules.iter().map(of).max().unwrap_or(0);
        let counts = [
            ("spec.parentRefs", self.parents().len(), PARENTS),
            ("spec.hostnames", hostnames, HOSTS),
            ("spec.rules", rules.len(), RULES),
            ("matches of a rule", longest(|rule| rule.matches.len()), MATCHES),
            ("filters of a rule", longest(|rule| rule.filters.len()), BACKENDS),
            ("backendRefs of a rule", backends.max(longest(|rule| rule.backends.len())), BACKENDS),
        ];
        counts.into_iter().find(|(_, count, most)| count > most)
    }
}

/// What the status of a route would say that is wrong, and whether a Gateway of ours is named at all.
fn of_status(route: &Route, made: &crate::Translation) -> (Vec<String>, bool) {
    let key = route.key();
    let id = (route.kind(), key.clone());
    let (http, streams) = (&made.statuses.routes, &made.statuses.stream_routes);
    let Some(status) = http.get(&id).or_else(|| streams.get(&id)) else {
        return (Vec::new(), false);
    };
    let (mut warnings, mut is_ours) = (Vec::new(), false);
    for (parent, conditions) in &status.parents {
        // Whether another namespace has a Gateway is told to those only whom it lets in.
        let is_in = conditions.iter().any(|one| one.kind == "Accepted" && one.holds);
        if parent_key(parent, key).namespace != key.namespace && !is_in {
            continue;
        }
        is_ours = true;
        // A part that is left out is told by a condition that holds.
        let bad = |one: &&gateway::Condition| one.holds == (one.kind == "PartiallyInvalid");
        warnings.extend(conditions.iter().filter(bad).map(|condition| {
            let gateway::Condition { kind: told, holds, reason, message } = condition;
            let holds = if *holds { "True" } else { "False" };
            let (kind, name) = (route.kind().name(), &parent.object.name);
            format!("{kind} at {name}: {told}={holds} ({reason}): {message}")
        }));
    }
    (warnings, is_ours)
}

/// Paths that an Ingress has: it keeps them.
fn hidden_by_ingresses(route: &HttpRoute, served: &Configuration) -> Vec<String> {
    let matches = route.rules.iter().flat_map(|rule| &rule.matches);
    let paths = matches.filter_map(|one| match &one.path {
        PathMatch::Exact(path) => Some((PathKind::Exact, path.as_str())),
        PathMatch::Prefix(path) => Some((PathKind::Prefix, path.as_str())),
        PathMatch::Expression(_) | PathMatch::Method(_) => None,
    });
    let paths: BTreeSet<_> = paths.collect();
    let mut found = BTreeSet::new();
    for host in &route.hostnames {
        let server = served.servers.get(host.as_str());
        let locations = server.iter().flat_map(|server| &server.locations);
        for location in locations.filter(|one| paths.contains(&(one.kind, one.path.as_str()))) {
            let Some(origin) = &location.origin else { continue };
            // Nothing is said of what other namespaces have but what is refused to Ingresses, too.
            let owner = if origin.namespace == route.meta.key.namespace {
                origin.to_string()
            } else {
                "an Ingress".to_owned()
            };
            let path = &location.path;
            found.insert(format!(
                "{host}{path} is {owner}'s, and stays so until that names it no longer"
            ));
        }
    }
    found.into_iter().collect()
}

/// What a parent is, if it is a Gateway or a ListenerSet.
fn named(parent: &ParentRef, route: &ObjectKey) -> Option<(Kind, ObjectKey)> {
    let kinds = [Kind::Gateway, Kind::ListenerSet];
    let kind = kinds.into_iter().find(|kind| kind.name() == parent.object.kind)?;
    Some((kind, parent_key(parent, route)))
}

fn parent_key(parent: &ParentRef, route: &ObjectKey) -> ObjectKey {
    let namespace = parent.object.namespace.as_deref().unwrap_or(&route.namespace);
    ObjectKey::new(namespace, parent.object.name.as_str())
}
