//! Clients that may not come in are sent to the sign-in page, with the URL they wanted (`auth-signin`).

use super::super::{Stop, errors, failed, redirects};
use super::question::for_url;
use crate::exchange::Exchange;
use crate::variables;
use http::StatusCode;
use wire::{Response, Source};

/// A redirect to the sign-in page in place of a 401 of the guards. What challenges there are stay with it.
pub(in crate::phases) fn instead_of_401(exchange: &mut Exchange, stop: Stop) -> Stop {
    let Some(authenticator) = exchange.spot().extras().authenticator.clone() else { return stop };
    let Some(page) = &authenticator.policy.sign_in else { return stop };
    let refusal = match stop {
        Stop::Answer(refusal) if refusal.status == StatusCode::UNAUTHORIZED => refusal,
        other => return other,
    };
    let location = for_url(variables::of_request(page, exchange).as_bytes());
    // nginx has a location of its own for this answer, which knows nothing of `relative-redirects` of an Ingress.
    let location = redirects::absolute(exchange, false, location);
    let mut response = Response::redirect(StatusCode::FOUND, location);
    for challenge in refusal.headers.all("www-authenticate") {
        response.headers.add("WWW-Authenticate", challenge);
    }
    exchange.visit.authenticated.to_sign_in = true;
    response.into()
}

/// The same in place of an application's own 401, where answers of upstreams are looked at: the location has an
/// `error_page` for the status, whoever says it, and before any other one (nginx.tmpl).
#[cold]
#[inline(never)]
pub(in crate::phases) fn instead_of_applications(exchange: &mut Exchange, response: &mut Response) {
    let is_applications = response.source == Source::Upstream;
    if !is_applications || exchange.place.is_none() || !errors::intercepts(exchange) {
        return;
    }
    let close = response.close;
    exchange.replaces_answers();
    let refusal = std::mem::replace(response, Response::empty(StatusCode::UNAUTHORIZED));
    *response = match instead_of_401(exchange, refusal.into()) {
        Stop::Answer(answer) => *answer,
        Stop::Fail(error) => failed::answer_error(exchange, &error),
    };
    response.close |= close;
}
