//! Who shares a connection over HTTP/2, and what one of them can do to the others; and connections that never begin.

use crate::bed::{self, MAIN, answering, configuration, put_host, start};
use crate::http2::{
    DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, POST, SETTINGS, Seen, WINDOW_UPDATE,
    client, in_time, send,
};
use crate::serve::NOTHING;
use bytes::Bytes;
use http::Method;
use model::Global;
use model::policy::{Policy, Protocol};
use proxy::Pressure;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use testkit::http2::{PREFACE, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A gRPC service that takes nothing of any body.
async fn never_reading() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                // SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 section 6.5.2).
                let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
                tcp.write_all(&no_window).await.expect("it is taken");
                tokio::io::copy(&mut tcp, &mut tokio::io::sink()).await
            });
        }
    });
    address
}

#[tokio::test]
async fn uploads_that_nobody_takes_leave_others_of_their_connection_room() {
    let (address, _seen) = answering(NOTHING).await;
    let mut all = configuration(&[(MAIN, vec![address])], Policy::default());
    let stuck = bed::put_upstream(&mut all, "stuck", vec![never_reading().await]);
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    put_host(&mut all, "b.test", &stuck, policy);
    let native = start(&all).await;
    let mut frames = Frames::open(&native).await;
    let widened = |seen: &Seen| (seen.0, seen.2) == (WINDOW_UPDATE, 0);
    frames.until(widened).await.expect("the window of the connection");
    // All that may come of each before anybody takes it, and more than a mebibyte in all.
    for stream in 0..40 {
        let stream = 2 * stream + 1;
        frames.send(HEADERS, END_HEADERS, stream, b"\x83\x86\x84\x01\x06b.test").await;
        for size in [16_384, 16_384, 16_384, 16_383] {
            frames.send(DATA, 0, stream, &vec![0; size]).await;
        }
    }
    frames.send(HEADERS, END_HEADERS, 81, POST).await;
    frames.send(DATA, END_STREAM, 81, b"body").await;
    let answer = frames.until(|seen| seen.0 == GOAWAY || seen.2 == 81).await;
    assert_eq!(answer.map(|seen| (seen.0, seen.2)), Some((HEADERS, 81)));
}

/// A gRPC service that answers with these frames on a stream, and is told on which connection it was asked.
async fn saying(frames: fn(u32, u8) -> Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        for connection in b'1'.. {
            let (mut tcp, _) = listener.accept().await.expect("Fairway");
            tokio::spawn(async move {
                tcp.read_exact(&mut [0; PREFACE.len()]).await.expect("the preface");
                tcp.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("it is taken");
                let mut header = [0; 9];
                while tcp.read_exact(&mut header).await.is_ok() {
                    let [_, high, low, kind, _, stream @ ..] = header;
                    let mut payload = vec![0; usize::from(u16::from_be_bytes([high, low]))];
                    tcp.read_exact(&mut payload).await.expect("it is whole");
                    if kind == HEADERS {
                        let answer = frames(u32::from_be_bytes(stream), connection);
                        tcp.write_all(&answer).await.expect("it is taken");
                    }
                }
            });
        }
    });
    address
}

/// An answer that has many pieces without a byte.
fn in_empty_pieces(stream: u32, connection: u8) -> Vec<u8> {
    let mut answer = frame(HEADERS, END_HEADERS, stream, b"\x88");
    for _ in 0..60 {
        answer.extend(frame(DATA, 0, stream, &[]));
    }
    answer.extend(frame(DATA, END_STREAM, stream, &[connection]));
    answer
}

/// One before which it is said that no further call is taken.
fn the_last(stream: u32, connection: u8) -> Vec<u8> {
    // SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 section 6.5.2).
    let mut answer = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0]);
    answer.extend(frame(HEADERS, END_HEADERS, stream, b"\x88"));
    answer.extend(frame(DATA, END_STREAM, stream, &[connection]));
    answer
}

/// Asserts that each call has a session of its own.
async fn each_has_its_own(frames: fn(u32, u8) -> Vec<u8>) {
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![saying(frames).await])], policy)).await;
    let mut client = client(&native).await;
    for connection in b'1'..=b'3' {
        let (answer, _) = send(&mut client, Method::POST, &[], true);
        let mut body = in_time(answer).await.expect("an answer").into_body();
        let said = in_time(body.data()).await.expect("it says something").expect("whole");
        assert_eq!(said, Bytes::copy_from_slice(&[connection]));
    }
}

#[tokio::test]
async fn a_session_with_many_empty_pieces_gets_no_further_calls_before_it_ends_with_them() {
    each_has_its_own(in_empty_pieces).await;
}

#[tokio::test]
async fn a_session_that_takes_no_calls_gets_none() {
    each_has_its_own(the_last).await;
}

#[tokio::test]
async fn an_answer_without_a_body_announces_none_to_clients_of_http_1() {
    let no_content = |stream, _| {
        // `:status: 204`, `content-length: 5` (RFC 7541 appendix A).
        frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x89\x0f\x0d\x015")
    };
    let policy = Policy { protocol: Protocol::Grpc, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![saying(no_content).await])], policy)).await;
    let asked = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answer = bed::talk(&native, asked).await;
    assert!(answer.starts_with("HTTP/1.1 204 ") && !answer.contains("ontent-"), "{answer}");
}

#[tokio::test]
async fn who_sends_a_part_of_the_preface_has_the_time_of_one_head() {
    let (address, _seen) = answering(NOTHING).await;
    let mut global = Global::default();
    global.limits.header_timeout = Duration::from_millis(200);
    let native = start(&bed::with_global(address, global)).await;
    for (begun, said) in [(&PREFACE[..1], ""), (&PREFACE[..20], ""), (b"G", "HTTP/1.1 408 ")] {
        let mut tcp = bed::connect(&native).await;
        tcp.write_all(begun).await.expect("it is taken");
        let answer = bed::read_to_end(&mut tcp).await;
        assert!(answer.starts_with(said) && answer.is_empty() == said.is_empty(), "{answer}");
    }
}

#[tokio::test]
async fn who_says_it_speaks_http2_and_then_nothing_ends_under_pressure() {
    let (address, _seen) = answering(NOTHING).await;
    let mut global = Global::default();
    global.limits.header_timeout = Duration::from_secs(600);
    let native = start(&bed::with_global(address, global)).await;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions that exist");
    let mut config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(crate::ocsp::Notes::default()))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, native.listening().https_port));
    let name = ServerName::try_from("a.test").expect("a name");
    let mut tls = connector.connect(name, tcp.await.expect("listening")).await.expect("TLS");
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut begun = bed::connect(&native).await;
    begun.write_all(&PREFACE[..1]).await.expect("it is taken");
    native.press(Pressure::High);
    let mut said = Vec::new();
    let ended = async { (tls.read_to_end(&mut said).await, begun.read(&mut [0]).await) };
    let _ = in_time(ended).await;
}
