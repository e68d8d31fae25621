//! Cross-origin resource sharing: preflights are answered, answers to allowed origins say so
//! (compat/behaviour.md section 17; for routes as the Gateway API has it).

use super::{Stop, access, route_filters};
use crate::exchange::Exchange;
use crate::generation::cors::{CREDENTIALS, EXPOSE, HEADERS, MAX_AGE, METHODS, ORIGIN};
use bytes::Bytes;
use http::{Method, StatusCode};
use model::policy::{Cors, Origins};
use wire::Response;

/// What only a filter says where there is one, whatever the upstream answers.
const ALL: [&str; 6] = [ORIGIN, CREDENTIALS, METHODS, HEADERS, EXPOSE, MAX_AGE];
const ASKED_METHOD: &str = "access-control-request-method";
const ASKED_HEADERS: &str = "access-control-request-headers";

/// Notes whether the origin is allowed, and answers its OPTIONS requests, whatever they ask for; at a route all
/// preflights and no other OPTIONS requests.
pub(super) fn preflight(exchange: &mut Exchange) -> Result<(), Stop> {
    let policy = exchange.spot().location.policy.cors.as_ref();
    // nginx answers them in the program of the location, and tells origins there.
    let policy = policy.filter(|_| !access::is_excepted(exchange));
    let (allowed, ends) = match policy {
        None => (None, false),
        Some(policy) if route_filters::is_of_gateway(exchange) => {
            (allowed_by_route(policy, exchange), is_preflight(exchange))
        }
        Some(policy) => {
            let allowed = allowed(policy, exchange);
            let ends = allowed.is_some() && exchange.request.method == Method::OPTIONS;
            (allowed, ends)
        }
    };
    if exchange.visit.allowed_origin != allowed {
        exchange.visit.allowed_origin = allowed;
    }
    if ends { Err(Response::empty(StatusCode::NO_CONTENT).into()) } else { Ok(()) }
}

/// What Access-Control-Allow-Origin says. Several Origin lines are no origin.
fn allowed(policy: &Cors, exchange: &Exchange) -> Option<Bytes> {
    let listed = match &policy.origins {
        Origins::Any => return Some(Bytes::from_static(b"*")),
        Origins::Listed(listed) => listed,
    };
    let origin = origin(exchange)?;
    listed.iter().any(|item| item.matches(origin)).then(|| Bytes::copy_from_slice(origin))
}

/// The same at a route: a star is the origin itself where credentials are allowed.
fn allowed_by_route(policy: &Cors, exchange: &Exchange) -> Option<Bytes> {
    match policy.origins {
        Origins::Any if policy.credentials => origin(exchange).map(Bytes::copy_from_slice),
        Origins::Any | Origins::Listed(_) => allowed(policy, exchange),
    }
}

fn origin(exchange: &Exchange) -> Option<&[u8]> {
    let mut origins = exchange.request.headers.all("origin");
    origins.next().filter(|_| origins.next().is_none())
}

/// Whether a browser asks what it may ask (Fetch, section 4.8).
fn is_preflight(exchange: &Exchange) -> bool {
    let headers = &exchange.request.headers;
    exchange.request.method == Method::OPTIONS && headers.has("origin") && headers.has(ASKED_METHOD)
}

/// Tells an allowed origin so. What the upstream says of the same is replaced; at a route it is so for every origin.
pub(super) fn tell(exchange: &Exchange, response: &mut Response) {
    let Some(told) = exchange.place.as_ref().and_then(|place| place.spot().extras().cors.as_ref())
    else {
        return;
    };
    let is_route = route_filters::is_of_gateway(exchange);
    if is_route {
        response.headers.retain(|field| !ALL.iter().any(|name| field.is(name)));
        response.headers.add("Vary", "Origin");
    }
    let Some(origin) = &exchange.visit.allowed_origin else { return };
    response.headers.set(ORIGIN, origin);
    for (name, value) in &told.always {
        response.headers.set(name, value);
    }
    if is_route && is_preflight(exchange) {
        for (name, value) in &told.preflight {
            response.headers.set(name, value);
        }
        echo(exchange, response);
    }
}

/// Where credentials are allowed browsers know no star: all that is asked for is told by its name.
fn echo(exchange: &Exchange, response: &mut Response) {
    let Some(policy) = &exchange.spot().location.policy.cors else { return };
    let lists =
        [(ASKED_METHOD, METHODS, &policy.methods), (ASKED_HEADERS, HEADERS, &policy.headers)];
    for (asked, told, list) in lists {
        if policy.credentials && list == "*" {
            for value in exchange.request.headers.all(asked) {
                response.headers.add(told, value);
            }
        }
    }
}
