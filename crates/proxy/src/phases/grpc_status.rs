//! What clients of gRPC are told where Fairway itself answers at a Gateway: a status of theirs in place of a page.

use crate::exchange::Exchange;
use bytes::Bytes;
use http::StatusCode;
use model::{Backend, Kind};
use wire::{Body, Response, Source, Version};

const DEADLINE_EXCEEDED: &str = "4";
const PERMISSION_DENIED: &str = "7";
const UNIMPLEMENTED: &str = "12";
const UNAVAILABLE: &str = "14";
const UNKNOWN: &str = "2";

/// Replaces an answer of our own to a call that a GRPCRoute has, or that no route of a Gateway has.
pub(super) fn tell(exchange: &Exchange, response: &mut Response) {
    let is_call = response.source == Source::Own
        && response.status.as_u16() >= 400
        && exchange.request.version == Version::Http2
        && exchange.request.is_grpc();
    if !is_call || !is_of_gateway(exchange) || response.status == StatusCode::MISDIRECTED_REQUEST {
        return;
    }
    let status = match response.status {
        StatusCode::NOT_FOUND => UNIMPLEMENTED,
        StatusCode::FORBIDDEN => PERMISSION_DENIED,
        StatusCode::GATEWAY_TIMEOUT => DEADLINE_EXCEEDED,
        StatusCode::INTERNAL_SERVER_ERROR if is_broken(exchange) => UNAVAILABLE,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
        _ => UNKNOWN,
    };
    let mut told = Response::empty(StatusCode::OK);
    told.close = response.close;
    told.headers.add("Content-Type", Bytes::from_static(b"application/grpc"));
    told.headers.add("grpc-status", Bytes::from_static(status.as_bytes()));
    let reason = response.status.canonical_reason().unwrap_or_default();
    told.headers.add("grpc-message", Bytes::from_static(reason.as_bytes()));
    response.body = Body::empty();
    *response = told;
}

/// Whether a GRPCRoute has the call, or nobody where Gateways are served.
fn is_of_gateway(exchange: &Exchange) -> bool {
    let generation = &exchange.generation;
    let location = exchange.place.as_ref().map(|place| &place.spot().location);
    match location.map(|location| (&location.origin, &location.backend)) {
        Some((Some(origin), _)) => origin.kind == Kind::GrpcRoute,
        Some((None, backend)) => *backend == Backend::NotFound && !generation.routes.is_empty(),
        None => exchange.connection.door().is_some(),
    }
}

fn is_broken(exchange: &Exchange) -> bool {
    let place = exchange.place.as_ref();
    place.is_some_and(|place| matches!(place.spot().location.backend, Backend::Broken(_)))
}
