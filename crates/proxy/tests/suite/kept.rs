//! What guards and upstreams leave for what comes after them: it counts as long as the request is under way, and has a
//! bound for a namespace.

use crate::bed::{self, MAIN, PATIENCE, configuration, start};
use crate::http2;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use model::policy::{Body, GuardAsked, Policy, Protocol, Rewrite, RouteFilters, RouteGuard};
use model::{Configuration, Pattern, Template, UpstreamId};
use proxy::{Native, Pressure};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, channel};

const GUARD: &str = "guard";
/// Fields that a guard says, and bytes of each.
const FIELDS: usize = 60;
const FIELD: usize = 960;
/// What is little: a sixteenth of it is left alone, half of it is for all, half of that for a namespace.
const LITTLE: u64 = 512 << 10;

/// A field of a message that is bytes.
fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
    let (mut length, mut left) = (Vec::new(), bytes.len());
    while left > 0x7f {
        length.push(left as u8 | 0x80);
        left >>= 7;
    }
    length.push(left as u8);
    [&[number << 3 | 2], &length[..], bytes].concat()
}

/// A call of `ext_authz` that lets somebody in, with so many fields for the application.
fn lets_in(fields: usize) -> Vec<u8> {
    let value = "v".repeat(FIELD);
    let fields = (0..fields).map(|number| {
        let name = format!("x-{number}");
        part(2, &part(1, &[part(1, name.as_bytes()), part(2, value.as_bytes())].concat()))
    });
    let message = part(3, &fields.collect::<Vec<_>>().concat());
    let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
    [&[0][..], &length, &message].concat()
}

/// Lets everybody in and says little of who comes first and much of others, without the last byte unless it `ends`;
/// how often it was asked.
async fn guard(ends: bool) -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::<AtomicUsize>::default();
    let count = asked.clone();
    let serve = move |tcp| {
        let asked = asked.clone();
        async move {
            let _ = judge(tcp, &asked, ends).await;
        }
    };
    (bed::serving(serve).await, count)
}

async fn judge(tcp: TcpStream, asked: &AtomicUsize, ends: bool) -> Option<()> {
    let mut connection = h2::server::handshake(tcp).await.ok()?;
    let mut open = Vec::new();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let said = lets_in(if number == 0 { 1 } else { FIELDS });
        let mut stream = respond.send_response(Response::new(()), false).ok()?;
        let end = said.len() - usize::from(!ends);
        stream.send_data(said[..end].to_vec().into(), false).ok()?;
        if ends {
            let status = [("grpc-status".parse().ok()?, HeaderValue::from_static("0"))];
            stream.send_trailers(HeaderMap::from_iter(status)).ok()?;
        }
        open.push((stream, respond));
    }
    Some(())
}

/// Where a guard judges who comes to this upstream.
async fn guarded(upstream: SocketAddr, guard: SocketAddr) -> Arc<Native> {
    guarded_as(Policy::default(), upstream, guard).await
}

async fn guarded_as(policy: Policy, upstream: SocketAddr, guard: SocketAddr) -> Arc<Native> {
    let asked = RouteGuard {
        upstream: UpstreamId::new(GUARD),
        tls: None,
        asked: GuardAsked::Grpc,
        headers: Vec::new(),
        body: false,
    };
    let filters = RouteFilters { guard: Some(Arc::new(asked)), ..RouteFilters::default() };
    let policy = Arc::new(Policy { route: Some(filters.into()), ..policy });
    let mut all = Configuration::default();
    let to = bed::put_upstream(&mut all, MAIN, vec![upstream]);
    bed::put_upstream(&mut all, GUARD, vec![guard]);
    bed::put_route(&mut all, "a.test", to, policy);
    start(&all).await
}

async fn silent() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

/// The next who comes to an upstream.
async fn comes(upstream: &TcpListener) -> TcpStream {
    let came = tokio::time::timeout(PATIENCE, upstream.accept()).await;
    came.expect("in time").expect("a connection").0
}

