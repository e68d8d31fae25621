//! Routes of Gateways, and ports of TCP and UDP, as lines of the list.

use super::route::{Place, Route, external};
use crate::query::shown;
use model::{
    Backend, Configuration, Kind, Origin, RouteHost, RouteKey, RuleMatch, Scheme, Stream,
    StreamPort, TlsRoute,
};
use std::sync::Arc;

/// Adds all of them.
pub(super) fn add(routes: &mut Vec<Route>, serving: &Configuration) {
    for (key, host) in &serving.routes {
        for (rule, one) in host.rules.iter().enumerate() {
            let of = |share| of_rule(key, host, (rule, share), serving);
            routes.extend((0..one.shares.len()).filter_map(of));
        }
    }
    for (key, route) in &serving.tls_routes {
        routes.extend((0..route.shares.len()).map(|share| of_tls(key, route, share, serving)));
    }
    routes.extend(serving.streams.iter().map(|(port, stream)| of_port(*port, stream)));
}

/// A share of a rule.
fn of_rule(
    key: &RouteKey,
    host: &Arc<RouteHost>,
    (rule, share): (usize, usize),
    serving: &Configuration,
) -> Option<Route> {
    let matched = &host.rules[rule];
    let location = host.locations.get(matched.shares[share].location)?;
    let place = Place::Rule { key: key.clone(), host: host.clone(), rule };
    let mut route = Route::at(place, host.name.as_str().into());
    route.answered_by(location, serving);
    let filters = location.policy.route.as_ref();
    if location.backend == Backend::NotFound && filters.is_some_and(|one| one.redirect.is_some()) {
        "redirect".clone_into(&mut route.backend);
    }
    let weights: u64 = matched.shares.iter().map(|share| u64::from(share.weight)).sum();
    route.weight = (matched.shares.len() > 1).then_some((matched.shares[share].weight, weights));
    route.id = Some(id(key, route.origin.as_ref(), &format!("{rule}.{share}")));
    let certificate = host.certificate.as_ref().map(ToString::to_string).unwrap_or_default();
    let listener = listener(key).unwrap_or_default();
    route.searched(&format!("{certificate} {listener} {}", asks(&matched.matches)));
    Some(route)
}

/// A share of connections that are carried on.
fn of_tls(key: &RouteKey, tls: &Arc<TlsRoute>, share: usize, serving: &Configuration) -> Route {
    let one = &tls.shares[share];
    let mut route = Route::at(Place::Tls(key.clone()), key.host.as_str().into());
    route.origin = Some(tls.origin.clone());
    match &one.upstream {
        Some(upstream) => {
            route.backend = shown(upstream);
            route.leads_to(upstream, serving);
        }
        None => "none: connections end at once".clone_into(&mut route.backend),
    }
    let weights: u64 = tls.shares.iter().map(|share| u64::from(share.weight)).sum();
    route.weight = (tls.shares.len() > 1).then_some((one.weight, weights));
    route.id = Some(id(key, route.origin.as_ref(), &share.to_string()));
    route.searched(&listener(key).unwrap_or_default());
    route
}

/// A port, with all that is behind it.
fn of_port(port: StreamPort, stream: &Stream) -> Route {
    let mut route = Route::at(Place::Port(port), port.to_string().into());
    route.origin = route_of(&stream.service);
    route.backend = shown(&stream.service);
    route.id = Some(route.backend.clone());
    route.external = stream.external.as_ref().map(external);
    if stream.shares.is_empty() {
        route.has_behind(&stream.endpoints);
    }
    stream.shares.iter().for_each(|share| route.has_behind(&share.endpoints));
    route.searched("");
    route
}

/// Whose port it is, where that is a route: `TCPRoute namespace/name`.
fn route_of(service: &str) -> Option<Origin> {
    let (kind, name) = service.split_once(' ')?;
    let kind = [Kind::TcpRoute, Kind::UdpRoute].into_iter().find(|one| one.name() == kind)?;
    let (namespace, name) = name.split_once('/')?;
    Some(Origin::new(kind, namespace, name))
}

fn id(key: &RouteKey, origin: Option<&Origin>, number: &str) -> String {
    let origin = origin.map(ToString::to_string).unwrap_or_default();
    shown(format_args!("{origin} {number} {}", listener(key).unwrap_or_default()))
}

/// The listener with an address of its own, as `192.0.2.1:443 *.example.com`.
pub(crate) fn listener(key: &RouteKey) -> Option<String> {
    key.listener.as_ref().map(shown)
}

/// What a rule asks for besides the path. Values may be passwords, and are not told.
pub(crate) fn asks(matches: &RuleMatch) -> String {
    let RuleMatch { scheme, kind: _, path: _, pattern: _, grpc, method, headers, query } = matches;
    let mut all = vec![match scheme {
        Scheme::Http => "HTTP".to_owned(),
        Scheme::Https => "HTTPS".to_owned(),
    }];
    all.extend(grpc.as_ref().map(|call| match &call.method {
        Some(method) => format!("gRPC, method {}", shown(method)),
        None => "gRPC".to_owned(),
    }));
    all.extend(method.as_ref().map(shown));
    all.extend(headers.iter().map(|(name, _)| format!("header {}", shown(name))));
    all.extend(query.iter().map(|(name, _)| format!("query {}", shown(name))));
    all.join(", ")
}
