//! HTTP/1 from the client's side.

use std::{io, time::Duration};

use super::{Target, cookies::Jar, decode};
use crate::{
    exchange::{Answer, Request},
    latin1, websocket,
    wire::{Failure, Pair, Wire, pair, value, values},
};

/// How long a raw connection is read on when nothing comes.
const RAW_PATIENCE: Duration = Duration::from_secs(3);

/// The key of every WebSocket handshake.
const WEBSOCKET_KEY: &str = "ZmFpcndheS10ZXN0LWtleQ==";

/// The mask of every WebSocket frame.
const MASK: [u8; 4] = *b"mask";

/// Sends one request and reads its answer.
pub(super) async fn exchange(
    mut wire: Wire,
    request: &Request,
    target: &Target<'_>,
    protocol: &str,
    jar: &Jar,
) -> Result<Answer, Failure> {
    let method = request.method.as_deref().unwrap_or("GET");
    let (head, body) = message(request, target, protocol, jar)?;
    if value(&request.headers, "expect").is_some() {
        wire.send(&head).await?;
        let mut answer = response(&mut wire, method).await?;
        if answer.status == Some(100) {
            wire.send(&body).await?;
            answer = Answer { interim: vec![100], ..response(&mut wire, method).await? };
        }
        jar.keep(request, &answer);
        return Ok(answer);
    }
    match wire.send(&[head, body].concat()).await {
        // Who answers early may close before it has read everything; the answer counts.
        Err(Failure::Io(error)) if hung_up(&error) => {}
        sent => sent?,
    }
    let mut answer = response(&mut wire, method).await?;
    if let Some(text) = request.websocket.as_ref().filter(|_| answer.status == Some(101)) {
        wire.send(&websocket::Frame::text(text).bytes(Some(MASK))).await?;
        answer.websocket = Some(latin1::text(&websocket::read(&mut wire).await?.payload));
    }
    jar.keep(request, &answer);
    Ok(answer)
}

/// Sends exact bytes and reads as many answers as come.
pub(super) async fn raw(
    mut wire: Wire,
    bytes: &str,
    patience: Duration,
) -> Result<Answer, Failure> {
    wire.send(&latin1::bytes(bytes).ok_or(Failure::Unsendable)?).await?;
    wire.patience = Some(patience.min(RAW_PATIENCE));
    let method = bytes.split(' ').next().unwrap_or_default();
    let mut first: Option<Answer> = None;
    while let Ok(answer) = response(&mut wire, method).await {
        match &mut first {
            None => first = Some(answer),
            Some(first) => first.more.extend(answer.status),
        }
    }
    first.ok_or(Failure::Ended)
}

/// Head and body of a request as they go out.
fn message(
    request: &Request,
    target: &Target<'_>,
    protocol: &str,
    jar: &Jar,
) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let has = |name| value(&request.headers, name).is_some();
    let method = request.method.as_deref().unwrap_or("GET");
    let mut head = format!("{method} {} {}\r\n", target.path, protocol.to_uppercase());
    if !has("host") {
        head += &format!("Host: {}\r\n", request.host.as_deref().unwrap_or(target.host));
    }
    for (name, value) in &request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if let Some(cookies) = jar.header(request) {
        head += &format!("Cookie: {cookies}\r\n");
    }
    let mut body = body(request)?;
    let chunked = has("transfer-encoding");
    if (!body.is_empty() || request.body.is_some()) && !has("content-length") && !chunked {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    if request.websocket.is_some() {
        head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
        head += &format!("Sec-WebSocket-Key: {WEBSOCKET_KEY}\r\n");
    }
    if chunked && request.body.is_some() && !request.body_raw {
        let size = if body.is_empty() { String::new() } else { format!("{:x}\r\n", body.len()) };
        let end: &[u8] = if body.is_empty() { b"0\r\n\r\n" } else { b"\r\n0\r\n\r\n" };
        body = [size.as_bytes(), &body, end].concat();
    }
    Ok((latin1::bytes(&(head + "\r\n")).ok_or(Failure::Unsendable)?, body))
}

/// The body of a request before it is framed.
pub(super) fn body(request: &Request) -> Result<Vec<u8>, Failure> {
    match (request.body_size, &request.body) {
        (Some(size), _) => Ok(vec![b'b'; size]),
        (None, Some(text)) => latin1::bytes(text).ok_or(Failure::Unsendable),
        (None, None) => Ok(Vec::new()),
    }
}

/// Reads one answer to a request with that method.
async fn response(wire: &mut Wire, method: &str) -> Result<Answer, Failure> {
    let mut interim = Vec::new();
    let (protocol, status, headers) = loop {
        let (protocol, status, headers) = head(wire).await?;
        if matches!(status, 100 | 101 | 200..) {
            break (protocol, status, headers);
        }
        interim.push(status);
    };
    let mut answer =
        Answer { status: Some(status), protocol: Some(protocol), interim, ..Answer::default() };
    let chunked =
        values(&headers, "transfer-encoding").any(|value| value.to_lowercase().contains("chunked"));
    let bare = status < 200 || matches!(status, 204 | 304) || method == "HEAD";
    let body = match value(&headers, "content-length") {
        _ if bare => Vec::new(),
        _ if chunked => match wire.chunks().await {
            Ok((body, trailers)) => {
                answer.trailers = trailers;
                body
            }
            Err(Failure::Ended) => truncated(&mut answer, Vec::new()),
            Err(other) => return Err(other),
        },
        Some(length) => {
            match wire.exactly(length.trim().parse().map_err(|_| Failure::Malformed)?).await {
                Err(Failure::Ended) => truncated(&mut answer, std::mem::take(&mut wire.buffer)),
                body => body?,
            }
        }
        None => {
            // The connection's end is the body's end, however it comes.
            while let Ok(true) = wire.fill().await {}
            std::mem::take(&mut wire.buffer)
        }
    };
    answer.body = Some(decode::shown(body, &headers));
    answer.headers = Some(headers);
    Ok(answer)
}

async fn head(wire: &mut Wire) -> Result<(String, u16, Vec<Pair>), Failure> {
    let head = latin1::text(&wire.until(b"\r\n\r\n").await?);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let protocol = words.next().unwrap_or_default().to_owned();
    let status = words.next().and_then(|status| status.parse().ok()).ok_or(Failure::Malformed)?;
    let line = |line: &str| pair(&latin1::bytes(line).expect("the line was made of bytes"));
    Ok((protocol, status, lines.map(line).collect()))
}

fn truncated(answer: &mut Answer, body: Vec<u8>) -> Vec<u8> {
    answer.error = Some("truncated".to_owned());
    body
}

fn hung_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset | ConnectionAborted)
}
