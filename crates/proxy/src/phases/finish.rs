//! The end of a request: it is measured, counted, logged and traced.

use super::{access_log, choose_backend, failed, headers, opentelemetry};
use crate::exchange::Exchange;
use crate::variables;
use http::Method;
use request_metrics::{Observed, Request};
use wire::{Length, Response};

/// The last byte is gone. `body_received` counts what came after the head.
pub(crate) fn finish(exchange: &mut Exchange, body_received: u64) {
    exchange.log.received = exchange.request.head_size as u64 + body_received;
    choose_backend::note_tries(exchange);
    count(exchange);
    access_log::write(exchange);
    failed::tell_complaints(exchange);
    opentelemetry::end(exchange);
}

/// The answer of what is refused before any phase is made what its client gets.
pub(crate) fn refused(exchange: &mut Exchange, response: &mut Response) {
    let headers = &mut response.headers;
    exchange.generation.answer_headers.apply(variables::filler(exchange), headers);
    if exchange.request.method == Method::HEAD
        && let Length::Known(length) = response.body.length()
    {
        response.announced_length = Some(length);
    }
    let watch = exchange.generation.watch;
    headers::keep(exchange, response, watch);
}

/// Counts a request that is over, if a location answered it.
fn count(exchange: &Exchange) {
    let Some(recorder) = &exchange.worker.recorder else { return };
    let Some(place) = &exchange.place else { return };
    let Some(counted) = &place.spot().counted else { return };
    // Who names no host is asked for as the server, as nginx's `$host`.
    let host = match &*exchange.host {
        "" => place.site.server.name.as_str(),
        host => host,
    };
    let request = Request {
        place: &counted.place,
        canary: counted.canary.as_ref().filter(|_| exchange.visit.canary),
        host,
        served: place.site.hosts.iter().find(|name| *name.text == *host),
        method: exchange.request.method.as_str(),
        status: exchange.log.status,
    };
    recorder.count(&request, || observed(exchange));
}

fn observed(exchange: &Exchange) -> Observed {
    let only = match exchange.log.tries.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    Observed {
        took: wire::since(exchange.since),
        connect: only.and_then(|only| only.connected.get()),
        header: only.and_then(|only| only.header.get()),
        response: only.map(|only| only.ended.get().unwrap_or_else(|| wire::since(only.since))),
        received: exchange.log.received,
        sent: exchange.log.sent,
    }
}
