//! WebSocket: messages that come back one by one; whoever closes with 1001 is left for another connection.

use anyhow::{Context, Result, bail, ensure};
use testkit::websocket::{self, CLOSE, Frame};
use testkit::wire::Wire;
use tokio::net::TcpStream;

use super::{Client, End, pace};

/// Code 1001, "going away".
const GOING_AWAY: [u8; 2] = 1001u16.to_be_bytes();

/// Messages of a WebSocket that has an end of its own.
const MESSAGES: usize = 100;

/// Talks until it is stopped.
pub(super) async fn run(client: Client) {
    let (mut pace, mut kept, mut number) = (pace(), None, 0);
    while client.goes_on() {
        // Who is told to go between two messages goes before the next one.
        let told = tokio::select! {
            _ = pace.tick() => false,
            told = hears_goodbye(&mut kept) => told,
        };
        if told {
            kept = None;
        }
        number += 1;
        if client.target.to_nginx
            && number % MESSAGES == 0
            && let Some(mut wire) = kept.take()
        {
            let _ = wire.send(&CLOSE).await;
        }
        let end = client.timed(echo(&client, &mut kept, number)).await;
        if !matches!(end, Some(End::Answered)) {
            kept = None;
        }
    }
    if let Some(mut wire) = kept {
        // The last word; nobody minds if it is lost.
        let _ = wire.send(&CLOSE).await;
    }
}

/// Waits for what a server says unasked: whether that was a farewell.
async fn hears_goodbye(kept: &mut Option<Wire>) -> bool {
    match kept {
        Some(wire) => websocket::read(wire).await.is_ok_and(|frame| is_farewell(&frame)),
        None => std::future::pending().await,
    }
}

fn is_farewell(frame: &Frame) -> bool {
    frame.closes() && frame.payload.starts_with(&GOING_AWAY)
}

async fn echo(client: &Client, kept: &mut Option<Wire>, number: usize) -> Result<End> {
    let wire = match kept {
        Some(wire) => wire,
        None => kept.insert(open(client).await?),
    };
    let frame = Frame::text(&format!("message {number}"));
    let sent = wire.send(&frame.bytes(Some(*b"mask"))).await;
    let back = match websocket::read(wire).await {
        Ok(back) => back,
        Err(failure) => bail!("waiting for a message (sent: {}): {failure:?}", sent.is_ok()),
    };
    if is_farewell(&back) {
        return Ok(End::Elsewhere);
    }
    ensure!(back == frame, "not the message came back but {back:?}");
    Ok(End::Answered)
}

async fn open(client: &Client) -> Result<Wire> {
    let tcp = TcpStream::connect(client.target.http).await.context("connect")?;
    tcp.set_nodelay(true)?;
    let mut wire = Wire::new(tcp, None);
    let head = "GET /socket HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let broken = |failure| anyhow::anyhow!("opening a WebSocket: {failure:?}");
    wire.send(head.as_bytes()).await.map_err(broken)?;
    let answer = wire.until(b"\r\n\r\n").await.map_err(broken)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    ensure!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    Ok(wire)
}
