//! The native engine over real sockets, with a Configuration made by hand.

mod bed;
mod http2;

use bed::{MAIN, answering, apply, connect, read_exactly, read_to_end, start, talk};
use engine::Engine;
use model::Configuration;
use model::policy::{Body, Policy};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

fn configuration(endpoints: Vec<SocketAddr>, policy: Policy) -> Configuration {
    bed::configuration(&[(MAIN, endpoints)], policy)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Up: yes\r\n\r\nok";

#[tokio::test]
async fn a_request_reaches_the_upstream_and_its_answer_the_client() {
    let (address, mut seen) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let answer = talk(
        &native,
        b"GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX-A: b\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.ends_with("X-Up: yes\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"),
        "{answer}"
    );
    let seen = seen.recv().await.expect("one request");
    assert!(seen.starts_with("GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nX-Request-ID: "), "{seen}");
    assert!(seen.contains("\r\nX-Real-IP: 127.0.0.1\r\nX-Forwarded-For: 127.0.0.1\r\n"), "{seen}");
    assert!(seen.ends_with("X-A: b\r\n\r\n"), "{seen}");
}

#[tokio::test]
async fn several_requests_share_a_connection() {
    let (address, _seen) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let one = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let answer = talk(&native, &[one.repeat(4).as_bytes(), GET].concat()).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 5, "{answer}");
}

#[tokio::test]
async fn a_chunked_body_is_measured_before_it_is_sent() {
    let (address, mut seen) = answering(OK).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
    let answer = talk(&native, request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let seen = seen.recv().await.expect("one request");
    assert!(
        seen.contains("\r\nContent-Length: 6\r\n") && seen.ends_with("\r\n\r\nhello!"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_streamed_body_goes_out_in_whole_chunks() {
    let (address, mut seen) = answering(OK).await;
    let body = Body { request_buffering: false, ..Body::default() };
    let policy = Policy { body, ..Policy::default() };
    let native = start(&configuration(vec![address], policy)).await;
    let request = b"POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let answer = talk(&native, request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let seen = seen.recv().await.expect("one request");
    assert!(seen.ends_with("\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "{seen}");
}

/// An upstream that answers one request: with `first` at once, with `rest` once it is told to.
async fn in_two_steps(
    first: &'static [u8],
    rest: &'static [u8],
) -> (SocketAddr, oneshot::Sender<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (go, going) = oneshot::channel();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        tcp.read_buf(&mut Vec::new()).await.expect("a request");
        tcp.write_all(first).await.expect("written");
        going.await.expect("somebody says go");
        tcp.write_all(rest).await.expect("written");
    });
    (address, go)
}

const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
    HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Hop: 1\r\nConnection: x-hop\r\n\r\n";
const NOTHING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn interim_answers_are_passed_on_before_the_answer_is_there() {
    let (address, go) = in_two_steps(INTERIM, NOTHING).await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let mut client = connect(&native).await;
    client.write_all(GET).await.expect("written");
    let interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    // The upstream waits until they are here.
    assert_eq!(read_exactly(&mut client, interim.len()).await, interim);
    go.send(()).expect("the upstream waits");
    let answer = read_to_end(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_interim_answers() {
    let (address, go) = in_two_steps(INTERIM, NOTHING).await;
    go.send(()).expect("the upstream waits");
    let native = start(&configuration(vec![address], Policy::default())).await;
    let answer = talk(&native, b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn an_endpoint_that_refuses_is_passed_over() {
    let refusing = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let gone = refusing.local_addr().expect("bound");
    drop(refusing);
    let (address, _seen) = answering(OK).await;
    let native = start(&configuration(vec![gone, address], Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let native = start(&configuration(vec![gone], Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway"), "{answer}");
}

#[tokio::test]
async fn no_endpoints_are_503_and_unknown_hosts_404() {
    let native = start(&configuration(Vec::new(), Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 503 Service Temporarily Unavailable"), "{answer}");
    let answer =
        talk(&native, b"GET / HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 Not Found"), "{answer}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_completed() {
    let (address, _seen) =
        answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nX\r\n").await;
    let native = start(&configuration(vec![address], Policy::default())).await;
    let answer = talk(&native, GET).await;
    assert!(answer.contains("2\r\nok\r\n") && !answer.contains("0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_change_of_endpoints_takes_effect_and_draining_ends_the_threads() {
    let (first, _seen) = answering(OK).await;
    let before = configuration(vec![first], Policy::default());
    let native = start(&before).await;
    let (second, _seen) = answering(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await;
    let after = configuration(vec![second], Policy::default());
    apply(&native, &before, &after).await;
    let answer = talk(&native, GET).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    native.drain(Duration::from_secs(5)).await;
}
