//! What clients of HTTP/2 get, and what they can do; those that keep to no rule speak in frames.

use crate::bed::{MAIN, answering, configuration, connect, read_to_end, start, talk, with_global};
use crate::serve::{INTERIM, NOTHING, in_two_steps};
use bytes::Bytes;
use engine::Engine;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, Method, Request, StatusCode};
use model::policy::{Policy, Protocol};
use model::{Global, KeepAlive, LogFormat, LogTarget, Logs, SetHeader, Template};
use proxy::{Native, Pressure};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::eventually;
use testkit::http2::{PREFACE, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// GET, POST http://a.test/ (RFC 7541 appendix A).
const GET: &[u8] = b"\x82\x86\x84\x01\x06a.test";
pub(crate) const POST: &[u8] = b"\x83\x86\x84\x01\x06a.test";

pub(crate) async fn client(native: &Native) -> SendRequest<Bytes> {
    let address = (Ipv4Addr::LOCALHOST, native.listening().http_port);
    let tcp = TcpStream::connect(address).await.expect("listening");
    let (client, connection) = h2::client::handshake(tcp).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    client.ready().await.expect("a stream")
}

pub(crate) fn send(
    client: &mut SendRequest<Bytes>,
    method: Method,
    fields: &[(&'static str, &'static str)],
    ended: bool,
) -> (ResponseFuture, SendStream<Bytes>) {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = "http://a.test/".parse().expect("a URI");
    for (name, value) in fields {
        request.headers_mut().append(*name, http::HeaderValue::from_static(value));
    }
    client.send_request(request, ended).expect("sent")
}

pub(crate) async fn in_time<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

pub(crate) async fn status(answer: ResponseFuture) -> StatusCode {
    in_time(answer).await.expect("an answer").status()
}

async fn interim(answer: &mut ResponseFuture) -> http::Response<()> {
    in_time(poll_fn(|cx| answer.poll_informational(cx)))
        .await
        .expect("there is one")
        .expect("whole")
}

#[tokio::test]
async fn interim_answers_reach_clients_of_http2_before_the_answer_is_there() {
    let (address, go) = in_two_steps(INTERIM, NOTHING).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let (mut answer, _) = send(&mut client(&native).await, Method::GET, &[], true);
    assert_eq!(interim(&mut answer).await.status(), StatusCode::PROCESSING);
    let hints = interim(&mut answer).await;
    assert_eq!(hints.status(), StatusCode::EARLY_HINTS);
    assert!(hints.headers()["link"] == "</a>" && !hints.headers().contains_key("x-hop"));
    go.send(()).expect("the upstream waits");
    assert_eq!(status(answer).await, StatusCode::OK);
}

/// A policy under which an upstream's head may be as long as any.
fn long_heads() -> Policy {
    let mut policy = Policy::default();
    policy.body.response_header = 1 << 20;
    policy
}

/// Bytes that stay as long as the process.
fn forever(text: &str) -> &'static [u8] {
    text.to_owned().leak().as_bytes()
}

#[tokio::test]
async fn interim_answers_of_a_request_have_a_bound_and_the_answer_comes() {
    let hints = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(8 << 10));
    let answer = hints.repeat(15) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (address, _seen) = answering(forever(&answer)).await;
    let native = start(&configuration(&[(MAIN, vec![address])], long_heads())).await;
    let (mut answer, _) = send(&mut client(&native).await, Method::GET, &[], true);
    let mut came = 0;
    while let Some(one) = in_time(poll_fn(|cx| answer.poll_informational(cx))).await {
        assert_eq!(one.expect("whole").status(), StatusCode::EARLY_HINTS);
        came += 1;
    }
    assert_eq!((came, status(answer).await), (7, StatusCode::OK));
}

#[tokio::test]
async fn a_head_that_many_clients_would_end_the_connection_for_does_not_go() {
    for (size, wanted) in [(20 << 10, StatusCode::OK), (70 << 10, StatusCode::BAD_GATEWAY)] {
        let field = "x".repeat(size);
        let text = format!("HTTP/1.1 200 OK\r\nX-Long: {field}\r\nContent-Length: 4\r\n\r\nbody");
        let (address, _seen) = answering(forever(&text)).await;
        let native = start(&configuration(&[(MAIN, vec![address])], long_heads())).await;
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, native.listening().http_port));
        let mut session = h2::client::Builder::new();
        session.max_header_list_size(1 << 20);
        let handshake = session.handshake::<_, Bytes>(connection.await.expect("listening"));
        let (mut client, connection) = handshake.await.expect("it speaks HTTP/2");
        tokio::spawn(connection);
        // One without a body ends with something that is waited for.
        for method in [Method::GET, Method::HEAD] {
            client = client.ready().await.expect("a stream");
            let (answer, _) = send(&mut client, method.clone(), &[], true);
            let answer = in_time(answer).await.expect("an answer");
            assert_eq!(answer.status(), wanted, "{method}, {size} bytes");
            let is_long = answer.headers().get("x-long").is_some_and(|long| long.len() == size);
            assert_eq!(is_long, wanted == StatusCode::OK);
            let mut body = answer.into_body();
            let mut read = Vec::new();
            while let Some(data) = in_time(body.data()).await {
                read.extend_from_slice(&data.expect("whole"));
            }
            assert_eq!(read == b"body", wanted == StatusCode::OK && method == Method::GET);
        }
        let over_http1 =
            talk(&native, b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        assert!(over_http1.await.starts_with("HTTP/1.1 200 OK"), "{size} bytes");
    }
}

