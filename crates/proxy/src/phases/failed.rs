//! What a request gets that failed, and the line of the error log about it.

use super::Stop;
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::told::{About, Line};
use wire::Response;

/// The answer that ended a request early.
pub(super) fn response_of(exchange: &Exchange, stop: Stop) -> Response {
    match stop {
        Stop::Answer(response) => *response,
        Stop::Fail(error) => answer_error(exchange, &error),
    }
}

/// The only place where an error becomes an answer.
pub(super) fn answer_error(exchange: &Exchange, error: &Error) -> Response {
    let mut response = Response::page(error.status());
    response.close = error.closes();
    log_error(exchange, error);
    response
}

/// Lines about what FastCGI responders wrote to their standard error, out of the same share of the log.
pub(super) fn tell_complaints(exchange: &Exchange) {
    for tried in &exchange.log.tries {
        let stderr = tried.stderr.take();
        if !stderr.is_empty() && may_tell(exchange) {
            let (text, upstream) = (String::from_utf8_lossy(&stderr), tried.address);
            tracing::error!(%upstream, stderr = ?text.trim_end(), "FastCGI sent in stderr");
        }
    }
}

/// Whether the namespace may have one more line; one that says that some are left out goes before it.
fn may_tell(exchange: &Exchange) -> bool {
    let owner = exchange.place.as_ref().and_then(Place::owner);
    let namespace = owner.map(|owner| &**owner).unwrap_or_default();
    match exchange.worker.shared.told.line(owner, About::Failure) {
        None => return false,
        Some(Line { left_out: 0, is_last: false }) => {}
        Some(Line { left_out, is_last }) => tracing::warn!(
            namespace,
            left_out,
            paused = is_last,
            "not all failed requests of this namespace are told: it has so many lines a minute (docs/limits.md)"
        ),
    }
    true
}

/// The error log's line: what went wrong for which request of whom. A namespace whose requests fail all the time has a
/// share of the log.
fn log_error(exchange: &Exchange, error: &Error) {
    let client = exchange.client;
    let host = &*exchange.host;
    let request = String::from_utf8_lossy(exchange.received());
    let upstream =
        exchange.log.tries.last().map(|last| last.address.to_string()).unwrap_or_default();
    let level = error.level();
    if level <= tracing::Level::WARN {
        if !may_tell(exchange) {
            return;
        }
        if let Some(place) = &exchange.place {
            let (host, location) = (&place.site.server.name, &place.spot().location);
            exchange.worker.shared.watched.route_failed(host, location, error);
        }
    }
    match level {
        tracing::Level::ERROR => tracing::error!(%client, host, %request, upstream, "{error}"),
        tracing::Level::WARN => tracing::warn!(%client, host, %request, upstream, "{error}"),
        _ => tracing::debug!(%client, host, %request, upstream, "{error}"),
    }
}
