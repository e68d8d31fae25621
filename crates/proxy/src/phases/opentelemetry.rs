//! The spans of a request: its own, and one for each try at an upstream. Names and attributes are those of the module
//! that ingress-nginx loads (opentelemetry-cpp-contrib), which dashboards know.

use crate::exchange::{Exchange, Place};
use crate::telemetry::{Context, Kind, Numbers, Record, Span, SpanId, TraceId, Value, bounded};
use crate::variables;
use crate::worker::Worker;
use std::time::Duration;
use upstream::Try;
use wire::{Version, since_epoch};

/// Begins the span of the request, if its location is traced. One that an upstream sends on has it already.
pub(super) fn begin(exchange: &mut Exchange) {
    let Some(place) = &exchange.place else { return };
    let Some(policy) = &place.spot().location.policy.opentelemetry else { return };
    if exchange.span.is_none() && !exchange.is_dry() {
        let tracer = &exchange.generation.tracer;
        let headers = &exchange.request.headers;
        let span = tracer.begin(headers, policy.trusts_client, &*exchange.worker);
        exchange.span = Some(Box::new(span));
    }
}

/// Another try begins, which has a span of its own; its head tells the upstream so.
pub(super) fn another_try(exchange: &mut Exchange) {
    if let Some(span) = &mut exchange.span {
        span.attempt = exchange.worker.span();
    }
}

/// The end: hands over what there is to know.
pub(crate) fn end(exchange: &Exchange) {
    let Some(span) = exchange.span.as_deref().filter(|span| span.is_recorded()) else { return };
    let now = since_epoch();
    let owner = exchange.place.as_ref().and_then(Place::owner);
    for (number, attempt) in exchange.log.tries.iter().enumerate() {
        if let Some(id) = attempt.span {
            span.record(owner, client(exchange, span, attempt, id.into(), number, now));
        }
    }
    span.record(owner, server(exchange, span, now));
}

fn server(exchange: &Exchange, span: &Span, now: Duration) -> Record {
    let status = exchange.log.status;
    Record {
        context: span.context,
        parent: span.parent,
        remote_parent: span.parent.is_some(),
        kind: Kind::Server,
        name: name(exchange),
        start: now.saturating_sub(exchange.since.elapsed()),
        end: now,
        failed: status >= 500,
        attributes: attributes(exchange, status),
    }
}

/// `opentelemetry-operation-name`, else the path of the location, as nginx names locations.
fn name(exchange: &Exchange) -> String {
    let Some(place) = &exchange.place else { return String::new() };
    let location = &place.spot().location;
    let policy = location.policy.opentelemetry.as_ref();
    let text = match policy.and_then(|policy| policy.operation_name.as_ref()) {
        Some(template) => variables::of_request(template, exchange),
        None => location.path.clone(),
    };
    bounded(text.as_bytes())
}

fn attributes(exchange: &Exchange, status: u16) -> Vec<(&'static str, Value)> {
    let request = &exchange.request;
    let connection = &exchange.connection;
    let mut attributes = vec![
        ("http.method", Value::from(request.method.as_str())),
        ("http.flavor", flavor(request.version).into()),
        ("http.target", Value::text(exchange.received())),
        ("http.host", Value::text(&request.authority)),
        ("http.scheme", if connection.tls.is_some() { "https" } else { "http" }.into()),
        ("http.status_code", status.into()),
        ("net.host.port", connection.local.port().into()),
        ("net.peer.ip", Value::text(&exchange.client_text())),
        ("net.peer.port", connection.peer.port().into()),
    ];
    if let Some(agent) = request.headers.get("user-agent") {
        attributes.push(("http.user_agent", Value::text(agent)));
    }
    if let Some(place) = &exchange.place {
        attributes.push(("http.server_name", place.site.server.name.as_str().into()));
        attributes.push(("http.route", place.spot().location.path.as_str().into()));
    }
    attributes
}

fn flavor(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2.0",
    }
}

fn client(
    exchange: &Exchange,
    span: &Span,
    attempt: &Try,
    id: SpanId,
    number: usize,
    now: Duration,
) -> Record {
    let start = now.saturating_sub(attempt.since.elapsed());
    let status = attempt.status.get();
    let mut attributes = vec![
        ("http.method", Value::from(exchange.request.method.as_str())),
        ("net.peer.ip", attempt.address.ip().to_string().as_str().into()),
        ("net.peer.port", attempt.address.port().into()),
    ];
    if number > 0 {
        attributes.push(("http.resend_count", Value::Number(number as i64)));
    }
    match status {
        Some(status) if attempt.header.get().is_some() => {
            attributes.push(("http.status_code", status.into()));
        }
        // Nothing came; the status is what the client would be told.
        Some(504) => attributes.push(("error.type", "timeout".into())),
        Some(_) => attributes.push(("error.type", "connection".into())),
        None => attributes.push(("error.type", "cancelled".into())),
    }
    Record {
        context: Context { span: id, ..span.context },
        parent: Some(span.context.span),
        remote_parent: false,
        kind: Kind::Client,
        name: bounded(exchange.request.method.as_str().as_bytes()),
        start,
        end: attempt.ended.get().map_or(now, |time| start + time),
        failed: status.is_none_or(|status| status >= 400),
        attributes,
    }
}

impl Numbers for Worker {
    fn trace(&self) -> TraceId {
        TraceId::drawn(self.numbers.random_number())
    }

    fn span(&self) -> SpanId {
        SpanId::drawn(self.numbers.random_number() as u64)
    }
}
