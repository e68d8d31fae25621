//! What the admission webhook says of a route of the Gateway API: what its status would say, before it is stored. A
//! warning, never a refusal: what a route names may come later.

use crate::{Options, gateway, translate};
use model::{Configuration, PathKind};
use objects::gateway::{Gateway, HttpRoute, ParentRef, PathMatch, StreamRoute};
use objects::{Kind, ObjectKey, Snapshot};
use std::collections::BTreeSet;
use std::path::Path;

/// What is said of one route at most: the API server keeps 4096 bytes of warnings.
const MOST: usize = 8;

/// Warnings about the routes in a text of JSON. `served` is what is served now. The cost is that of the routes and of
/// the Gateways that they name.
pub fn useless_routes(
    json: &str,
    snapshot: &Snapshot,
    served: &Configuration,
    options: &Options,
) -> Vec<String> {
    let asked = objects::snapshot_of([(Path::new("review.json"), json)]);
    let mut warnings: Vec<String> =
        asked.malformed.values().map(|malformed| malformed.message.clone()).collect();
    let http = asked.http_routes.values().map(|route| route_parents(route));
    let streams = asked.stream_routes.values().map(|route| stream_parents(route));
    let named: BTreeSet<ObjectKey> = http.chain(streams).flatten().collect();
    let hidden: Vec<String> =
        asked.http_routes.values().flat_map(|route| hidden_by_ingresses(route, served)).collect();
    let small = Snapshot {
        http_routes: asked.http_routes,
        stream_routes: asked.stream_routes,
        ..around(&named, snapshot)
    };
    let made = translate(&small, options);
    let told = made.statuses.routes.iter().chain(made.statuses.stream_routes.iter());
    let mut is_ours = BTreeSet::new();
    for ((kind, key), status) in told {
        for (parent, conditions) in &status.parents {
            let gateway = gateway_of(parent, key);
            // Whether another namespace has a Gateway is told to those only whom it lets in.
            let is_in = conditions.iter().any(|one| one.kind == "Accepted" && one.holds);
            if gateway.namespace != key.namespace && !is_in {
                continue;
            }
            is_ours.insert(gateway);
            // A part that is left out is told by a condition that holds.
            let bad = |one: &&gateway::Condition| one.holds == (one.kind == "PartiallyInvalid");
            warnings.extend(conditions.iter().filter(bad).map(|condition| {
                let gateway::Condition { kind: told, holds, reason, message } = condition;
                let holds = if *holds { "True" } else { "False" };
                let parent = &parent.object.name;
                format!("{} at {parent}: {told}={holds} ({reason}): {message}", kind.name())
            }));
        }
    }
    let own: BTreeSet<_> = small
        .http_routes
        .keys()
        .chain(small.stream_routes.keys())
        .map(|(_, key)| &key.namespace)
        .collect();
    // What other namespaces lack is none of the asker's business.
    let absent = named
        .iter()
        .filter(|key| !snapshot.gateways.contains_key(*key) && own.contains(&key.namespace));
    warnings.extend(absent.map(|key| {
        format!(
            "no Gateway {}/{} is there: nobody serves the route until it is",
            key.namespace, key.name
        )
    }));
    if !is_ours.is_empty() {
        warnings.extend(hidden);
    }
    warnings.truncate(MOST);
    warnings
}

/// Paths that an Ingress has: it keeps them.
fn hidden_by_ingresses(route: &HttpRoute, served: &Configuration) -> Vec<String> {
    let mut found = BTreeSet::new();
    let paths = route.rules.iter().flat_map(|rule| &rule.matches).map(|one| match &one.path {
        PathMatch::Exact(path) => Some((PathKind::Exact, path)),
        PathMatch::Prefix(path) => Some((PathKind::Prefix, path)),
        PathMatch::Expression(_) | PathMatch::Method(_) => None,
    });
    for (kind, path) in paths.flatten() {
        for host in &route.hostnames {
            let server = served.servers.get(host.as_str());
            let mut locations = server.iter().flat_map(|server| &server.locations);
            let same = locations.find(|one| one.kind == kind && one.path == *path);
            if let Some(origin) = same.and_then(|location| location.origin.as_ref()) {
                // Nothing is said of what other namespaces have but what is refused to Ingresses, too.
                let owner = if origin.namespace == route.meta.key.namespace {
                    origin.to_string()
                } else {
                    "an Ingress".to_owned()
                };
                found.insert(format!(
                    "{host}{path} is {owner}'s, and stays so until that names it no longer"
                ));
            }
        }
    }
    found.into_iter().collect()
}

/// What decides about routes besides themselves: the Gateways that they name, with their Secrets.
fn around(named: &BTreeSet<ObjectKey>, snapshot: &Snapshot) -> Snapshot {
    let gateways = named.iter().filter_map(|key| snapshot.gateways.get_key_value(key));
    let gateways: imbl::OrdMap<ObjectKey, std::sync::Arc<Gateway>> =
        gateways.map(|(key, one)| (key.clone(), one.clone())).collect();
    let secrets = gateways.values().flat_map(|one| gateway::secrets_of(one));
    let secrets =
        secrets.filter_map(|key| Some((key.clone(), snapshot.secrets.get(&key)?.clone())));
    Snapshot {
        secrets: secrets.collect(),
        gateways,
        gateway_classes: snapshot.gateway_classes.clone(),
        services: snapshot.services.clone(),
        namespaces: snapshot.namespaces.clone(),
        grants: snapshot.grants.clone(),
        ..Snapshot::default()
    }
}

fn route_parents(route: &HttpRoute) -> Vec<ObjectKey> {
    route.parents.iter().filter_map(|parent| named_gateway(parent, &route.meta.key)).collect()
}

fn stream_parents(route: &StreamRoute) -> Vec<ObjectKey> {
    route.parents.iter().filter_map(|parent| named_gateway(parent, &route.meta.key)).collect()
}

fn named_gateway(parent: &ParentRef, route: &ObjectKey) -> Option<ObjectKey> {
    (parent.object.kind == Kind::Gateway.name()).then(|| gateway_of(parent, route))
}

fn gateway_of(parent: &ParentRef, route: &ObjectKey) -> ObjectKey {
    let namespace = parent.object.namespace.as_deref().unwrap_or(&route.namespace);
    ObjectKey::new(namespace, parent.object.name.as_str())
}
