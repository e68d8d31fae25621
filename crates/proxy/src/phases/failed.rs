//! What a request gets that failed, and the line of the error log about it.

use super::Stop;
use crate::brief::Brief;
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::told::About;
use http::Method;
use model::Printable;
use shares::Line;
use std::fmt::Display;
use upstream::TryError;
use wire::{Length, Response};

/// The answer that ended a request early.
pub(super) fn response_of(exchange: &Exchange, stop: Stop) -> Response {
    let mut response = match stop {
        Stop::Answer(response) => *response,
        Stop::Fail(error) => answer_error(exchange, &error),
    };
    // HEAD is told how long the page would be, as by nginx.
    if exchange.request.method == Method::HEAD
        && response.announced_length.is_none()
        && let Length::Known(length @ 1..) = response.body.length()
    {
        response.announced_length = Some(length);
    }
    response
}

/// The only place where an error becomes an answer.
pub(super) fn answer_error(exchange: &Exchange, error: &Error) -> Response {
    let mut response = Response::page(error.status());
    response.close = error.closes();
    log_error(exchange, error);
    response
}

/// What a client of HTTP/2 gets in place of an answer whose head is too long for it.
pub(crate) fn too_long(exchange: &Exchange, size: usize) -> Response {
    answer_error(exchange, &Error::LongHead(size))
}

/// Lines about what FastCGI responders wrote to their standard error, out of the same share of the log.
pub(super) fn tell_complaints(exchange: &Exchange) {
    for tried in &exchange.log.tries {
        let stderr = tried.stderr.take();
        if !stderr.is_empty() && may_tell(exchange, About::Failure) {
            let (text, upstream) = (String::from_utf8_lossy(&stderr), tried.address);
            tracing::error!(%upstream, stderr = ?text.trim_end(), "FastCGI sent in stderr");
        }
    }
}

/// The line about a request that an address list or a wrong password kept out, at nginx's level: what bans clients
/// reads the error log.
#[cold]
pub(super) fn tell_refusal(exchange: &Exchange, guard: &'static str, what: &dyn Display) {
    if exchange.is_made_up() || !may_tell(exchange, About::Refusal(guard)) {
        return;
    }
    let (client, host, what) = (exchange.client, &*exchange.host, Brief(what));
    let request = String::from_utf8_lossy(exchange.received());
    let request = Printable(&request);
    tracing::error!(%client, host, %request, "{what}");
}

/// Whether the namespace may have one more line; one that says that some are left out goes before it.
fn may_tell(exchange: &Exchange, about: About) -> bool {
    let owner = exchange.place.as_ref().and_then(Place::owner);
    let namespace = owner.map(|owner| &**owner).unwrap_or_default();
    let which = if about == About::Failure { "failed" } else { "refused" };
    match exchange.worker.shared.told.line(owner, about) {
        None => return false,
        Some(Line { left_out: 0, is_last: false }) => {}
        Some(Line { left_out, is_last }) => tracing::warn!(
            namespace,
            left_out,
            paused = is_last,
            "not all {which} requests of this namespace are told: it has so many lines a minute (docs/limits.md)"
        ),
    }
    true
}

/// The line of the error log, once a minute for each namespace and limit: whoever is refused often could fill the log
/// otherwise. The others are of the level of what clients do wrong (`error-log-level: info` shows them).
pub(super) fn tell_once_a_minute(exchange: &Exchange, about: About, what: &dyn Display) {
    // Nobody sent it, and whoever made it up is told the outcome.
    if exchange.is_made_up() {
        return;
    }
    let (client, host) = (exchange.client, &*exchange.host);
    let request = String::from_utf8_lossy(exchange.received());
    let request = Printable(&request);
    let owner = exchange.place.as_ref().and_then(Place::owner);
    match exchange.worker.shared.told.line(owner, about) {
        Some(line) => {
            if let Some(place) = &exchange.place {
                let (host, location) = (&place.site.server.name, &place.spot().location);
                exchange.worker.shared.watched.route_failed(host, location, what);
            }
            let namespace = owner.map(|owner| &**owner).unwrap_or_default();
            tracing::warn!(
                %client, host, %request, namespace, before = line.left_out,
                "{what} (told once a minute for each namespace; before: how many were not)"
            );
        }
        None => tracing::debug!(%client, host, %request, "{what}"),
    }
}

/// The error log's line: what went wrong for which request of whom. A namespace whose requests fail all the time has a
/// share of the log.
fn log_error(exchange: &Exchange, error: &Error) {
    if exchange.is_made_up() {
        return;
    }
    if matches!(error, Error::Upstream(TryError::Places)) {
        return tell_once_a_minute(exchange, About::Places, error);
    }
    let client = exchange.client;
    let host = &*exchange.host;
    let request = String::from_utf8_lossy(exchange.received());
    let request = Printable(&request);
    let upstream =
        exchange.log.tries.last().map(|last| last.address.to_string()).unwrap_or_default();
    let level = error.level();
    if level <= tracing::Level::WARN {
        if !may_tell(exchange, About::Failure) {
            return;
        }
        if let Some(place) = &exchange.place {
            let (host, location) = (&place.site.server.name, &place.spot().location);
            exchange.worker.shared.watched.route_failed(host, location, error);
        }
    }
    // Upstreams have their say in some.
    let error = Brief(error);
    match level {
        tracing::Level::ERROR => tracing::error!(%client, host, %request, upstream, "{error}"),
        tracing::Level::WARN => tracing::warn!(%client, host, %request, upstream, "{error}"),
        _ => tracing::debug!(%client, host, %request, upstream, "{error}"),
    }
}