/// Asks for this path.
async fn ask(native: &Native, path: &str, fields: &str) -> TcpStream {
    let mut tcp = bed::connect(native).await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n");
    tcp.write_all(request.as_bytes()).await.expect("written");
    tcp
}

/// Of two that wait the second one, which holds much, ends where memory is short, and the first one waits on.
async fn the_second_ends(native: &Native, mut clients: [TcpStream; 2]) {
    native.press(Pressure::Full);
    assert_eq!(bed::read_to_end(&mut clients[1]).await, "", "there is no answer");
    let read = clients[0].try_read(&mut [0; 1]);
    assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::WouldBlock));
}

#[tokio::test]
async fn what_a_guard_of_a_route_says_counts_for_the_connection() {
    let (upstream, to) = silent().await;
    let native = guarded(to, guard(true).await.0).await;
    native.bound_memory(LITTLE);
    let (first, _to) = (ask(&native, "/", "").await, comes(&upstream).await);
    let (second, _to) = (ask(&native, "/", "").await, comes(&upstream).await);
    the_second_ends(&native, [first, second]).await;
}

#[tokio::test]
async fn trailers_say_nothing_of_what_a_guard_of_a_route_has_said() {
    let (upstream, heard) = http2::service().await;
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = guarded_as(policy, upstream, guard(true).await.0).await;
    let mut client = http2::client(&native).await;
    let (answer, mut body) = http2::send(&mut client, Method::POST, &[], false);
    body.send_data(Bytes::from_static(b"body"), false).expect("sent");
    let names = ["x-0", "x_0", "x-1"].map(HeaderName::from_static);
    let said = HeaderValue::from_static("admin");
    body.send_trailers(HeaderMap::from_iter(names.map(|name| (name, said.clone())))).expect("sent");
    assert_eq!(http2::status(answer).await, StatusCode::OK);
    let got = heard.await.expect("the service heard");
    assert_eq!(got.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-1"]);
}

#[tokio::test]
async fn what_is_not_whole_of_it_counts_too() {
    let (guard, asked) = guard(false).await;
    let native = guarded(silent().await.1, guard).await;
    native.bound_memory(LITTLE);
    let mut clients = Vec::new();
    for number in 1..=2 {
        clients.push(ask(&native, "/", "").await);
        let is_asked = || async { (asked.load(Ordering::Relaxed) == number).then_some(()) };
        eventually(PATIENCE, is_asked).await.expect("it is asked");
    }
    the_second_ends(&native, clients.try_into().expect("two")).await;
}

#[tokio::test]
async fn what_guards_of_routes_say_has_a_bound_for_a_namespace() {
    let (upstream, to) = silent().await;
    let native = guarded(to, guard(true).await.0).await;
    native.bound_memory(2 * LITTLE);
    // Four times what is said, and twice that while it comes.
    let mut held = Vec::new();
    let refused = loop {
        let mut client = ask(&native, "/", "").await;
        tokio::select! {
            came = comes(&upstream) => held.push((client, came)),
            status = bed::read_exactly(&mut client, 12) => break status,
        }
        assert!(held.len() < 6, "all are let in");
    };
    assert_eq!(refused, "HTTP/1.1 500");
    assert!(held.len() > 2, "{} are let in", held.len());
}

/// Sends who asks for `/on` on to another path, once it may, and tells nobody else anything, unless it `answers`; each
/// that asks is told of.
async fn sends_on(may: Arc<Notify>, answers: bool) -> (SocketAddr, Receiver<String>) {
    let (told, asked) = channel(99);
    let serve = move |mut tcp: TcpStream| {
        let (told, may) = (told.clone(), may.clone());
        async move {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = tcp.read(&mut buffer).await {
                let line = String::from_utf8_lossy(&buffer[..8]).into_owned();
                let is_on = line.starts_with("GET /on ") && count < 1 << 10;
                let _ = told.send(line).await;
                if is_on {
                    may.notified().await;
                    // Neither is long by itself.
                    let (path, cookie) = ("a".repeat(13_000), "c".repeat(2_000));
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /to?{path}\r\nSet-Cookie: {cookie}\r\nContent-Length: 0\r\n\r\n"
                    );
                    let _ = tcp.write_all(answer.as_bytes()).await;
                } else if answers && buffer[..count].ends_with(b"\r\n\r\n") {
                    let _ = tcp.write_all(&bed::answer("200 OK", "", "")).await;
                }
            }
        }
    };
    (bed::serving(serve).await, asked)
}

