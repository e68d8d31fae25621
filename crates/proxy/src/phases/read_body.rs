//! `proxy-request-buffering`: the body is read whole before an upstream is chosen, in memory and then in a file
//! (ngx_http_request_body.c). Without buffering it is only counted on its way.

use super::Stop;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::http::{Body, Frame, Spool};

pub(super) async fn whole(exchange: &mut Exchange) -> Result<(), Stop> {
    let location = exchange.spot().location.clone();
    let policy = location.policy.body;
    if exchange.request.body.is_empty() {
        return Ok(());
    }
    let body = std::mem::replace(&mut exchange.request.body, Body::empty());
    exchange.request.body = body.limited(policy.max_size);
    // A body that came whole with its head costs nothing to keep (nginx: preread).
    if !policy.request_buffering && !exchange.request.body.is_at_hand() {
        return Ok(());
    }
    let memory = policy.request_buffer.unwrap_or(exchange.generation.global().limits.body_buffer);
    let mut spool = Spool::default();
    let body = &mut exchange.request.body;
    while let Some(frame) = body.frame().await.map_err(Error::RequestBody)? {
        match frame {
            Frame::Data(data) => spool.push(data, memory).await.map_err(Error::RequestBody)?,
            Frame::Trailers(trailers) => spool.end(trailers),
        }
    }
    exchange.request.body = Body::spool(spool);
    Ok(())
}