#[tokio::test]
async fn a_body_that_is_wanted_is_asked_for() {
    let (address, mut seen) = answering(NOTHING).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let expects = [("expect", "100-Continue"), ("content-length", "4")];
    let mut client = client(&native).await;
    let (mut answer, mut body) = send(&mut client, Method::POST, &expects, false);
    assert_eq!(interim(&mut answer).await.status(), StatusCode::CONTINUE);
    body.send_data(Bytes::from_static(b"body"), true).expect("sent");
    assert_eq!(status(answer).await, StatusCode::OK);
    let seen = seen.recv().await.expect("a request");
    assert!(seen.ends_with("\r\n\r\nbody") && !seen.to_lowercase().contains("expect"), "{seen}");
}

#[tokio::test]
async fn what_nobody_understands_is_refused_as_over_http1() {
    let (address, _seen) = answering(NOTHING).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let mut client = client(&native).await;
    let (unknown, _) = send(&mut client, Method::GET, &[("expect", "100-continue, more")], true);
    assert_eq!(status(unknown).await, StatusCode::EXPECTATION_FAILED);
    let (trace, _) = send(&mut client, Method::TRACE, &[], true);
    assert_eq!(status(trace).await, StatusCode::METHOD_NOT_ALLOWED);
    let (plain, _) = send(&mut client, Method::GET, &[], true);
    assert_eq!(status(plain).await, StatusCode::OK);
}

/// Each request has such a line in this file.
fn logged(file: &Path, line: &str) -> Global {
    let access = LogTarget::File(file.to_str().expect("it is text").to_owned());
    let template = Template::parse(line).expect("known variables");
    Global {
        logs: Logs { access, ..Logs::default() },
        log_format: LogFormat { template, ..LogFormat::default() },
        ..Global::default()
    }
}

#[tokio::test]
async fn what_is_turned_away_is_logged_as_over_http1() {
    let (address, _seen) = answering(NOTHING).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.log");
    let added = Template::parse("yes").expect("a text");
    let add_headers = vec![SetHeader { name: "X-Added".to_owned(), value: added.into() }];
    let line = "$status $request|$host|$server_name|$uri|$http_x_own|$sent_http_content_type";
    let global = Global { add_headers, ..logged(&file, line) };
    let native = start(&with_global(address, global)).await;
    let mut client = client(&native).await;
    for method in [Method::GET, Method::HEAD] {
        let odd = [("host", "b.test/"), ("x-own", "1")];
        let (answer, _) = send(&mut client, method.clone(), &odd, true);
        let answer = in_time(answer).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        let headers = ["x-added", "date", "content-length", "content-type"];
        assert!(headers.iter().all(|name| answer.headers().contains_key(*name)), "{answer:?}");
        assert_eq!(answer.body().is_end_stream(), method == Method::HEAD, "HEAD has no page");
    }
    native.bound_memory(0);
    let (no_room, _) = send(&mut client, Method::GET, &[], true);
    assert_eq!(status(no_room).await, StatusCode::SERVICE_UNAVAILABLE);
    native.drain(Duration::from_secs(5)).await;
    let log = std::fs::read_to_string(file).expect("the log is a file");
    let line = |status, method: &str, own| {
        format!("{status} {method} / HTTP/2.0|a.test|a.test|/|{own}|text/html\n")
    };
    let refused = ["GET", "HEAD"].map(|method| line(400, method, "1")).concat();
    assert!(log.starts_with(&refused) && log[refused.len()..].starts_with("503 GET"), "{log}");
}

#[tokio::test]
async fn the_length_of_a_request_counts_its_body_as_over_http1() {
    let (address, _seen) = answering(NOTHING).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.log");
    let native = start(&with_global(address, logged(&file, "$request_length"))).await;
    let mut client = client(&native).await;
    let (answer, mut body) = send(&mut client, Method::POST, &[], false);
    body.send_data(Bytes::from_static(&[b'a'; 10_000]), true).expect("sent");
    assert_eq!(status(answer).await, StatusCode::OK);
    native.drain(Duration::from_secs(5)).await;
    assert_eq!(std::fs::read_to_string(file).expect("the log is a file"), "10000\n");
}

