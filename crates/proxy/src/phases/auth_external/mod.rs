//! Somebody else is asked before a request is let in (ngx_http_auth_request_module as ingress-nginx uses it,
//! compat/behaviour.md section 16). Its answer may be remembered; its body is of no interest.

mod caching;
mod ext_authz;
mod of_route;
mod question;
mod sign_in;
mod snippet;

pub(super) use sign_in::{instead_of_401, instead_of_applications};

use super::access::{self, Verdict};
use super::{Stop, access_log, hops, request_headers};
use crate::authenticator::{Authenticator, Said};
use crate::error::Error;
use crate::exchange::{Exchange, Log};
use crate::snippet::Told;
use crate::trace::Asked;
use crate::under_way::KeptHeads;
use crate::variables;
use bytes::Bytes;
use http::{Method, StatusCode};
use model::hide_in_url;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use upstream::{Call, Head, Try, call};
use wire::{Length, Response};

/// Bytes of the answer's body that are read so that its connection can be kept, and how long that may take.
const DRAINED: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether anybody is to be asked; also where nobody can be, which closes the location.
pub(super) fn asks(exchange: &Exchange) -> bool {
    let spot = exchange.spot();
    spot.extras().guard.is_some() || spot.extras().authenticator.is_some() || is_guarded(exchange)
}

/// Whether a filter of a route guards the location.
fn is_guarded(exchange: &Exchange) -> bool {
    let route = exchange.spot().location.policy.route.as_ref();
    route.is_some_and(|filters| filters.guard.is_some())
}

/// Asks, where the location has somebody to ask.
pub(super) async fn check(exchange: &mut Exchange) -> Result<Verdict, Stop> {
    if let Some(guard) = exchange.spot().extras().guard.clone() {
        // Boxed, so that other requests do not carry the room for it.
        return Box::pin(of_route::check(exchange, &guard)).await;
    }
    let Some(authenticator) = exchange.spot().extras().authenticator.clone() else {
        if is_guarded(exchange) {
            return Err(Error::Authenticator("nobody can be asked".to_owned()).into());
        }
        return Ok(Verdict::Silent);
    };
    if access::asks_nobody(exchange) {
        return Ok(Verdict::Silent);
    }
    if authenticator.policy.snippet.is_some()
        && let Some(verdict) = snippet::instead(exchange, &authenticator)?
    {
        return Ok(verdict);
    }
    if let Some(trace) = &exchange.trace {
        let target = variables::as_asked(&authenticator.destination.url.target, exchange);
        let authority = variables::as_asked(&authenticator.destination.url.authority, exchange);
        let whom = hide_in_url(&format!("{authority}{target}"));
        let destination = &authenticator.destination;
        let nobody = destination.has_nobody().then(|| Box::new(destination.url.clone()));
        trace.asked.borrow_mut().push(Asked { whom, nobody });
        if trace.dry {
            return Ok(Verdict::Pass);
        }
    }
    let remembered = caching::remembered(exchange, &authenticator);
    // A key that was too long is nobody's.
    variables::fit(exchange)?;
    let said = match remembered {
        Ok(said) => {
            log(exchange, said.status, Vec::new());
            said
        }
        Err(key) => {
            let told = snippet::told(exchange, &authenticator)?;
            let mut tries = Vec::new();
            // Boxed, so that other requests do not carry the room for it.
            let answer = Box::pin(ask(exchange, &authenticator, &told, &mut tries)).await;
            let status = answer.as_ref().map_or(StatusCode::BAD_GATEWAY, |answer| answer.status);
            log(exchange, status, tries);
            let answer = answer?;
            let said = Arc::new(understood(exchange, &authenticator, &answer));
            if let Some(key) = key {
                caching::remember(exchange, &authenticator, &told, key, &answer, &said);
            }
            drain(exchange, answer);
            said
        }
    };
    snippet::set_variables(exchange, &said)?;
    KeptHeads::keep(&mut exchange.kept_heads, &exchange.connection, said.size());
    let notes = &mut exchange.visit.authenticated;
    notes.headers.clone_from(&said.headers);
    notes.cookies.clone_from(&said.cookies);
    notes.always_set_cookie = authenticator.policy.always_set_cookie;
    match said.status.as_u16() {
        200..=299 => Ok(Verdict::Pass),
        401 | 403 => Ok(refused(&said)),
        status => Err(Error::Authenticator(format!("it answered {status}")).into()),
    }
}

