//! Upstreams that speak HTTP/2 and take back what they said.

use crate::faults::bed::{Fairway, Setup, upstream};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::eventually;
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

/// One call with this message: the status of its answer.
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
    // It is refused where the upstream says late how many it takes, and waits where that came first.
    ensure!(matches!(status, 502 | 504), "{status}");
    ensure!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    Ok(())
}

/// An upstream that reads and answers, but for what asks `/stall`: its body stays unread, and no answer comes. Told of
/// are its connections and what asked `/stall`.
async fn stalling(connections: Arc<AtomicUsize>, stalled: Arc<AtomicUsize>) -> Result<Setup> {
    let serve = move |tcp: TcpStream, _| {
        connections.fetch_add(1, Ordering::Relaxed);
        let stalled = stalled.clone();
        async move {
            let Ok(mut session) = h2::server::handshake(tcp).await else { return };
            let mut kept = Vec::new();
            while let Some(Ok((request, mut respond))) = session.accept().await {
                if request.uri().path() == "/stall" {
                    stalled.fetch_add(1, Ordering::Relaxed);
                    kept.push((request, respond));
                    continue;
                }
                drop(tokio::spawn(async move {
                    let mut body = request.into_body();
                    while let Some(Ok(data)) = body.data().await {
                        let _ = body.flow_control().release_capacity(data.len());
                    }
                    let _ = respond.send_response(http::Response::new(()), true);
                }));
            }
        }
    };
    let annotations = vec![("backend-protocol", "GRPC")];
    // Each thread has sessions of its own.
    let flags = vec!["--worker-threads=1".to_owned()];
    Ok(Setup { annotations, flags, ..Setup::of(upstream(serve).await?) })
}

/// Counts of [`stalling`].
fn counts() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    Default::default()
}

/// A call with a message that nobody reads; it goes on as long as what is given back is kept.
async fn stall(
    sender: &SendRequest<Bytes>,
    message: Bytes,
    value: &str,
) -> Result<(h2::client::ResponseFuture, h2::SendStream<Bytes>)> {
    let request = http::Request::post("http://a.test/stall").header("x-value", value).body(())?;
    let mut sender = sender.clone().ready().await?;
    let (answer, mut stream) = sender.send_request(request, message.is_empty())?;
    if !message.is_empty() {
        stream.send_data(message, true)?;
    }
    Ok((answer, stream))
}

/// Waits until so many have asked for what stalls.
async fn have_stalled(stalled: &AtomicUsize, count: usize) -> Result<()> {
    let all = || async { (stalled.load(Ordering::Relaxed) >= count).then_some(()) };
    eventually(Duration::from_secs(20), all).await.context("not all reached the upstream")
}

#[tokio::test]
async fn messages_that_an_upstream_leaves_unread_are_not_what_others_need() -> Result<()> {
    // As much as a session takes of all requests together, at once or by and by.
    for (size, times) in [(65_535, 1), (16_000, 6)] {
        let (connections, stalled) = counts();
        let fairway = stalling(connections, stalled.clone()).await?.start().await?;
        let (attacker, mut kept) = (open(&fairway).await?, Vec::new());
        for count in 1..=times {
            kept.push(stall(&attacker, Bytes::from(vec![0; size]), "").await?);
            have_stalled(&stalled, count).await?;
        }
        let victim = call(open(&fairway).await?, b"\0\0\0\0\x02hi").await;
        ensure!(victim? == 200, "{times} messages of {size} bytes: {}", fairway.said());
    }
    Ok(())
}

#[tokio::test]
async fn a_long_head_has_a_session_of_its_own() -> Result<()> {
    let (connections, stalled) = counts();
    let fairway = stalling(connections.clone(), stalled.clone()).await?.start().await?;
    let sender = open(&fairway).await?;
    let _first = stall(&sender, Bytes::new(), "short").await?;
    have_stalled(&stalled, 1).await?;
    let _second = stall(&sender, Bytes::new(), "short, too").await?;
    have_stalled(&stalled, 2).await?;
    ensure!(connections.load(Ordering::Relaxed) == 1, "both share a session");
    let _long = stall(&sender, Bytes::new(), &"a".repeat(9_000)).await?;
    have_stalled(&stalled, 3).await?;
    ensure!(connections.load(Ordering::Relaxed) == 2, "some servers end the session for it");
    // Each field counts 32 bytes more than it has.
    let mut many = http::Request::post("http://a.test/stall");
    for number in 0..240 {
        many = many.header(format!("x-{number}"), "1");
    }
    let _many = sender.clone().ready().await?.send_request(many.body(())?, true)?;
    have_stalled(&stalled, 4).await?;
    ensure!(connections.load(Ordering::Relaxed) == 3, "so do they for many fields");
    Ok(())
}

#[tokio::test]
async fn a_session_of_which_many_calls_were_broken_off_gets_no_more() -> Result<()> {
    let (connections, stalled) = counts();
    let fairway = stalling(connections.clone(), stalled.clone()).await?.start().await?;
    let sender = open(&fairway).await?;
    for count in 1..=60 {
        let broken_off = stall(&sender, Bytes::new(), "").await?;
        have_stalled(&stalled, count).await?;
        drop(broken_off);
    }
    let is_new = || async {
        let status = call(sender.clone(), b"").await.ok()?;
        (status == 200 && connections.load(Ordering::Relaxed) > 1).then_some(())
    };
    eventually(Duration::from_secs(20), is_new).await.map(drop).with_context(|| fairway.said())
}

#[tokio::test]
async fn a_session_that_is_never_idle_ends_after_its_requests_too() -> Result<()> {
    let (connections, stalled) = counts();
    let setup = stalling(connections.clone(), stalled.clone()).await?;
    let settings = vec![("upstream-keepalive-requests", "3".to_owned())];
    let fairway = Setup { settings, ..setup }.start().await?;
    let sender = open(&fairway).await?;
    let _hangs = stall(&sender, Bytes::new(), "").await?;
    have_stalled(&stalled, 1).await?;
    for _ in 0..8 {
        ensure!(call(sender.clone(), b"").await? == 200, "{}", fairway.said());
    }
    let connections = connections.load(Ordering::Relaxed);
    ensure!(connections >= 3, "{connections} connections for 9 calls, 3 of which each may have");
    Ok(())
}

#[tokio::test]
async fn a_session_that_fell_silent_gets_no_further_calls() -> Result<()> {
    let serve = move |tcp: TcpStream, number: usize| async move {
        let Ok(mut session) = h2::server::handshake(tcp).await else { return };
        let mut calls = 0;
        while let Some(Ok((_, mut respond))) = session.accept().await {
            let _ = respond.send_response(http::Response::new(()), true);
            calls += 1;
            if number == 0 && calls == 2 {
                // What was said last is not pushed out, either.
                return std::future::pending().await;
            }
        }
    };
    let annotations = vec![("backend-protocol", "GRPC"), ("proxy-read-timeout", "2")];
    let fairway = Setup { annotations, ..Setup::of(upstream(serve).await?) }.start().await?;
    let sender = open(&fairway).await?;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(call(sender.clone(), b"").await?);
    }
    ensure!(statuses == [200, 504, 200, 200], "{statuses:?}");
    Ok(())
}