/// Somebody of HTTP/1 who answers two requests over one connection, and says what came once each was whole.
async fn two_in_a_row() -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (said, heard) = mpsc::channel(2);
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("a connection");
        for _ in 0..2 {
            let mut came = String::new();
            while !came.ends_with("0\r\n\r\n") {
                let mut byte = [0];
                tcp.read_exact(&mut byte).await.expect("a request");
                came.push(byte[0].into());
            }
            tcp.write_all(NOTHING).await.expect("it is taken");
            said.send(came).await.expect("somebody listens");
        }
    });
    (address, heard)
}

#[tokio::test]
async fn a_body_that_ends_with_an_empty_frame_ends_once_towards_http1() {
    let (address, mut heard) = two_in_a_row().await;
    let mut policy = Policy::default();
    policy.body.request_buffering = false;
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let mut client = client(&native).await;
    for _ in 0..2 {
        let (answer, mut body) = send(&mut client, Method::POST, &[], false);
        body.send_data(Bytes::from_static(b"x"), false).expect("sent");
        body.send_data(Bytes::new(), true).expect("sent");
        assert_eq!(status(answer).await, StatusCode::OK);
        let came = in_time(heard.recv()).await.expect("a request");
        assert!(
            came.starts_with("POST / ") && came.ends_with("\r\n1\r\nx\r\n0\r\n\r\n"),
            "{came:?}"
        );
    }
}

/// A service of HTTP/2 whose answers end with an empty frame.
async fn ended_with_nothing() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.expect("a connection");
        let mut session = h2::server::handshake(tcp).await.expect("it speaks HTTP/2");
        while let Some(Ok((_, mut respond))) = session.accept().await {
            let mut sent = respond.send_response(http::Response::new(()), false).expect("sent");
            sent.send_data(Bytes::from_static(b"x"), false).expect("sent");
            sent.send_data(Bytes::new(), true).expect("sent");
        }
    });
    address
}

#[tokio::test]
async fn an_answer_that_ends_with_an_empty_frame_ends_once_for_clients_of_http1() {
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![ended_with_nothing().await])], policy)).await;
    let twice = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n\
        GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answers = talk(&native, twice).await;
    let ends: Vec<_> = answers.match_indices("0\r\n\r\n").map(|(at, _)| at).collect();
    let [first, last] = ends[..] else { panic!("{answers:?}") };
    assert!(answers[first..].starts_with("0\r\n\r\nHTTP/1.1 200 OK\r\n"), "{answers:?}");
    assert_eq!(answers.len(), last + 5);
}

/// A service that says which `:path`s it got.
async fn says_paths() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut session = h2::server::handshake(tcp).await.expect("it speaks HTTP/2");
                while let Some(Ok((request, mut respond))) = session.accept().await {
                    let path = request.uri().path_and_query().map(|path| path.as_str());
                    let path = path.unwrap_or_default().as_bytes().escape_ascii().to_string();
                    let answer = http::Response::builder().header("x-path", path);
                    respond.send_response(answer.body(()).expect("fits"), true).expect("sent");
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn what_http1_may_say_in_a_target_reaches_an_upstream_of_http2() {
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![says_paths().await])], policy)).await;
    for (target, expected) in [
        (&b"/?q={\"a\":1}"[..], "/?q={%22a%22:1}"),
        (b"/a<b>`c?a<b>", "/a%3Cb%3E%60c?a%3Cb%3E"),
        (b"/caf\xe9?x=\xe9%22", "/caf%E9?x=%E9%22"),
        (b"/a|b^{c}?x=|^{}`\\", "/a|b^{c}?x=|^{}`\\\\"),
    ] {
        let end = b" HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        let answer = talk(&native, &[b"GET ", target, end].concat()).await;
        assert!(answer.contains(&format!("x-path: {expected}\r\n")), "{expected}: {answer}");
    }
}

/// A gRPC service that says which trailers it got.
pub(crate) async fn service() -> (SocketAddr, oneshot::Receiver<HeaderMap>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (said, heard) = oneshot::channel();
    tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.expect("a connection");
        let mut session = h2::server::handshake(tcp).await.expect("it speaks HTTP/2");
        let (request, mut respond) = session.accept().await.expect("a request").expect("whole");
        tokio::spawn(async move { while session.accept().await.is_some() {} });
        let mut body = request.into_body();
        while let Some(data) = body.data().await {
            let _ = body.flow_control().release_capacity(data.expect("whole").len());
        }
        let trailers = body.trailers().await.expect("whole").unwrap_or_default();
        respond.send_response(http::Response::new(()), true).expect("sent");
        let _ = said.send(trailers);
    });
    (address, heard)
}

