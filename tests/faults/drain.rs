//! The end of the process, and what it leaves unharmed.

use crate::faults::bed::{OK, PATIENCE, Setup, good, request, status, upstream};
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use testkit::eventually;
use testkit::websocket::{self, Frame};
use testkit::wire::Wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Answers what it is asked for: a WebSocket that echoes, a download without end, or three bytes.
async fn serve(mut tcp: TcpStream, _: usize) {
    while let Some(asked) = request(&mut tcp).await {
        if asked.starts_with("GET /socket") {
            let key = asked.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
            let accept = websocket::accept_key(key.unwrap_or_default());
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            let _ = tcp.write_all(head.as_bytes()).await;
            let mut wire = Wire::new(tcp, None);
            while let Ok(frame) = websocket::read(&mut wire).await {
                if wire.send(&frame.bytes(None)).await.is_err() || frame.closes() {
                    return;
                }
            }
            return;
        }
        if asked.starts_with("GET /download") {
            let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await;
            while tcp.write_all(b"more").await.is_ok() {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "a download that takes long on purpose"
                )]
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            return;
        }
        if tcp.write_all(OK).await.is_err() {
            return;
        }
    }
}

const UPGRADE: &str = "GET /socket HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[tokio::test]
async fn what_is_still_open_at_the_deadline_is_told_and_the_process_ends() -> Result<()> {
    let settings = vec![("worker-shutdown-timeout", "1s".to_owned())];
    let mut fairway = Setup { settings, ..Setup::of(upstream(serve).await?) }.start().await?;
    let mut socket = Wire::new(TcpStream::connect(fairway.http).await?, None);
    let broken = |failure| anyhow::anyhow!("the WebSocket: {failure:?}");
    socket.send(UPGRADE.as_bytes()).await.map_err(broken)?;
    socket.until(b"\r\n\r\n").await.map_err(broken)?;
    let hello = Frame::text("hello");
    socket.send(&hello.bytes(Some(*b"mask"))).await.map_err(broken)?;
    ensure!(websocket::read(&mut socket).await.map_err(broken)? == hello);
    let mut client = TcpStream::connect(fairway.http).await?;
    client.write_all(b"GET /download HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
    // It has begun.
    client.readable().await?;
    let download = tokio::spawn(async move {
        let mut answer = Vec::new();
        // What came before a reset counts.
        let _ = client.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    });
    fairway.signal("TERM")?;
    let began = Instant::now();
    let last = websocket::read(&mut socket).await.map_err(broken)?;
    ensure!(last.closes() && last.payload == 1001u16.to_be_bytes(), "{last:?}");
    ensure!(began.elapsed() >= Duration::from_millis(900), "it was told too early");
    let ended = tokio::time::timeout(PATIENCE, fairway.process.wait()).await??;
    ensure!(ended.success(), "it ended with {ended}");
    ensure!(fairway.said().contains("requests that still run are cut off"), "{}", fairway.said());
    let download = tokio::time::timeout(PATIENCE, download).await??;
    ensure!(status(&download) == Some(200) && download.len() < 1_000_000, "it was made up");
    for request in ["GET /download", "GET /socket"] {
        ensure!(fairway.logged().contains(request), "{request}: {}", fairway.logged());
    }
    Ok(())
}

#[tokio::test]
async fn kept_connections_are_asked_to_move_while_new_ones_are_still_taken() -> Result<()> {
    let flags = vec!["--shutdown-grace-period=10".to_owned()];
    let mut fairway = Setup { flags, ..Setup::of(good().await?) }.start().await?;
    let mut kept = TcpStream::connect(fairway.http).await?;
    let mut ask = async || -> Result<String> {
        kept.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
        let (mut answer, mut read) = (String::new(), [0; 1024]);
        while !answer.ends_with("yes") {
            let count = kept.read(&mut read).await?;
            ensure!(count > 0, "the connection ended: {answer}");
            answer += &String::from_utf8_lossy(&read[..count]);
        }
        Ok(answer)
    };
    ensure!(ask().await?.contains("Connection: keep-alive"));
    fairway.signal("TERM")?;
    let unready = || async { (fairway.health().await.ok()? == 500).then_some(()) };
    eventually(PATIENCE, unready).await.context("/healthz stays well")?;
    // Threads of traffic hear of it a moment later than the admin server.
    while !ask().await?.contains("Connection: close") {}
    fairway.expect(200).await?;
    let ended = tokio::time::timeout(PATIENCE, fairway.process.wait()).await??;
    ensure!(ended.success(), "it ended with {ended}");
    Ok(())
}

#[tokio::test]
async fn a_client_that_has_just_connected_is_still_served() -> Result<()> {
    let mut fairway = Setup::of(good().await?).start().await?;
    let mut fresh = TcpStream::connect(fairway.http).await?;
    fairway.signal("TERM")?;
    let refused = || async { TcpStream::connect(fairway.http).await.err() };
    eventually(PATIENCE, refused).await.context("it still listens")?;
    fresh.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await?;
    let mut answer = String::new();
    fresh.read_to_string(&mut answer).await?;
    ensure!(status(&answer) == Some(200), "{answer}");
    let ended = tokio::time::timeout(PATIENCE, fairway.process.wait()).await??;
    ensure!(ended.success(), "it ended with {ended}");
    Ok(())
}

#[tokio::test]
async fn a_replica_that_is_killed_takes_only_its_own_requests_along() -> Result<()> {
    let address = upstream(serve).await?;
    let (mut one, other) = (Setup::of(address).start().await?, Setup::of(address).start().await?);
    let http = one.http;
    let get = "GET /download HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let cut = tokio::spawn(async move { crate::faults::bed::ask(http, get).await });
    other.expect(200).await?;
    one.process.kill().await?;
    let cut = cut.await??;
    ensure!(!cut.ends_with("yes"), "{cut}");
    for _ in 0..50 {
        other.expect(200).await?;
    }
    Ok(())
}
