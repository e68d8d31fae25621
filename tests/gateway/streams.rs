//! TCPRoutes and TLSRoutes at Gateways with addresses of their own.

use crate::gateway::bed::Bed;
use std::net::SocketAddr;
use testkit::certificates::Certificates;
use testkit::cluster::Connection;
use testkit::ports;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const FLAG: &str = "--gateway-addresses=127.91.0.5";

/// A Fairway with the objects, where its listeners are, and an upstream that takes bytes.
async fn start() -> (Bed, [SocketAddr; 2], TcpListener) {
    let [tcp, tls] = std::array::from_fn(|_| ports::free());
    let raw = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let at_raw = raw.local_addr().expect("bound").port();
    let objects = include_str!("streams.yaml");
    let objects = objects.replace("PORT-tcp", &tcp.to_string());
    let objects = objects.replace("PORT-raw", &at_raw.to_string());
    let objects = objects.replace("PORT-tls", &tls.to_string());
    let bed = Bed::start_with(&objects, &[FLAG]).await;
    let place = |port| SocketAddr::from(([127, 91, 0, 5], port));
    (bed, [place(tcp), place(tls)], raw)
}

/// What whoever is behind an address answers.
async fn answer(address: SocketAddr) -> Option<String> {
    let mut connection = Connection::open(address).await.ok()?;
    Some(connection.get("any.test", "/").await.ok()?.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_shared_out_by_weight_until_the_route_goes() {
    let (bed, [tcp, _], _raw) = start().await;
    let mut counts = [0; 2];
    for _ in 0..80 {
        let text = answer(tcp).await.expect("an answer");
        counts[usize::from(text.starts_with("pod b"))] += 1;
        assert!(!text.starts_with("pod c"), "{text}");
    }
    assert!((55..=65).contains(&counts[0]), "three of four go to the first: {counts:?}");
    bed.remove("streams").await;
    bed.until(async || answer(tcp).await.is_none()).await;
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_ends_or_goes_on_by_its_name_and_what_nobody_has_just_ends() {
    let (bed, [_, tls], raw) = start().await;
    let authority = Certificates::shared().get("ca").expect("a fixture").certificate.clone();
    let mut ended = Connection::open_tls(tls, "demo.test", &authority).await.expect("a handshake");
    let answer = ended.get("demo.test", "/").await.expect("an answer");
    assert!(answer.text().starts_with("pod b"), "{}", answer.text());
    // However long: what is read of TLS before it is known whose it is has a bound.
    let long = serde_json::Value::from("x".repeat(1 << 20));
    let answer = ended.post_json("demo.test", "/", &long).await.expect("an answer");
    assert!(answer.text().starts_with("pod b"), "{}", answer.text());
    assert!(Connection::open_tls(tls, "none.test", &authority).await.is_err(), "nobody has it");
    // The upstream gets the handshake itself.
    let mut seen = Vec::new();
    let taking = async {
        let (mut tcp, _) = raw.accept().await.expect("a connection");
        while !seen.windows(10).any(|window| window == b"other.test") {
            assert!(tcp.read_buf(&mut seen).await.expect("bytes") > 0, "{seen:?}");
        }
    };
    tokio::select! {
        () = taking => {}
        opened = Connection::open_tls(tls, "other.test", &authority) => panic!("{:?}", opened.err()),
    }
    assert_eq!(seen[0], 22, "a handshake");
    // Not TLS at all.
    let mut plain = TcpStream::connect(tls).await.expect("a connection");
    plain.write_all(b"GET / HTTP/1.1\r\nHost: demo.test\r\n\r\n").await.expect("sent");
    let mut said = Vec::new();
    // An end or a reset, but no word.
    let _ = plain.read_to_end(&mut said).await;
    assert!(said.is_empty(), "{said:?}");
    bed.stop().await;
}
