//! The gRPC echo: sends the message back, with trailers.

use std::collections::BTreeMap;

use super::{Pod, echo};
use crate::{
    http2::{Connection, Event, MAX_FRAME},
    wire::{Failure, Pair, Wire, value},
};

/// Answers the calls of a connection, one after another.
pub(super) async fn serve(pod: &Pod, wire: Wire) -> Result<(), Failure> {
    let mut connection = Connection::server(wire).await?;
    let mut open: BTreeMap<u32, (Vec<Pair>, Vec<u8>)> = BTreeMap::new();
    loop {
        let ended = match connection.next().await? {
            Event::Headers { stream, fields, last } => {
                open.entry(stream).or_insert((fields, Vec::new()));
                last.then_some(stream)
            }
            Event::Data { stream, bytes, last } => {
                open.get_mut(&stream).ok_or(Failure::Malformed)?.1.extend(bytes);
                last.then_some(stream)
            }
            Event::Reset { stream, .. } => {
                open.remove(&stream);
                None
            }
            _ => None,
        };
        if let Some((stream, (fields, body))) = ended.and_then(|stream| open.remove_entry(&stream))
        {
            answer(pod, &mut connection, stream, fields, &body).await?;
        }
    }
}

async fn answer(
    pod: &Pod,
    connection: &mut Connection,
    stream: u32,
    fields: Vec<Pair>,
    body: &[u8],
) -> Result<(), Failure> {
    let field = |name| value(&fields, name).unwrap_or_default().to_owned();
    let mut seen = pod.saw("HTTP/2", &field(":method"), &field(":path"), body);
    let (code, delay) = (field("echo-grpc-status"), field("echo-delay"));
    seen.headers =
        Some(fields.into_iter().filter(|(name, _)| name != ":method" && name != ":path").collect());
    pod.journal.note(seen);
    if !delay.is_empty() {
        echo::pause(&delay).await?;
    }
    let start: [(&str, &[u8]); 3] = [
        (":status", b"200"),
        ("content-type", b"application/grpc"),
        ("x-pod", pod.name.as_bytes()),
    ];
    if !code.is_empty() && code != "0" {
        let end: [(&str, &[u8]); 2] =
            [("grpc-status", code.as_bytes()), ("grpc-message", b"asked for")];
        return connection.headers(stream, &[&start[..], &end[..]].concat(), true).await;
    }
    connection.headers(stream, &start, false).await?;
    for part in body.chunks(MAX_FRAME) {
        connection.data(stream, part, false).await?;
    }
    connection.headers(stream, &[("grpc-status", b"0"), ("x-trailer", b"kept")], true).await
}
