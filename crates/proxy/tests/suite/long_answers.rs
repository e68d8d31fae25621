//! Long answers in clear, no byte of which is looked at.

use crate::bed::{
    MAIN, PATIENCE, bytes, configuration, connect, read_to_end, read_until, serving, start,
};
use model::Global;
use model::policy::Policy;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::yield_now;
use wire::Pipe;

/// Connections that an upstream was asked over, and how many of them have ended.
#[derive(Debug, Default)]
struct Connections {
    all: usize,
    ended: usize,
}

/// An upstream whose answers are as long as the path says, of which it sends as much as the query says, in pieces of
/// odd sizes.
async fn upstream() -> (SocketAddr, watch::Receiver<Connections>) {
    let (counted, counts) = watch::channel(Connections::default());
    let serve = move |tcp| {
        counted.send_modify(|counts| counts.all += 1);
        let counted = counted.clone();
        async move {
            answer(tcp).await;
            counted.send_modify(|counts| counts.ended += 1);
        }
    };
    (serving(serve).await, counts)
}

async fn answer(mut tcp: TcpStream) {
    loop {
        let head = read_until(&mut tcp, "\r\n\r\n").await;
        let asked = head.split(' ').nth(1).expect("a target").trim_start_matches('/');
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let (length, sent) = match asked.split_once('?') {
            Some((length, sent)) => (number(length), number(sent)),
            None => (number(asked), number(asked)),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let mut whole = head.into_bytes();
        whole.extend(bytes(sent));
        for (piece, at) in whole.chunks(77_777).zip(0..) {
            if tcp.write_all(piece).await.is_err() {
                return;
            }
            if at % 3 == 0 {
                yield_now().await;
            }
        }
        if sent < length {
            return;
        }
    }
}

async fn ask(tcp: &mut TcpStream, target: &str) {
    let request = format!("GET /{target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    tcp.write_all(request.as_bytes()).await.expect("written");
    let head = read_until(tcp, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
}

/// Reads a body in pieces of `most` bytes.
async fn body(tcp: &mut TcpStream, count: usize, most: usize) -> Vec<u8> {
    let (mut came, mut piece) = (Vec::new(), vec![0; most]);
    while came.len() < count {
        let room = most.min(count - came.len());
        let read = tokio::time::timeout(PATIENCE, tcp.read(&mut piece[..room])).await;
        let read = read.expect("in time").expect("it goes on");
        assert!(read > 0, "it ends after {} of {count} bytes", came.len());
        came.extend_from_slice(&piece[..read]);
        yield_now().await;
    }
    came
}

#[tokio::test]
async fn an_answer_is_whole_whatever_its_length_and_its_connection_serves_again() {
    let (address, counts) = upstream().await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let mut quick = connect(&native).await;
    let mut slow = connect(&native).await;
    for length in [1_000, 131_000, 131_072, 200_001, 262_144, 3 << 20, 64, 5_000_000] {
        let target = length.to_string();
        ask(&mut quick, &target).await;
        ask(&mut slow, &target).await;
        let (quick, slow) =
            tokio::join!(body(&mut quick, length, 1 << 20), body(&mut slow, length, 9_999));
        assert!(quick == bytes(length) && slow == bytes(length), "{length}");
    }
    assert!(counts.borrow().all <= 2, "they are used again");
    assert!(Pipe::count() > 0, "long ones go through pipes");
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_whole() {
    let (address, _) = upstream().await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    for sent in [1_000, 200_000, 1 << 20] {
        let mut client = connect(&native).await;
        ask(&mut client, &format!("2000000?{sent}")).await;
        let mut came = Vec::new();
        let read = tokio::time::timeout(PATIENCE, client.read_to_end(&mut came)).await;
        let _ = read.expect("an end of the connection");
        assert!(came == bytes(sent), "{} of {sent} bytes", came.len());
    }
}

#[tokio::test]
async fn who_takes_nothing_of_it_is_not_waited_for() {
    let (address, mut counts) = upstream().await;
    let mut wanted = configuration(&[(MAIN, vec![address])], Policy::default());
    let mut global = Global::clone(&wanted.global);
    global.limits.send_timeout = Duration::from_millis(200);
    wanted.global = Arc::new(global);
    let native = start(&wanted).await;
    let mut silent = connect(&native).await;
    let length = 64 << 20;
    ask(&mut silent, &length.to_string()).await;
    // Its connection ends, whatever of it is on its way by then; nobody else has noticed.
    let mut other = connect(&native).await;
    ask(&mut other, "300000").await;
    assert!(body(&mut other, 300_000, 1 << 16).await == bytes(300_000));
    let ended = tokio::time::timeout(PATIENCE, counts.wait_for(|counts| counts.ended > 0)).await;
    assert!(ended.expect("it is ended").is_ok(), "the upstream goes on");
    assert!(read_to_end(&mut silent).await.len() < length);
}

#[tokio::test]
async fn a_client_that_leaves_is_seen_while_its_upstream_is_silent() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    // Short ones are copied, long ones are not, and of a stream nobody knows how long it is.
    for framing in
        ["Content-Length: 90000", "Content-Length: 9000000", "Transfer-Encoding: chunked"]
    {
        let mut client = connect(&native).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        read_until(&mut tcp, "\r\n\r\n").await;
        let begun = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n4\r\ndata\r\n");
        tcp.write_all(begun.as_bytes()).await.expect("written");
        read_until(&mut client, "data").await;
        drop(client);
        // Long before the upstream's time is over, a minute.
        let ended = tokio::time::timeout(PATIENCE / 3, tcp.read(&mut [0; 1])).await;
        assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{framing}: {ended:?}");
    }
}
