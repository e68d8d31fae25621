//! The HTTP echo: answers with the request as JSON, unless `Echo-` headers of the request say otherwise.

use std::time::Duration;

use super::{
    http::{Received, Reply},
    json,
};
use crate::{
    duration,
    exchange::Seen,
    latin1, websocket,
    wire::{Failure, Pair, Wire, pair, value, values},
};

/// The longest delay that a request can ask for.
const LONGEST_DELAY: Duration = Duration::from_secs(20);

/// Answers one request; false if the connection is to end.
pub(super) async fn serve(
    pod: &str,
    wire: &mut Wire,
    request: &Received,
    seen: &Seen,
) -> Result<bool, Failure> {
    let headers = &request.headers;
    let upgrade =
        value(headers, "upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    if let Some(key) = value(headers, "sec-websocket-key").filter(|_| upgrade) {
        echo_frames(wire, key).await?;
        return Ok(false);
    }
    for delay in values(headers, "echo-delay") {
        pause(delay).await?;
    }
    if value(headers, "echo-close").is_some() {
        return Ok(false);
    }
    wire.send(&reply(pod, headers, seen)?.bytes(&request.method)?).await?;
    let close = values(headers, "connection").any(|value| value.eq_ignore_ascii_case("close"));
    Ok(request.protocol != "HTTP/1.0" && !close)
}

/// Waits as long as a request asks for, within reason.
pub(super) async fn pause(delay: &str) -> Result<(), Failure> {
    let delay = duration::parse(delay).ok_or(Failure::Malformed)?;
    #[expect(clippy::disallowed_methods, reason = "the delay that a request asks for")]
    tokio::time::sleep(delay.min(LONGEST_DELAY)).await;
    Ok(())
}

fn reply(pod: &str, request: &[Pair], seen: &Seen) -> Result<Reply, Failure> {
    let number = |text: &str| text.parse().map_err(|_| Failure::Malformed);
    let mut status = value(request, "echo-status").map_or(Ok(200), number)?;
    for wish in values(request, "echo-status-on") {
        let (who, code) = wish.split_once('=').ok_or(Failure::Malformed)?;
        if who == pod {
            status = number(code)?;
        }
    }
    let wanted: Vec<Pair> = values(request, "echo-header").map(trimmed).collect();
    let own = !wanted.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let mut headers = Vec::new();
    if own {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    headers.extend(wanted);
    let mut body = json::spaced(seen);
    if let Some(text) = value(request, "echo-body").filter(|text| !text.is_empty()) {
        body = latin1::bytes(text).ok_or(Failure::Unsendable)?;
    }
    if let Some(size) = value(request, "echo-size") {
        body = vec![b'x'; size.parse().map_err(|_| Failure::Malformed)?];
    }
    let trailers = values(request, "echo-trailer")
        .map(|line| latin1::bytes(line).map(|line| pair(&line)).ok_or(Failure::Unsendable))
        .collect::<Result<Vec<Pair>, Failure>>()?;
    let chunked = value(request, "echo-chunked").is_some() || !trailers.is_empty();
    Ok(Reply { status, headers, body, chunked, trailers })
}

fn trimmed(line: &str) -> Pair {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name.trim().to_owned(), value.trim().to_owned())
}

async fn echo_frames(wire: &mut Wire, key: &str) -> Result<(), Failure> {
    let accept = websocket::accept_key(key);
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade";
    wire.send(format!("{head}\r\nSec-WebSocket-Accept: {accept}\r\n\r\n").as_bytes()).await?;
    loop {
        let frame = websocket::read(wire).await?;
        if frame.closes() {
            return wire.send(&websocket::CLOSE).await;
        }
        wire.send(&frame.bytes(None)).await?;
    }
}
