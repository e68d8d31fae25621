//! `proxy-request-buffering`: the body is read whole before an upstream is chosen, in memory and then in a file
//! (ngx_http_request_body.c). Without buffering, and to gRPC services, it is only counted on its way.

use super::{Stop, mirror};
use crate::error::Error;
use crate::exchange::Exchange;
use model::policy::{HttpVersion, Protocol};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use wire::{Body, BodyError, Frame, Length, Patience, Spool, Timer};

pub(super) async fn whole(exchange: &mut Exchange) -> Result<(), Stop> {
    if exchange.is_dry() {
        // Nobody gets it: that of a copy is not even waited for.
        exchange.request.body = Body::empty();
        return Ok(());
    }
    let location = exchange.spot().location.clone();
    let policy = location.policy.body;
    let body = std::mem::replace(&mut exchange.request.body, Body::empty());
    exchange.request.body = body.limited(policy.max_size);
    // CGI wants to know how long a body is before it begins.
    let fcgi = location.policy.protocol == Protocol::Fcgi;
    // Chunks are unknown to HTTP/1.0, which would take them for another request.
    let old = location.policy.http_version == HttpVersion::Http10
        && exchange.request.body.length() == Length::Unknown;
    let unasked = policy.request_buffering || old;
    let buffers = fcgi || (unasked && !streams(exchange)) || mirror::wants_body(exchange);
    // A body that came whole with its head costs nothing to keep (nginx: preread).
    if !buffers && !exchange.request.body.is_at_hand() {
        return Ok(());
    }
    spool(exchange).await
}

/// Whether a body goes on as it comes: both sides of a gRPC stream may speak for hours (ngx_http_grpc_module never
/// buffers, either). To a route, HTTP/2 is how a backend is spoken to and does not make a request one of gRPC.
pub(super) fn streams(exchange: &Exchange) -> bool {
    let policy = &exchange.spot().location.policy;
    if !matches!(policy.protocol, Protocol::Grpc | Protocol::Grpcs) {
        return false;
    }
    policy.route.is_none() || exchange.request.is_grpc()
}

/// Reads the body whole, unless it was.
pub(super) async fn spool(exchange: &mut Exchange) -> Result<(), Stop> {
    if exchange.request.body.is_empty() || exchange.request.body.as_spool().is_some() {
        return Ok(());
    }
    let policy = exchange.spot().location.policy.body;
    let limits = exchange.generation.global().limits;
    // A request that was refused before its body was looked at comes here for its error page.
    let body = std::mem::replace(&mut exchange.request.body, Body::empty());
    exchange.request.body = body.limited(policy.max_size);
    let memory = policy.request_buffer.unwrap_or(limits.body_buffer);
    let pause = exchange.level().and_then(|level| level.settings.client.body_timeout);
    let pause = pause.unwrap_or(limits.body_timeout);
    let (mut patience, timer) = (Patience::new(pause), Timer::new(pause));
    let owner = exchange.spot().location.origin.as_deref();
    let owner = owner.map_or_else(Arc::default, |origin| origin.namespace.clone());
    let worker = exchange.worker.clone();
    let (mut spool, mut trailers) = (Spool::default(), None);
    while let Some(frame) = next(&mut exchange.request.body, &mut patience, &timer).await? {
        match frame {
            Frame::Data(data) => {
                patience.progressed(data.len() as u64);
                let pushed = spool.push(data, memory, worker.scratch(), &owner).await;
                pushed.map_err(Error::RequestBody)?;
            }
            Frame::Trailers(fields) => trailers = Some(fields),
        }
    }
    spool.end(trailers);
    exchange.request.body = Body::spool(spool);
    Ok(())
}

/// The next piece, unless the client has used up its time.
async fn next(
    body: &mut Body,
    patience: &mut Patience,
    timer: &Timer,
) -> Result<Option<Frame>, Error> {
    let next = poll_fn(|cx| match body.poll_frame(cx) {
        Poll::Ready(frame) => Poll::Ready(frame),
        Poll::Pending => patience.poll_exhausted(timer, cx).map(|_| Err(BodyError::Timeout)),
    });
    next.await.map_err(Error::RequestBody)
}