#[tokio::test]
async fn trailers_of_a_request_say_nothing_that_its_head_may_not() {
    let (address, heard) = service().await;
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let (answer, mut body) = send(&mut client(&native).await, Method::POST, &[], false);
    body.send_data(Bytes::from_static(b"body"), false).expect("sent");
    let mut trailers = HeaderMap::new();
    for name in [
        "x-real-ip",
        "x-forwarded-for",
        "ssl-client-verify",
        "authorization",
        "cookie",
        "proxy",
        "host",
        "x_real_ip",
        "x-fine",
    ] {
        trailers.append(name, http::HeaderValue::from_static("said"));
    }
    body.send_trailers(trailers).expect("sent");
    assert_eq!(status(answer).await, StatusCode::OK);
    let got = heard.await.expect("the service heard");
    assert_eq!(got.keys().map(http::HeaderName::as_str).collect::<Vec<_>>(), ["x-fine"]);
}

#[tokio::test]
async fn a_target_that_is_none_over_http1_is_none_over_http2() {
    let (address, _seen) = answering(NOTHING).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    for path in ["/a\x7fb", "/a?c\x7f"] {
        let mut frames = PREFACE.to_vec();
        frames.extend(frame(SETTINGS, 0, 0, b""));
        let length = u8::try_from(path.len()).expect("it is short");
        let head = [&b"\x82\x86\x04"[..], &[length], path.as_bytes(), b"\x01\x06a.test"].concat();
        frames.extend(frame(HEADERS, END_STREAM | END_HEADERS, 1, &head));
        let mut tcp = connect(&native).await;
        tcp.write_all(&frames).await.expect("written");
        let (mut answer, reset) = (Vec::new(), frame(RST_STREAM, 0, 1, &[0, 0, 0, 1]));
        while !answer.windows(reset.len()).any(|part| part == reset) {
            assert!(in_time(tcp.read_buf(&mut answer)).await.expect("read") > 0, "{answer:?}");
        }
    }
}

/// A gRPC service that answers with nothing but a byte and long trailers.
async fn with_long_trailers() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut session = h2::server::handshake(tcp).await.expect("it speaks HTTP/2");
                while let Some(Ok((_, mut respond))) = session.accept().await {
                    let sent = respond.send_response(http::Response::new(()), false);
                    let mut sent = sent.expect("sent");
                    sent.send_data(Bytes::from_static(b"x"), false).expect("sent");
                    let mut trailers = HeaderMap::new();
                    let long = "x".repeat(LONG_TRAILERS);
                    trailers.insert("x-long", long.parse().expect("a value"));
                    let _ = sent.send_trailers(trailers);
                }
            });
        }
    });
    address
}

const LONG_TRAILERS: usize = 56 << 10;

#[tokio::test]
async fn trailers_that_a_client_leaves_lying_count_for_its_connection() {
    const STREAMS: u32 = 120;
    let address = with_long_trailers().await;
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    let taken = async {
        let (answer, _) = send(&mut client(&native).await, Method::GET, &[], true);
        let mut body = in_time(answer).await.expect("an answer").into_body();
        while let Some(data) = in_time(body.data()).await {
            data.expect("whole");
        }
        in_time(body.trailers()).await.expect("whole").expect("there are trailers")
    };
    assert_eq!(taken.await["x-long"].len(), LONG_TRAILERS, "who takes them gets them");
    // More of them than the system holds.
    let mut frames = Frames::open(&native).await;
    for stream in 0..STREAMS {
        frames.send(HEADERS, END_STREAM | END_HEADERS, 2 * stream + 1, GET).await;
    }
    native.press(Pressure::High);
    let ended = async || (native.shed().unread >= 1).then_some(());
    eventually(PATIENCE, ended).await.expect("it is ended");
    let read = in_time(frames.tcp.read_to_end(&mut Vec::new())).await;
    let end = read.err().map(|error| error.kind());
    assert_eq!(end, Some(ErrorKind::ConnectionReset), "the system keeps nothing for it");
}

