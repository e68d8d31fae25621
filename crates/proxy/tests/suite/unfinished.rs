//! What upstreams say and do not end: it counts for the connection of the request, so that where memory is short those
//! end that hold most.

use crate::bed::{self, MAIN, configuration, start};
use model::policy::{Body, Policy, Protocol};
use model::{Template, UpstreamId};
use proxy::Pressure;
use snippet::{Context, understand};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, channel};

const GUARD: &str = "guard";
/// Bytes of a field, and how many there are of them.
const LINE: usize = 7_000;
const LINES: usize = 100;

/// What is not whole.
#[derive(Clone, Copy)]
enum What {
    Head,
    /// A head in records of FastCGI.
    Records,
    /// A handshake of TLS.
    Handshake,
}

impl What {
    /// What it begins with: so many lines, of a handshake as many as it may have.
    fn begin(self, lines: usize) -> Vec<u8> {
        let line = format!("X: {}\r\n", "a".repeat(LINE)).into_bytes();
        let record = |head: &[u8], rest: &[u8], text: &[u8]| {
            let length = u16::try_from(text.len()).expect("short").to_be_bytes();
            [head, &length, rest, text].concat()
        };
        match self {
            Self::Head => [&b"HTTP/1.1 200 OK\r\n"[..], &line.repeat(lines)].concat(),
            Self::Records => record(&[1, 6, 0, 1], &[0, 0], &line).repeat(lines),
            // A ServerHello of 65,535 bytes.
            Self::Handshake => {
                let text = [&[2, 0, 0xff, 0xff], &line[..]].concat();
                record(&[22, 3, 3], &[], &text).repeat(lines.min(8))
            }
        }
    }
}

/// Sends what something begins with, and no end of it: little to who asks first and much to others. Each that was
/// answered so is told of.
async fn begins(what: What) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (told, asked) = channel(9);
    tokio::spawn(async move {
        let mut lines = 1;
        while let Ok((mut tcp, _)) = listener.accept().await {
            let (told, count) = (told.clone(), std::mem::replace(&mut lines, LINES));
            tokio::spawn(async move {
                let _ = tcp.read(&mut [0; 4096]).await;
                let _ = tcp.write_all(&what.begin(count)).await;
                let _ = told.send(()).await;
                // Until the other side has enough of it.
                while matches!(tcp.read(&mut [0; 4096]).await, Ok(1..)) {}
            });
        }
    });
    (address, asked)
}

/// Of two that wait for an answer the one that holds much ends where of so much memory nothing is left, and the other
/// one waits on.
async fn who_holds_most_ends(what: What, policy: Policy, memory: u64) {
    let (upstream, mut asked) = begins(what).await;
    let bound = Body { response_header: 1 << 20, ..Body::default() };
    let policy = Policy { body: bound, ..policy };
    let all = configuration(&[(MAIN, vec![upstream]), (GUARD, vec![upstream])], policy);
    let native = start(&all).await;
    native.bound_memory(memory);
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut tcp = bed::connect(&native).await;
        tcp.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
        asked.recv().await.expect("it is asked");
        clients.push(tcp);
    }
    native.press(Pressure::Full);
    assert_eq!(bed::read_to_end(&mut clients[1]).await, "", "no answer was whole");
    let read = clients[0].try_read(&mut [0; 1]);
    assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::WouldBlock));
}

#[tokio::test]
async fn heads_that_are_not_whole_count_for_their_connection() {
    who_holds_most_ends(What::Head, Policy::default(), 8 << 20).await;
    let policy = Policy { protocol: Protocol::Fcgi, ..Policy::default() };
    who_holds_most_ends(What::Records, policy, 8 << 20).await;
}

#[tokio::test]
async fn so_do_those_of_authenticators() {
    let target = Template::parse("/auth").expect("no variables");
    let guard = bed::authenticator("a.test", target, UpstreamId::new(GUARD));
    let policy = Policy { auth_external: Some(guard.into()), ..Policy::default() };
    who_holds_most_ends(What::Head, policy, 8 << 20).await;
}

#[tokio::test]
async fn so_do_handshakes_of_tls() {
    let policy = Policy { protocol: Protocol::Https, ..Policy::default() };
    who_holds_most_ends(What::Handshake, policy, 512 << 10).await;
}

#[tokio::test]
async fn texts_of_sub_filter_have_a_bound_as_long_as_the_body_lasts() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = silent.local_addr().expect("bound");
    let text = format!("sub_filter \"zz\" \"{}\"; sub_filter_once off;", "$http_x".repeat(8));
    let meaning = understand(Context::Location, &text).expect("a snippet");
    let policy = Policy { snippet: Some(Arc::new(meaning.scope)), ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    // An eighth of it for all, half of that for a namespace: four times 64k.
    native.bound_memory(4 << 20);
    let mut held = Vec::new();
    for number in 0..5 {
        let mut client = bed::connect(&native).await;
        let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {}\r\n\r\n", "x".repeat(7_500));
        client.write_all(request.as_bytes()).await.expect("written");
        let (mut upstream, _) = silent.accept().await.expect("it is sent on");
        let begin = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nx";
        upstream.write_all(begin).await.expect("written");
        let status = bed::read_exactly(&mut client, 12).await;
        assert_eq!(status, if number < 4 { "HTTP/1.1 200" } else { "HTTP/1.1 503" });
        held.push((client, upstream));
    }
    assert_eq!(native.under_way()[2], (256 << 10, 512 << 10, 1));
    drop(held);
    let ended = || async { (native.under_way()[2].0 == 0).then_some(()) };
    eventually(bed::PATIENCE, ended).await.expect("all is given back");
}

#[tokio::test]
async fn heads_that_are_not_whole_have_a_bound_for_a_namespace() {
    has_a_bound(What::Head, Policy::default(), 1 << 20).await;
}

#[tokio::test]
async fn handshakes_of_tls_that_are_not_whole_have_a_bound_for_a_namespace() {
    let policy = Policy { protocol: Protocol::Https, ..Policy::default() };
    has_a_bound(What::Handshake, policy, 128 << 10).await;
}

/// Where there is so much memory, much is refused and who waits for little waits on.
async fn has_a_bound(what: What, policy: Policy, memory: u64) {
    let (upstream, mut asked) = begins(what).await;
    let body = Body { response_header: 1 << 20, ..Body::default() };
    let policy = Policy { body, ..policy };
    let native = start(&configuration(&[(MAIN, vec![upstream])], policy)).await;
    // Half of it for all, half of that for a namespace.
    native.bound_memory(memory);
    let mut first = bed::connect(&native).await;
    first.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
    asked.recv().await.expect("it is asked");
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answer = bed::talk(&native, request).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    let read = first.try_read(&mut [0; 1]);
    assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::WouldBlock));
}
