//! The head towards an upstream where nothing is configured about it: X-Real-IP to X-Scheme in one piece, which was
//! written for the request before.

use super::{request_headers, route_filters};
use crate::exchange::Exchange;
use bytes::BytesMut;
use wire::http1::write;

/// Appends the fields that Fairway sets, if that is all there is to it: nothing that is configured stands in their place,
/// and nobody else is named before the client.
pub(super) fn at_once(exchange: &Exchange, out: &mut BytesMut) -> bool {
    let (generation, real) = (&exchange.generation, &exchange.generation.global().real_ip);
    let appends = real.forwarded_headers && real.full_forwarded_for;
    let is_usual = exchange.snippet.is_none()
        && exchange.span.is_none()
        && generation.request_headers.is_empty()
        && route_filters::of_request(exchange).is_none()
        && !appends;
    if !is_usual {
        return false;
    }
    write::field(out, b"Host", &request_headers::host(exchange));
    let put = |name: &str, value: &[u8]| write::field(out, name.as_bytes(), value);
    request_headers::identity(exchange, put);
    lines(exchange, out);
    let received = request_headers::joined(exchange, &real.forwarded_for_header);
    let put = |name: &str, value: &[u8]| write::field(out, name.as_bytes(), value);
    request_headers::original(exchange, received.as_ref(), put);
    for (name, value) in &exchange.visit.authenticated.headers {
        write::field(out, name, value);
    }
    true
}

/// Appends X-Real-IP to X-Scheme.
fn lines(exchange: &Exchange, out: &mut BytesMut) {
    let (serial, client) = (exchange.connection.serial, exchange.client);
    let kept = &exchange.worker.lines;
    if let Some(lines) = kept.get(serial, client, &exchange.forwarded) {
        return out.extend_from_slice(&lines);
    }
    let start = out.len();
    let text = exchange.client_text();
    write::field(out, b"X-Real-IP", &text);
    write::field(out, b"X-Forwarded-For", &text);
    request_headers::way_in(&exchange.forwarded, |name, value| {
        write::field(out, name.as_bytes(), value);
    });
    kept.put(serial, client, &exchange.forwarded, &out[start..]);
}