/// A gRPC service that answers POST with more than anybody keeps, and others with two bytes.
async fn large_and_small() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut session = h2::server::handshake(tcp).await.expect("it speaks HTTP/2");
                while let Some(Ok((request, mut respond))) = session.accept().await {
                    let large = request.method() == Method::POST;
                    let body = if large { vec![0; 8 << 20] } else { b"ok".to_vec() };
                    let mut sent = respond.send_response(http::Response::new(()), false);
                    let sent = sent.as_mut().expect("sent");
                    // It waits in the library for the windows of the stream and of the session.
                    sent.send_data(body.into(), true).expect("sent");
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn answers_that_nobody_takes_leave_the_others_of_their_session_room() {
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let upstream = large_and_small().await;
    let native = start(&configuration(&[(MAIN, vec![upstream])], policy)).await;
    let address = (Ipv4Addr::LOCALHOST, native.listening().http_port);
    let tcp = TcpStream::connect(address).await.expect("listening");
    let mut settings = h2::client::Builder::new();
    let opened = settings.initial_window_size(0).handshake::<_, Bytes>(tcp).await;
    let (mut greedy, connection) = opened.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let mut unread = Vec::new();
    for _ in 0..20 {
        greedy = greedy.ready().await.expect("a stream");
        let (answer, _) = send(&mut greedy, Method::POST, &[], true);
        unread.push(in_time(answer).await.expect("a head"));
    }
    let mut honest = client(&native).await;
    for _ in 0..50 {
        let (answer, _) = send(&mut honest, Method::GET, &[], true);
        let mut body = in_time(answer).await.expect("an answer").into_body();
        let data = in_time(body.data()).await.expect("there is some").expect("whole");
        assert_eq!(data, "ok");
    }
    drop(unread);
}

/// A gRPC service that answers nothing and sends this frame until its session ends; tells how many bytes it sent.
async fn idle_talk(one: Vec<u8>) -> (SocketAddr, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (told, sent) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (one, told) = (one.clone(), told.clone());
            tokio::spawn(async move {
                let (mut reads, mut writes) = tcp.into_split();
                writes.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("sent");
                let reading =
                    tokio::spawn(
                        async move { while let Ok(1..) = reads.read(&mut [0; 4096]).await {} },
                    );
                let (many, mut bytes) = (one.repeat(100), 0);
                while writes.write_all(&many).await.is_ok() {
                    bytes += many.len();
                }
                reading.abort();
                let _ = told.send(bytes).await;
            });
        }
    });
    (address, sent)
}

#[tokio::test]
async fn an_upstream_that_sends_what_is_of_no_use_loses_its_session() {
    for one in [
        frame(PING, 0, 0, &[1; 8]),
        frame(PING, ACK, 0, &[1; 8]),
        frame(PRIORITY, 0, 1, &[0; 5]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        frame(SETTINGS, 0, 0, &[]),
        frame(0x77, 0, 0, &[]),
        // 103, again and again.
        frame(HEADERS, END_HEADERS, 1, b"\x08\x03103"),
    ] {
        let (upstream, mut sent) = idle_talk(one).await;
        let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
        let native = start(&configuration(&[(MAIN, vec![upstream])], policy)).await;
        let (answer, _) = send(&mut client(&native).await, Method::POST, &[], true);
        assert_eq!(status(answer).await, StatusCode::BAD_GATEWAY);
        // As much as the system holds for a reader comes on top.
        let bytes = in_time(sent.recv()).await.expect("its session ends");
        assert!(bytes < 16 << 20, "{bytes}");
    }
}

/// What gRPC in Go says to each message that it gets.
const HEARD: [(u8, &[u8]); 2] = [(WINDOW_UPDATE, &[0, 0, 0, 16]), (PING, &[1; 8])];

/// A gRPC service that hears each message, and sends it back.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("Fairway");
        tcp.set_nodelay(true).expect("a socket");
        tcp.read_exact(&mut [0; PREFACE.len()]).await.expect("the preface");
        let mut frames = Frames { tcp, read: Vec::new() };
        frames.send(SETTINGS, 0, 0, &[]).await;
        while let Some((kind, flags, stream, payload)) = frames.next().await {
            match kind {
                HEADERS => frames.send(HEADERS, END_HEADERS, stream, b"\x88").await,
                DATA => {
                    for (kind, payload) in HEARD {
                        frames.send(kind, 0, 0, payload).await;
                    }
                    frames.send(DATA, flags, stream, &payload).await;
                }
                _ => {}
            }
        }
    });
    address
}

#[tokio::test]
async fn grpc_that_acknowledges_each_message_keeps_its_sessions_on_both_sides() {
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![echo().await])], policy)).await;
    let mut frames = Frames::open(&native).await;
    frames.send(HEADERS, END_HEADERS, 1, POST).await;
    for number in 1..=2_000 {
        let last = if number == 2_000 { END_STREAM } else { 0 };
        frames.send(DATA, last, 1, &[7; 16]).await;
        let back = frames.until(|seen| matches!(seen.0, DATA | GOAWAY | RST_STREAM)).await;
        assert_eq!(back, Some((DATA, last, 1, vec![7; 16])), "message {number}");
        for (kind, payload) in HEARD {
            frames.send(kind, 0, 0, payload).await;
        }
    }
}

#[tokio::test]
async fn a_path_begins_with_a_slash() {
    let (address, _seen) = answering(NOTHING).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let mut frames = Frames::open(&native).await;
    // GET http://a.test, with `?x` and `/?x` in place of a path.
    for (stream, path, status) in
        [(1, b"\x04\x02?x".as_slice(), b"\x8c"), (3, b"\x04\x03/?x", b"\x88")]
    {
        let head = [b"\x82\x86", path, b"\x01\x06a.test"].concat();
        frames.send(HEADERS, END_STREAM | END_HEADERS, stream, &head).await;
        let answer = frames.until(|seen| seen.0 == HEADERS).await.expect("an answer");
        assert_eq!((answer.2, &answer.3[..1]), (stream, status.as_slice()), "{path:?}");
    }
}

