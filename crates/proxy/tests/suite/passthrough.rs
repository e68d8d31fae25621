//! TLS connections that are carried on as they are, and those that are not, over real sockets.

use crate::bed::{MAIN, configuration, start};
use model::policy::Policy;
use model::{Configuration, ServerName, UpstreamId};
use proxy::Native;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers every connection with its name and all bytes that it got.
async fn upstream(name: &'static str) -> SocketAddr {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("sockets of this machine work");
    let address = listener.local_addr().expect("sockets of this machine work");
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut all = Vec::new();
                tcp.read_to_end(&mut all).await.expect("sockets of this machine work");
                tcp.write_all(name.as_bytes()).await.expect("sockets of this machine work");
                tcp.write_all(&all).await.expect("sockets of this machine work");
            });
        }
    });
    address
}

fn passed_through(endpoints: Vec<SocketAddr>) -> Configuration {
    let mut configuration = configuration(&[(MAIN, endpoints)], Policy::default());
    let server = &mut configuration.servers[&ServerName::new("a.test")];
    Arc::make_mut(server).passthrough = Some(UpstreamId::new(MAIN));
    configuration
}

/// The first bytes of a TLS client that asks for this name.
fn hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config
        .expect("sockets of this machine work")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().expect("a name");
    let mut client =
        ClientConnection::new(Arc::new(config), name).expect("sockets of this machine work");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("sockets of this machine work");
    bytes
}

async fn connect(native: &Native) -> TcpStream {
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, native.listening().https_port));
    let tcp = tcp.await.expect("listening");
    tcp.set_nodelay(true).expect("sockets of this machine work");
    tcp
}

/// What comes back for these bytes, sent in pieces.
async fn ask(native: &Native, bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut tcp = connect(native).await;
    for piece in bytes.chunks(piece) {
        tcp.write_all(piece).await.expect("sockets of this machine work");
        tokio::task::yield_now().await;
    }
    tcp.shutdown().await.expect("sockets of this machine work");
    let mut answer = Vec::new();
    let _reset = tcp.read_to_end(&mut answer).await;
    answer
}

#[tokio::test]
async fn a_hello_in_pieces_and_in_many_records_arrives_unchanged() {
    let native = start(&passed_through(vec![upstream("a:").await])).await;
    let whole = hello("a.test");
    let record = |part: &[u8]| [&[22, 3, 1, 0, part.len() as u8], part].concat();
    let split: Vec<u8> = whole[5..].chunks(50).flat_map(record).collect();
    for bytes in [&whole, &split] {
        for piece in [1, 7, bytes.len()] {
            assert_eq!(ask(&native, bytes, piece).await, [b"a:", &bytes[..]].concat(), "{piece}");
        }
    }
}

#[tokio::test]
async fn other_names_and_other_spellings_end_here() {
    let native = start(&passed_through(vec![upstream("a:").await])).await;
    for name in ["b.test", "x.a.test", "192.0.2.1"] {
        let answer = ask(&native, &hello(name), 100).await;
        // A ServerHello, or an alert after it: not what the upstream says.
        assert_eq!(answer.first(), Some(&22), "{name}");
    }
    let answer = ask(&native, b"GET / HTTP/1.1\r\n\r\n", 100).await;
    assert!(!answer.starts_with(b"a:"), "{answer:?}");
}

#[tokio::test]
async fn endpoints_take_turns_and_one_that_refuses_is_passed_over() {
    let closed =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("sockets of this machine work");
    let refused = closed.local_addr().expect("sockets of this machine work");
    drop(closed);
    let endpoints = vec![upstream("a:").await, refused, upstream("b:").await];
    let native = start(&passed_through(endpoints)).await;
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(ask(&native, &hello("a.test"), 1000).await[..2].to_vec());
    }
    assert_eq!(heard, [b"a:", b"b:", b"a:", b"b:"]);
}

#[tokio::test]
async fn a_client_that_ends_in_the_middle_is_let_go() {
    let native = start(&passed_through(vec![upstream("a:").await])).await;
    let answer = ask(&native, &hello("a.test")[..40], 40).await;
    assert!(!answer.starts_with(b"a:"));
}
