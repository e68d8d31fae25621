//! A unary gRPC call.

use super::{Target, http2};
use crate::{
    exchange::{Answer, Body, Grpc, Request},
    latin1,
    wire::{Failure, Wire},
};

/// Compression flag and length come before a message.
const PREFIX: usize = 5;

/// Sends one message and reads the one that comes back.
pub(super) async fn call(
    wire: Wire,
    request: &Request,
    call: &Grpc,
    target: &Target<'_>,
) -> Result<Answer, Failure> {
    let authority = request.host.as_deref().unwrap_or(target.host);
    let own = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", authority),
        (":path", &call.method),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut fields: Vec<_> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    fields.extend(call.metadata.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
    let message = call.message.as_deref().unwrap_or("hi").as_bytes();
    let length = u32::try_from(message.len()).map_err(|_| Failure::Unsendable)?.to_be_bytes();
    let (mut answer, body) =
        http2::stream(wire, &fields, &[&[0], &length[..], message].concat()).await?;
    let message = if body.len() > PREFIX { &body[PREFIX..] } else { &body[..] };
    answer.body = Some(Body::Text(latin1::text(message)));
    Ok(answer)
}