/// A client that sends what it likes and acknowledges nothing but SETTINGS.
pub(crate) struct Frames {
    tcp: TcpStream,
    read: Vec<u8>,
}

/// A frame: kind, flags, stream, payload.
pub(crate) type Seen = (u8, u8, u32, Vec<u8>);

impl Frames {
    pub(crate) async fn open(native: &Native) -> Self {
        let address = (Ipv4Addr::LOCALHOST, native.listening().http_port);
        let mut tcp = TcpStream::connect(address).await.expect("listening");
        tcp.set_nodelay(true).expect("a socket");
        let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frame(SETTINGS, ACK, 0, &[])];
        tcp.write_all(&opening.concat()).await.expect("written");
        Self { tcp, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        // A connection that has ended shows in what is read.
        let _ = self.tcp.write_all(&frame(kind, flags, stream, payload)).await;
    }

    /// The next frame; none at the end.
    async fn next(&mut self) -> Option<Seen> {
        loop {
            let length = |read: &[u8]| {
                let &[a, b, c] = read.first_chunk::<3>()?;
                Some(9 + usize::from(a) * 65536 + usize::from(b) * 256 + usize::from(c))
            };
            if let Some(end) = length(&self.read).filter(|end| *end <= self.read.len()) {
                let rest = self.read.split_off(end);
                let whole = std::mem::replace(&mut self.read, rest);
                let stream = u32::from_be_bytes([whole[5], whole[6], whole[7], whole[8]]);
                return Some((whole[3], whole[4], stream, whole[9..].to_vec()));
            }
            if !matches!(in_time(self.tcp.read_buf(&mut self.read)).await, Ok(1..)) {
                return None;
            }
        }
    }

    /// The first frame that `wanted` says yes to; none if the connection ends before.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Seen) -> bool) -> Option<Seen> {
        loop {
            match self.next().await {
                Some(seen) if wanted(&seen) => return Some(seen),
                Some(_) => {}
                None => return None,
            }
        }
    }
}

/// Settings with so many requests for each connection, and so many streams at a time.
fn few(requests: u64, streams: u32) -> Global {
    let global = Global::default();
    let keep_alive = KeepAlive { http2_requests: requests, ..global.keep_alive };
    Global { keep_alive, http2_streams: streams, ..global }
}

#[tokio::test]
async fn who_never_acknowledges_the_end_gets_a_bounded_number_of_requests() {
    let (address, _seen) = answering(NOTHING).await;
    let native = start(&with_global(address, few(10, 4))).await;
    let mut client = Frames::open(&native).await;
    let mut answered = 0;
    for stream in (1..100).step_by(2) {
        client.send(HEADERS, END_STREAM | END_HEADERS, stream, GET).await;
        let of_it = |seen: &Seen| seen.2 == stream && (seen.0 == HEADERS || seen.0 == RST_STREAM);
        let (kind, .., payload) = client.until(of_it).await.expect("an end of the stream");
        match kind {
            HEADERS => answered += 1,
            _ => assert_eq!(payload, u32::from(Reason::REFUSED_STREAM).to_be_bytes()),
        }
    }
    assert_eq!(answered, 10 + 2 * 4);
    // It still has the time that an acknowledgement may take.
    let goodbye = client.until(|seen| seen.0 == GOAWAY).await.expect("a reason");
    assert_eq!(goodbye.3[4..8], [0; 4]);
    assert_eq!(client.until(|_| false).await, None);
}

/// After how many requests a connection is told that it ends.
async fn requests_of_a_connection(native: &Native) -> u32 {
    let mut client = Frames::open(native).await;
    for number in 1.. {
        let stream = 2 * number - 1;
        client.send(HEADERS, END_STREAM | END_HEADERS, stream, GET).await;
        let told = |seen: &Seen| seen.0 == GOAWAY || seen.0 == HEADERS && seen.2 == stream;
        if client.until(told).await.expect("an answer").0 == GOAWAY {
            return number;
        }
    }
    unreachable!("numbers do not end")
}

#[tokio::test]
async fn connections_that_began_together_do_not_end_together() {
    let (address, mut seen) = answering(NOTHING).await;
    tokio::spawn(async move { while seen.recv().await.is_some() {} });
    let native = start(&with_global(address, few(200, 4))).await;
    let mut counts = Vec::new();
    for _ in 0..8 {
        counts.push(requests_of_a_connection(&native).await);
    }
    assert!(counts.iter().all(|count| (180..=200).contains(count)), "{counts:?}");
    assert!(counts.iter().any(|count| *count != counts[0]), "{counts:?}");
}

