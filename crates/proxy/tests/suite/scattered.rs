//! Bodies over HTTP/2 that come in many small pieces while nobody takes them.

use crate::bed::{self, MAIN, configuration, start};
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use model::policy::{Policy, Protocol};
use model::{Template, UpstreamId};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(20);
const GUARD: &str = "guard";
/// More than the h2 crate leaves lying of pieces of this size.
const PIECES: usize = 4_000;
const PIECE: usize = 7;

/// The bytes of a body.
fn body() -> Vec<u8> {
    bed::bytes(PIECES * PIECE)
}

/// Answers each request with the length of its body and whether it is the one above; of `/guarded`, once it may go on.
async fn upstream(go: watch::Receiver<bool>) -> SocketAddr {
    bed::serving(move |tcp| answer(tcp, go.clone())).await
}

async fn answer(mut tcp: TcpStream, mut go: watch::Receiver<bool>) {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if !matches!(tcp.read_buf(&mut read).await, Ok(1..)) {
            return;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
    if head.starts_with("get /guarded") {
        let _ = go.wait_for(|go| *go).await;
    }
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let length = length.and_then(|text| text.parse().ok()).unwrap_or(0);
    while read.len() < end + length && matches!(tcp.read_buf(&mut read).await, Ok(1..)) {}
    let text = format!("{} {}", read.len() - end, read[end..] == body()[..]);
    let _ = tcp.write_all(&bed::answer("200 OK", "Connection: close\r\n", &text)).await;
}

async fn ask(client: &SendRequest<Bytes>, path: &str, pieces: &[u8]) -> String {
    let request = Request::post(format!("http://a.test{path}"))
        .header("content-length", pieces.len())
        .body(())
        .expect("a request");
    let mut client = client.clone().ready().await.expect("a stream");
    let (answer, mut sending) = client.send_request(request, false).expect("sent");
    for piece in pieces.chunks(PIECE) {
        sending.send_data(Bytes::copy_from_slice(piece), false).expect("sent");
    }
    sending.send_data(Bytes::new(), true).expect("sent");
    let answer = tokio::time::timeout(PATIENCE, answer).await.expect("in time");
    let mut data = answer.expect("the connection stays").into_body();
    let mut text = Vec::new();
    while let Some(piece) = data.data().await {
        text.extend_from_slice(&piece.expect("whole"));
    }
    String::from_utf8(text).expect("text")
}

#[tokio::test]
async fn many_small_pieces_that_nobody_takes_yet_end_no_connection_and_arrive_in_order() {
    let (go, may_go) = watch::channel(false);
    let address = upstream(may_go).await;
    let target = Template::parse("/guarded").expect("no variables");
    let guard = bed::authenticator("a.test", target, UpstreamId::new(GUARD));
    let guarded = Policy { auth_external: Some(guard.into()), ..Policy::default() };
    let mut all = configuration(&[(MAIN, vec![address]), (GUARD, vec![address])], guarded);
    // Another host, which nobody guards.
    bed::put_host(&mut all, "b.test", &UpstreamId::new(MAIN), Policy::default());
    let native = start(&all).await;
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, native.listening().http_port)).await;
    let (client, connection) =
        h2::client::handshake(tcp.expect("listening")).await.expect("HTTP/2");
    tokio::spawn(connection);
    let client = Arc::new(client);
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move { ask(&client, "/", &body()).await })
    };
    let open = Request::get("http://b.test/").body(()).expect("a request");
    for _ in 0..3 {
        let mut sender = (*client).clone().ready().await.expect("a stream");
        let (answer, _) = sender.send_request(open.clone(), true).expect("sent");
        let answer = tokio::time::timeout(PATIENCE, answer).await.expect("in time");
        assert_eq!(answer.expect("the connection stays").status(), 200);
        tokio::task::yield_now().await;
    }
    go.send(true).expect("somebody waits");
    assert_eq!(waiting.await.expect("no panic"), format!("{} true", PIECES * PIECE));
}

/// Pieces of a small answer, of which a window of the client and one of the upstream together do not hold all.
const MESSAGES: usize = 8_000;
const MESSAGE: usize = 20;

/// The answer that each stream of the session below gets.
fn messages() -> Vec<u8> {
    bed::bytes(MESSAGES * MESSAGE)
}

/// Answers over HTTP/2, each message in a frame of its own; counts the sessions.
async fn streaming(sessions: watch::Sender<usize>) -> SocketAddr {
    bed::serving(move |tcp| {
        sessions.send_modify(|count| *count += 1);
        async move {
            let Ok(mut session) = h2::server::handshake(tcp).await else { return };
            while let Some(Ok((_, mut respond))) = session.accept().await {
                let head = http::Response::new(());
                let Ok(mut sending) = respond.send_response(head, false) else { continue };
                for message in messages().chunks(MESSAGE) {
                    let _ = sending.send_data(Bytes::copy_from_slice(message), false);
                }
                let _ = sending.send_data(Bytes::new(), true);
            }
        }
    })
    .await
}

#[tokio::test]
async fn small_messages_that_clients_leave_lying_end_no_session_of_others() {
    let (sessions, seen) = watch::channel(0);
    let address = streaming(sessions).await;
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, native.listening().http_port)).await;
    // What lies here is not what this is about.
    let mut session = h2::client::Builder::new();
    session.data_frame_budget(usize::MAX).initial_connection_window_size(1 << 20);
    let (client, connection) =
        session.handshake::<_, Bytes>(tcp.expect("listening")).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = Request::get("http://a.test/").body(()).expect("a request");
    let mut stalled = Vec::new();
    for _ in 0..6 {
        let mut sender = client.clone().ready().await.expect("a stream");
        let (answer, _) = sender.send_request(request.clone(), true).expect("sent");
        let answer = tokio::time::timeout(PATIENCE, answer).await.expect("in time");
        stalled.push(answer.expect("an answer").into_body());
    }
    // None is taken before all are there: the client's windows are full, and what is behind them lies in the session.
    for body in &mut stalled {
        let mut text = Vec::new();
        while let Some(data) = tokio::time::timeout(PATIENCE, body.data()).await.expect("in time") {
            let data = data.expect("the session stays");
            body.flow_control().release_capacity(data.len()).expect("it was taken");
            text.extend_from_slice(&data);
        }
        assert!(text == messages(), "{} bytes", text.len());
    }
    assert_eq!(*seen.borrow(), 1);
}
