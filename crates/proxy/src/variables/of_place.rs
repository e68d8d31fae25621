//! What a request has of the server and the location that it came to, as ingress-nginx's template sets it.

use crate::exchange::{Exchange, Place};
use crate::generation::Spot;
use model::{Backend, DEFAULT_BACKEND, Kind, Location, ServiceRef, UpstreamId, Variable};
use std::fmt::Write;
use std::sync::Arc;

/// Appends the value of such a variable.
pub(super) fn push(variable: &Variable, exchange: &Exchange, out: &mut String) {
    use Variable as V;
    let Some(place) = &exchange.place else { return nowhere(variable, exchange, out) };
    let own = exchange.snippet.as_ref().and_then(|running| running.state.own(&variable.name()));
    if let Some(own) = own {
        return out.push_str(own);
    }
    let Some(spot) = settled(exchange, place) else {
        return match variable {
            V::ProxyUpstreamName => out.push('-'),
            V::ServerName => out.push_str(place.site.server.name.as_str()),
            V::Subdomain => out.push_str(subdomain(exchange, place)),
            _ => {}
        };
    };
    let location = &spot.location;
    if *variable == V::ProxyUpstreamName {
        return upstream_of(exchange, location, out);
    }
    let service =
        |part: fn(&ServiceRef) -> &str| location.service.as_deref().map(part).unwrap_or_default();
    match variable {
        V::Namespace => {
            let own = location.origin.as_deref().map(|origin| &*origin.namespace);
            out.push_str(own.unwrap_or_else(|| service(|service| &service.namespace)));
        }
        V::IngressName => {
            out.push_str(location.origin.as_deref().map(|origin| &*origin.name).unwrap_or_default())
        }
        V::ProxyAlternativeUpstreamName => {
            if let Some(canary) = spot.extras().canary.as_deref().filter(|_| exchange.visit.canary)
            {
                out.push_str(&canary.group.id.usual());
            }
        }
        V::ServiceName => out.push_str(service(|service| &service.name)),
        V::ServicePort => out.push_str(service(|service| &service.port)),
        V::LocationPath => out.push_str(&location.path),
        V::ServerName => out.push_str(place.site.server.name.as_str()),
        V::Subdomain => out.push_str(subdomain(exchange, place)),
        _ => {}
    }
}

/// The name of the upstream that a location sets.
fn upstream_of(exchange: &Exchange, location: &Location, out: &mut String) {
    if exchange.visit.early {
        // The servers of ingress-nginx start with this value.
        return out.push('-');
    }
    if exchange.visit.stands_in {
        let stand_in = &location.policy.default_backend;
        return out.push_str(&stand_in.as_ref().map(UpstreamId::usual).unwrap_or_default());
    }
    match (&location.backend, &location.service) {
        (Backend::Upstream(id), _) => out.push_str(&id.usual()),
        // A route that leads nowhere, such as one that redirects, has no default backend.
        (_, _) if is_of_route(location) => out.push('-'),
        (Backend::NotFound, _) => out.push_str(DEFAULT_BACKEND),
        // In ingress-nginx it is closed behind what sets the name.
        (Backend::Denied(_), Some(service)) => {
            let ServiceRef { namespace, name, port } = &**service;
            let _ = write!(out, "{namespace}-{name}-{port}");
        }
        (Backend::Denied(_) | Backend::Broken(_), _) => out.push('-'),
    }
}

/// The same of a request that comes to no location: its host has a server all the same.
fn nowhere(variable: &Variable, exchange: &Exchange, out: &mut String) {
    if *variable == Variable::ProxyUpstreamName && exchange.visit.early {
        return out.push('-');
    }
    if *variable != Variable::ServerName {
        return;
    }
    let listen = &exchange.worker.listen;
    let (port, main) = (exchange.connection.local.port(), [listen.http_port, listen.https_port]);
    let site = exchange.generation.site(port, main, &exchange.host, &exchange.steps);
    match site {
        // What redirects to the other name is a server of its own in nginx.
        Ok(Some(site)) if site.server.redirects(&exchange.host) => out.push_str(&exchange.host),
        Ok(Some(site)) => out.push_str(site.server.name.as_str()),
        Ok(None) | Err(_) => {}
    }
}

/// What stands for the star of a host with one: one label (compat/behaviour.md section 4). Empty for other hosts, and
/// for aliases.
fn subdomain<'a>(exchange: &'a Exchange, place: &Place) -> &'a str {
    let Some(parent) = place.site.server.name.as_str().strip_prefix('*') else { return "" };
    let label = exchange.host.strip_suffix(parent).unwrap_or_default();
    if label.contains('.') { "" } else { label }
}

/// The location whose values the controller has set last: locations that snippets have set none. None before any.
pub(crate) fn settled<'a>(exchange: &Exchange, place: &'a Place) -> Option<&'a Spot> {
    let spot = place.spot();
    match (&exchange.snippet, &spot.extras().snippet) {
        (Some(running), Some(level)) if level.own => {
            place.site.spots.get(running.ingress?).map(Arc::as_ref)
        }
        _ => Some(spot),
    }
}

/// What the template sets to the upstream's name in each location of its own.
pub(super) fn proxy_host(exchange: &Exchange, out: &mut String) {
    let has_met = exchange.snippet.as_ref().is_some_and(|running| running.ingress.is_some());
    if !has_met && exchange.level().is_some_and(|level| level.own) {
        return out.push_str("upstream_balancer");
    }
    push(&Variable::ProxyUpstreamName, exchange, out);
}

/// That of an error backend, where one words the answer: its location sets the variable anew, whoever has set it before
/// (nginx.tmpl: CUSTOM_ERRORS).
pub(super) fn upstream_name(exchange: &Exchange, out: &mut String) {
    match &exchange.onward.paged {
        Some(paged) => out.push_str(&paged.by.usual()),
        None => push(&Variable::ProxyUpstreamName, exchange, out),
    }
}

/// Whether a location is that of a route of the Gateway API.
fn is_of_route(location: &Location) -> bool {
    location.origin.as_deref().is_some_and(|origin| origin.kind != Kind::Ingress)
}
