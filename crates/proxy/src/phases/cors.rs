//! Cross-origin resource sharing: preflights are answered, answers to allowed origins say so
//! (compat/behaviour.md section 17).

use super::Stop;
use crate::exchange::Exchange;
use crate::generation::Told;
use bytes::Bytes;
use http::{Method, StatusCode};
use model::policy::{Cors, Origins};
use wire::Response;

/// Notes whether the origin is allowed, and answers its OPTIONS requests, whatever they ask for.
pub(super) fn preflight(exchange: &mut Exchange) -> Result<(), Stop> {
    exchange.visit.allowed_origin = match &exchange.spot().location.policy.cors {
        Some(policy) => allowed(policy, exchange),
        None => None,
    };
    if exchange.visit.allowed_origin.is_some() && exchange.request.method == Method::OPTIONS {
        Err(Response::empty(StatusCode::NO_CONTENT).into())
    } else {
        Ok(())
    }
}

/// What Access-Control-Allow-Origin says. Several Origin lines are no origin.
fn allowed(policy: &Cors, exchange: &Exchange) -> Option<Bytes> {
    let listed = match &policy.origins {
        Origins::Any => return Some(Bytes::from_static(b"*")),
        Origins::Listed(listed) => listed,
    };
    let mut origins = exchange.request.headers.all("origin");
    let origin = origins.next()?;
    let is_listed = origins.next().is_none() && listed.iter().any(|item| item.matches(origin));
    is_listed.then(|| Bytes::copy_from_slice(origin))
}

/// Tells an allowed origin so. What the upstream says of the same is replaced.
pub(super) fn tell(exchange: &Exchange, response: &mut Response) {
    let Some(origin) = &exchange.visit.allowed_origin else { return };
    let Some(Told(told)) = &exchange.spot().cors else { return };
    response.headers.set("Access-Control-Allow-Origin", origin);
    for (name, value) in told {
        response.headers.set(name, value);
    }
}