/// `enable-auth-access-log`: the question has a line of its own, before that of the request (ngx_http_log_module,
/// `log_subrequest`).
fn log(exchange: &mut Exchange, status: StatusCode, tries: Vec<Rc<Try>>) {
    if !exchange.generation.global().logs.auth_access {
        return;
    }
    // Nobody gets a body of it.
    tries.iter().for_each(|attempt| attempt.replace());
    let last = tries.last().and_then(|attempt| attempt.status.get());
    let of_question = Log {
        status: last.unwrap_or(status.as_u16()),
        received: exchange.request.head_size as u64,
        tries: tries.into(),
        ..Log::default()
    };
    let of_request = std::mem::replace(&mut exchange.log, of_question);
    access_log::write(exchange);
    exchange.log = of_request;
}

async fn ask(
    exchange: &Exchange,
    authenticator: &Authenticator,
    told: &Told,
    tries: &mut Vec<Rc<Try>>,
) -> Result<Response, Error> {
    hops::goes_on(exchange)?;
    let destination = &authenticator.destination;
    let authority = variables::as_asked(&destination.url.authority, exchange);
    let whose = exchange.spot().location.namespace();
    let way = destination.way_to(&authority, exchange.worker.names(), &whose).await;
    let way = way.ok_or_else(|| {
        Error::Authenticator(format!("{} cannot be found", hide_in_url(&authority)))
    })?;
    let method = authenticator.policy.method.as_deref().unwrap_or("GET");
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
    let head = question::head(exchange, authenticator, told, &method);
    variables::fit(exchange)?;
    let question = Call {
        head: Head::Http1(head, Length::Known(0)),
        method: &method,
        body: None,
        policy: &authenticator.towards,
        whose: &whose,
        cause: exchange.connection.cause(),
    };
    let answer = call(&exchange.worker.pool, &way, &question, tries).await;
    answer.map_err(|error| Error::Authenticator(error.to_string()))
}

/// What counts of an answer, without the rest of it.
fn understood(exchange: &Exchange, authenticator: &Authenticator, answer: &Response) -> Said {
    let headers = authenticator.policy.response_headers.iter().filter_map(|name| {
        let value = answer.headers.copied(name)?;
        // What frames or describes the request stays our own.
        (!request_headers::is_own(name.as_bytes()))
            .then(|| (Bytes::copy_from_slice(name.as_bytes()), value))
    });
    Said {
        status: answer.status,
        headers: headers.collect(),
        challenges: answer.headers.all("www-authenticate").map(Bytes::copy_from_slice).collect(),
        cookies: answer.headers.all("set-cookie").map(Bytes::copy_from_slice).collect(),
        asked: snippet::asked(exchange, &answer.headers),
    }
}

fn refused(said: &Said) -> Verdict {
    let mut response = Response::page(said.status);
    if said.status == StatusCode::UNAUTHORIZED {
        for challenge in &said.challenges {
            response.headers.add("WWW-Authenticate", challenge);
        }
    }
    Verdict::Refuse(Box::new(response))
}

/// Reads a short body to its end, aside from the request, so that the connection can be kept. Where many are slow, or
/// never end, connections are closed instead.
fn drain(exchange: &Exchange, mut answer: Response) {
    if answer.body.is_empty() {
        return;
    }
    // It belongs to no request, so what it holds would count for nobody.
    let place = exchange.worker.drains().lend(&exchange.spot().location.namespace());
    if place.grow(1).is_none() {
        return;
    }
    tokio::task::spawn_local(timeout(PATIENCE, async move {
        let _place = place;
        let mut left = DRAINED;
        while let Ok(Some(wire::Frame::Data(data))) = answer.body.frame().await {
            let Some(rest) = left.checked_sub(data.len()) else { return };
            left = rest;
        }
    }));
}
