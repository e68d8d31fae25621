//! Upstreams that speak HTTP/2 and take back what they said.

use crate::faults::bed::{Fairway, Setup, upstream};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A frame with nothing but its head: length, kind, flags, stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// Speaks HTTP/2 as a server until the head of a stream came: its number.
async fn stream(tcp: &mut TcpStream, greeted: &mut bool) -> Option<u32> {
    if !std::mem::replace(greeted, true) {
        tcp.read_exact(&mut [0; 24]).await.ok()?;
        tcp.write_all(&frame(SETTINGS, 0, 0, &[])).await.ok()?;
    }
    loop {
        let mut head = [0; 9];
        tcp.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, flags, s0, s1, s2, s3] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        tcp.read_exact(&mut payload).await.ok()?;
        match kind {
            HEADERS => return Some(u32::from_be_bytes([s0, s1, s2, s3])),
            SETTINGS if flags & 1 == 0 => tcp.write_all(&frame(SETTINGS, 1, 0, &[])).await.ok()?,
            _ => {}
        }
    }
}

/// An upstream whose first connection does `first` with the stream it gets; all later streams are answered 200. The
/// number of connections is counted.
async fn refusing(first: fn(u32) -> Vec<u8>) -> Result<(Setup, Arc<AtomicUsize>)> {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    let serve = move |mut tcp: TcpStream, number: usize| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let (mut greeted, mut refuses) = (false, number == 0);
            while let Some(id) = stream(&mut tcp, &mut greeted).await {
                let answer = if std::mem::take(&mut refuses) {
                    first(id)
                } else {
                    frame(HEADERS, 5, id, &[0x88])
                };
                if tcp.write_all(&answer).await.is_err() {
                    return;
                }
            }
        }
    };
    let annotations = vec![("backend-protocol", "GRPC")];
    Ok((Setup { annotations, ..Setup::of(upstream(serve).await?) }, connections))
}

async fn open(fairway: &Fairway) -> Result<SendRequest<Bytes>> {
    let tcp = TcpStream::connect(fairway.http).await?;
    let (sender, connection) = h2::client::handshake(tcp).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// One call without a message: the status of its answer.
async fn call(sender: SendRequest<Bytes>, message: &'static [u8]) -> Result<u16> {
    let request = http::Request::post("http://a.test/echo.Echo/Say")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let mut sender = sender.ready().await?;
    let (answer, mut stream) = sender.send_request(request, message.is_empty())?;
    if !message.is_empty() {
        stream.send_data(Bytes::from_static(message), true)?;
    }
    let answer =
        tokio::time::timeout(Duration::from_secs(20), answer).await.context("no answer")?;
    Ok(answer?.status().as_u16())
}

#[tokio::test]
async fn a_call_that_goaway_leaves_out_is_made_again_elsewhere() -> Result<()> {
    // The last stream that counts is 0: none does.
    let (setup, connections) = refusing(|_| frame(GOAWAY, 0, 0, &[0; 8])).await?;
    let fairway = setup.start().await?;
    ensure!(call(open(&fairway).await?, b"").await? == 200, "{}", fairway.said());
    ensure!(connections.load(Ordering::Relaxed) == 2, "a new connection was to be made");
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_refused_before_it_began_is_made_again() -> Result<()> {
    let refused = |id| frame(RST_STREAM, 0, id, &7u32.to_be_bytes());
    for message in [&b""[..], b"\0\0\0\0\x02hi"] {
        let (setup, _) = refusing(refused).await?;
        let fairway = setup.start().await?;
        ensure!(call(open(&fairway).await?, message).await? == 200, "{}", fairway.said());
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_broke_after_it_began_is_not_made_again() -> Result<()> {
    // INTERNAL_ERROR says nothing about how far it came.
    let (setup, _) = refusing(|id| frame(RST_STREAM, 0, id, &2u32.to_be_bytes())).await?;
    let fairway = setup.start().await?;
    ensure!(call(open(&fairway).await?, b"").await? == 502, "{}", fairway.said());
    Ok(())
}

/// An upstream with so many streams at a time on a connection; each call takes a fifth of a second.
async fn narrow(streams: u32) -> Result<(Setup, Arc<AtomicUsize>)> {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    let serve = move |tcp: TcpStream, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let handshake = h2::server::Builder::new()
                .max_concurrent_streams(streams)
                .handshake::<_, Bytes>(tcp);
            let Ok(mut session) = handshake.await else { return };
            while let Some(Ok((_, mut respond))) = session.accept().await {
                let respond = async move {
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "an upstream that is slow on purpose"
                    )]
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    let _ = respond.send_response(http::Response::new(()), true);
                };
                drop(tokio::spawn(respond));
            }
        }
    };
    let annotations = vec![("backend-protocol", "GRPC"), ("proxy-read-timeout", "2")];
    Ok((Setup { annotations, ..Setup::of(upstream(serve).await?) }, connections))
}

#[tokio::test]
async fn an_upstream_that_takes_one_stream_at_a_time_gets_more_connections() -> Result<()> {
    let (setup, connections) = narrow(1).await?;
    let fairway = setup.start().await?;
    let sender = open(&fairway).await?;
    // Where it is known that one stream is all there is, more connections are made.
    ensure!(call(sender.clone(), b"").await? == 200);
    let calls = (0..8).map(|_| tokio::spawn(call(sender.clone(), b""))).collect::<Vec<_>>();
    for call in calls {
        ensure!(call.await?? == 200, "{}", fairway.said());
    }
    ensure!(connections.load(Ordering::Relaxed) > 1, "only one connection");
    Ok(())
}

#[tokio::test]
async fn an_upstream_that_takes_no_stream_at_all_is_an_error_in_time() -> Result<()> {
    let (setup, _) = narrow(0).await?;
    let fairway = setup.start().await?;
    let began = Instant::now();
    let status = call(open(&fairway).await?, b"").await?;
    ensure!(status == 504, "{status}");
    ensure!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    Ok(())
}