#[tokio::test]
async fn who_breaks_off_what_is_being_answered_is_stopped_at_any_pace() {
    // An upstream that never answers.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut all = Vec::new();
        while let Ok((tcp, _)) = listener.accept().await {
            all.push(tcp);
        }
    });
    let native = start(&with_global(address, few(10_000, 128))).await;
    let mut client = Frames::open(&native).await;
    let started = Instant::now();
    for stream in (1..1201).step_by(2) {
        client.send(HEADERS, END_STREAM | END_HEADERS, stream, GET).await;
        // Once this comes back the request has been taken up.
        client.send(PING, 0, 0, &[0; 8]).await;
        let back = |seen: &Seen| seen.0 == PING && seen.1 == ACK || seen.0 == GOAWAY;
        if client.until(back).await.is_none_or(|seen| seen.0 == GOAWAY) {
            let allowed = 200 + 5 * (started.elapsed().as_secs() + 1);
            assert!((200..=allowed + 10).contains(&(u64::from(stream) / 2)), "{stream}");
            return;
        }
        client.send(RST_STREAM, 0, stream, &u32::from(Reason::CANCEL).to_be_bytes()).await;
    }
    panic!("it was never stopped");
}

#[tokio::test]
async fn an_early_answer_does_not_come_with_a_reset() {
    // Nobody answers here: the request is refused while its body is on its way.
    let native = start(&configuration(&[(MAIN, Vec::new())], Policy::default())).await;
    let mut client = Frames::open(&native).await;
    client.send(HEADERS, END_HEADERS, 1, POST).await;
    client.send(DATA, 0, 1, b"some of it").await;
    let ended = |seen: &Seen| seen.0 == DATA && seen.1 & END_STREAM != 0;
    client.until(ended).await.expect("a whole answer");
    client.send(DATA, END_STREAM, 1, b"and the rest").await;
    client.send(PING, 0, 0, &[7; 8]).await;
    let next = |seen: &Seen| seen.0 == RST_STREAM || seen.0 == PING;
    assert_eq!(client.until(next).await.map(|seen| seen.0), Some(PING));
    // Who sends on and on is told to stop after a moment.
    client.send(HEADERS, END_HEADERS, 3, POST).await;
    let reset = client.until(|seen| seen.0 == RST_STREAM).await.expect("a reset");
    assert_eq!((reset.2, reset.3), (3, u32::from(Reason::NO_ERROR).to_be_bytes().to_vec()));
}

#[tokio::test]
async fn under_pressure_who_takes_nothing_is_ended_and_others_are_served() {
    // More than the system keeps for a connection.
    let large = crate::bed::answer("200 OK", "", &"x".repeat(32 << 20)).leak();
    let (address, _seen) = answering(large).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let mut frames = Frames::open(&native).await;
    frames.send(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]).await;
    frames.send(WINDOW_UPDATE, 0, 0, &(0x7fff_ffff_u32 - 65_535).to_be_bytes()).await;
    frames.send(HEADERS, END_STREAM | END_HEADERS, 1, GET).await;
    let mut plain = connect(&native).await;
    plain.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
    native.press(Pressure::High);
    let ended = async || (native.shed().unread >= 2).then_some(());
    eventually(PATIENCE, ended).await.expect("both are ended");
    let get = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    assert!(talk(&native, get).await.len() > 32 << 20);
    assert_eq!(native.shed().unread, 2);
}

#[tokio::test]
async fn under_full_pressure_a_few_newcomers_have_one_request_each() {
    const FEW: usize = 8;
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let (address, _seen) = answering(crate::bed::answer("200 OK", "", "ok").leak()).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    // Who has begun with a head is not idle.
    let begun = async || {
        let mut tcp = connect(&native).await;
        tcp.write_all(&GET[..20]).await.expect("written");
        tcp
    };
    let mut old = Vec::new();
    for _ in 0..=FEW {
        old.push(begun().await);
    }
    assert!(talk(&native, GET).await.ends_with("ok"));
    native.press(Pressure::Full);
    assert!(talk(&native, GET).await.ends_with("ok"), "a newcomer");
    old[0].write_all(&GET[20..]).await.expect("written");
    assert!(read_to_end(&mut old[0]).await.starts_with("HTTP/1.1 503 "), "who was there before");
    let mut guests = Vec::new();
    for _ in 0..FEW {
        guests.push(begun().await);
    }
    assert_eq!(talk(&native, GET).await, "", "one more than a few");
    drop(guests);
    let served = async { while !talk(&native, GET).await.ends_with("ok") {} };
    in_time(served).await;
}

