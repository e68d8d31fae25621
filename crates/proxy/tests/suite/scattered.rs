//! Bodies over HTTP/2 that come in many small pieces while nobody takes them.

use crate::bed::{self, MAIN, configuration, start};
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use model::policy::Policy;
use model::{Template, UpstreamId};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(20);
const GUARD: &str = "guard";
/// More than the h2 crate leaves lying of pieces of this size.
const PIECES: usize = 4_000;
const PIECE: usize = 7;

/// The bytes of a body.
fn body() -> Vec<u8> {
    (0..PIECES * PIECE).map(|number| u8::try_from(number % 251).unwrap_or(0)).collect()
}

/// Answers each request with the length of its body and whether it is the one above; of `/guarded`, once it may go on.
async fn upstream(go: watch::Receiver<bool>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(answer(tcp, go.clone()));
        }
    });
    address
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
