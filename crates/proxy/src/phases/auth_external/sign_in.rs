//! Clients that may not come in are sent to the sign-in page, with the URL they wanted (`auth-signin`).

use super::super::Stop;
use super::question::for_url;
use crate::exchange::Exchange;
use crate::http::Response;
use crate::variables;
use http::StatusCode;

/// A redirect to the sign-in page in place of a 401 of the guards. What challenges there are stay with it.
pub(in crate::phases) fn instead_of_401(exchange: &mut Exchange, stop: Stop) -> Stop {
    let Some(authenticator) = exchange.spot().authenticator.clone() else { return stop };
    let Some(page) = &authenticator.policy.sign_in else { return stop };
    let refusal = match stop {
        Stop::Answer(refusal) if refusal.status == StatusCode::UNAUTHORIZED => refusal,
        other => return other,
    };
    let location = for_url(variables::text_of(page, exchange).as_bytes());
    let mut response = Response::redirect(StatusCode::FOUND, absolute(exchange, location));
    for challenge in refusal.headers.all("www-authenticate") {
        response.headers.add("WWW-Authenticate", challenge.clone());
    }
    exchange.authenticated.to_sign_in = true;
    response.into()
}

/// nginx makes paths absolute with the scheme of the connection and the host asked for.
fn absolute(exchange: &Exchange, location: Vec<u8>) -> Vec<u8> {
    let relative = exchange.spot().location.policy.relative_redirects
        || exchange.generation.global().relative_redirects;
    if !location.starts_with(b"/") || relative {
        return location;
    }
    let scheme = if exchange.connection.tls.is_some() { "https" } else { "http" };
    [format!("{scheme}://{}", exchange.host).as_bytes(), &location].concat()
}