#[tokio::test]
async fn under_pressure_who_announces_bodies_and_sends_nothing_is_ended() {
    let (address, _seen) = answering(crate::bed::answer("200 OK", "", "ok").leak()).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let mut frames = Frames::open(&native).await;
    for stream in [1, 3, 5] {
        frames.send(HEADERS, END_HEADERS, stream, GET).await;
    }
    let mut plain = connect(&native).await;
    let post = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 90000\r\n\r\nx";
    plain.write_all(post).await.expect("written");
    native.press(Pressure::High);
    let ended = async || (native.shed().unread >= 2).then_some(());
    eventually(PATIENCE, ended).await.expect("both are ended");
    assert_eq!(read_to_end(&mut plain).await, "", "nothing is wrong with its request");
    let get = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    assert!(talk(&native, get).await.starts_with("HTTP/1.1 200 "));
}

/// An upstream that answers `ok`, but nothing to who asks for `/hang`; each of those is told of.
async fn hanging() -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (hang, hangs) = mpsc::channel(256);
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let hang = hang.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n")
                    && tcp.read_buf(&mut head).await.is_ok_and(|n| n > 0)
                {}
                if head.starts_with(b"GET /hang ") {
                    let _ = hang.try_send(());
                    // Until it is given up.
                    let _ = tcp.read_u8().await;
                } else {
                    let _ = tcp.write_all(&crate::bed::answer("200 OK", "", "ok")).await;
                }
            });
        }
    });
    (address, hangs)
}

/// Asks for `/hang` with a head of this size; none if the connection takes no more.
async fn hang(client: &SendRequest<Bytes>, size: usize) -> Option<ResponseFuture> {
    let request = Request::get("http://a.test/hang").header("x", "v".repeat(size));
    let mut client = client.clone().ready().await.ok()?;
    let sent = client.send_request(request.body(()).expect("a request"), true);
    sent.ok().map(|(answer, _)| answer)
}

#[tokio::test]
async fn requests_under_way_have_a_bound_and_who_holds_most_ends_for_others() {
    let (address, mut hangs) = hanging().await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    // A third of it for requests.
    native.bound_memory(6 << 20);
    let mut honest = client(&native).await;
    let quiet = hang(&honest, 100).await.expect("sent");
    hangs.recv().await.expect("it came");
    let greedy = client(&native).await;
    let mut answers = Vec::new();
    for _ in 0..100 {
        answers.extend(hang(&greedy, 30_000).await);
    }
    let ended = async || {
        let (used, most, _) = native.under_way()[0];
        assert!(used <= most, "{used} of {most} bytes");
        (native.shed().unread > 0 && used < 64 << 10).then_some(())
    };
    eventually(PATIENCE, ended).await.expect("who holds most is ended");
    assert!(native.shed().requests > 0, "what found no room was answered 503");
    let (answer, _) = send(&mut honest, Method::GET, &[], true);
    assert_eq!(status(answer).await, StatusCode::OK, "who holds little is served");
    assert_eq!(native.shed().unread, 1);
    drop((quiet, answers));
}

#[tokio::test]
async fn under_full_pressure_who_holds_most_ends_whatever_it_waits_for() {
    let (address, mut hangs) = hanging().await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    // 1/16 of it is left alone, and 1/32 given back at a time.
    native.bound_memory(1 << 20);
    let streams = client(&native).await;
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.extend(hang(&streams, 100).await);
    }
    let lines = format!("X: {}\r\n", "v".repeat(7000)).repeat(3);
    let mut plain = Vec::new();
    for lines in [&lines, &lines, &lines, &lines, &lines, ""] {
        let mut tcp = connect(&native).await;
        let get = format!("GET /hang HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n");
        tcp.write_all(get.as_bytes()).await.expect("written");
        plain.push(tcp);
    }
    for _ in 0..12 {
        in_time(hangs.recv()).await.expect("it came");
    }
    native.press(Pressure::Full);
    for answer in answers {
        assert!(in_time(answer).await.is_err(), "the streams hold most");
    }
    let ended = async || (native.shed().unread == 3).then_some(());
    eventually(PATIENCE, ended).await.expect("two that hold much over HTTP/1 end, too");
    let small = plain.last().expect("the last one");
    assert!(small.try_read(&mut [0]).is_err(), "who holds little stays");
}

#[tokio::test]
async fn guests_under_full_pressure_make_way_for_others_after_a_while() {
    let (address, mut hangs) = hanging().await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut tcp = connect(&native).await;
        tcp.write_all(b"GET /hang HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
        held.push(tcp);
    }
    for _ in 0..8 {
        in_time(hangs.recv()).await.expect("it came");
    }
    native.press(Pressure::Full);
    // As many guests as there may be, each with a request that never ends.
    for _ in 0..8 {
        let mut tcp = connect(&native).await;
        tcp.write_all(b"GET /hang HTTP/1.1\r\nHost: a.test\r\n\r\n").await.expect("written");
        in_time(hangs.recv()).await.expect("it came");
        held.push(tcp);
    }
    let get = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    in_time(async { while !talk(&native, get).await.ends_with("ok") {} }).await;
    assert!(held.iter().all(|tcp| tcp.try_read(&mut [0]).is_err()), "what they asked for goes on");
}