/// An engine whose only host leads there, with so much memory.
async fn leading(to: SocketAddr, policy: Policy, memory: u64) -> Arc<Native> {
    let body = Body { response_header: 1 << 20, ..Body::default() };
    let native = start(&configuration(&[(MAIN, vec![to])], Policy { body, ..policy })).await;
    native.bound_memory(memory);
    native
}

#[tokio::test]
async fn what_x_accel_redirect_leaves_counts_for_the_connection_and_has_a_bound_for_a_namespace() {
    let may = Arc::new(Notify::new());
    let (upstream, mut asked) = sends_on(may.clone(), false).await;
    let native = leading(upstream, Policy::default(), LITTLE / 2).await;
    let mut clients = vec![ask(&native, "/", "").await];
    asked.recv().await.expect("it is asked");
    for number in 0..3 {
        let mut client = ask(&native, "/on", "").await;
        assert_eq!(asked.recv().await.expect("it is asked"), "GET /on ");
        may.notify_one();
        if number == 2 {
            assert_eq!(bed::read_exactly(&mut client, 12).await, "HTTP/1.1 502");
            break;
        }
        assert_eq!(asked.recv().await.expect("it is asked"), "GET /to?");
        clients.push(client);
    }
    clients.truncate(2);
    the_second_ends(&native, clients.try_into().expect("two")).await;
}

#[tokio::test]
async fn what_was_left_for_a_request_is_given_back_though_its_connection_lingers() {
    let may = Arc::new(Notify::new());
    let (upstream, _asked) = sends_on(may.clone(), true).await;
    let native = leading(upstream, Policy::default(), LITTLE / 2).await;
    // Twice what fits into the bound of the namespace.
    let mut clients = Vec::new();
    for _ in 0..4 {
        may.notify_one();
        let mut client = ask(&native, "/on", "Connection: close\r\n").await;
        let got = bed::read_to_end(&mut client).await;
        assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
        clients.push(client);
    }
}

#[tokio::test]
async fn where_nothing_new_is_taken_nobody_is_sent_on() {
    let may = Arc::new(Notify::new());
    let (upstream, mut asked) = sends_on(may.clone(), false).await;
    let native = leading(upstream, Policy::default(), 16 * LITTLE).await;
    // Who has fewer connections takes something new under any pressure.
    let mut clients = Vec::new();
    for path in ["/"; 9].into_iter().chain(["/on"]) {
        clients.push(ask(&native, path, "").await);
        asked.recv().await.expect("it is asked");
    }
    native.press(Pressure::Full);
    may.notify_one();
    let mut last = clients.pop().expect("it is there");
    assert_eq!(bed::read_exactly(&mut last, 12).await, "HTTP/1.1 503");
}

#[tokio::test]
async fn a_path_that_is_made_counts_for_the_connection() {
    let rewrite = Rewrite {
        pattern: Pattern::new("/", true).expect("a pattern"),
        target: Template::parse("/$http_x$http_x$http_x").expect("known variables"),
        prefix: None,
    };
    let (upstream, to) = silent().await;
    let policy = Policy { rewrite: Some(rewrite), ..Policy::default() };
    let native = leading(to, policy, LITTLE / 2).await;
    let (first, _to) = (ask(&native, "/", "").await, comes(&upstream).await);
    let field = format!("X: {}\r\n", "x".repeat(7_500));
    let (second, _to) = (ask(&native, "/", &field).await, comes(&upstream).await);
    the_second_ends(&native, [first, second]).await;
}
