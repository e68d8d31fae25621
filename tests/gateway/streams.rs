//! TCPRoutes and TLSRoutes at Gateways with addresses of their own.

use crate::bed::{Bed, at};
use std::net::SocketAddr;
use testkit::certificates::Certificates;
use testkit::cluster::Connection;
use testkit::ports;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const FLAG: &str = "--gateway-addresses=127.91.0.5";

async fn start() -> (Bed, SocketAddr, SocketAddr) {
    let [tcp, tls] = std::array::from_fn(|_| ports::free());
    let objects = include_str!("streams.yaml");
    let objects = objects.replace("PORT-tcp", &tcp.to_string());
    let objects = objects.replace("PORT-tls", &tls.to_string());
    let bed = Bed::start_with(&objects, &[FLAG]).await;
    let place = |port| SocketAddr::from(([127, 91, 0, 5], port));
    (bed, place(tcp), place(tls))
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_shared_out_by_weight_until_the_route_goes() {
    let (bed, tcp, _) = start().await;
    let mut counts = [0; 2];
    for _ in 0..80 {
        let pod = at(tcp, "whatever.test", "/").await.expect("an answer").pod;
        counts[usize::from(pod == "b")] += 1;
        assert!(pod == "a" || pod == "b", "{pod}");
    }
    assert!((55..=65).contains(&counts[0]), "three of four go to the first: {counts:?}");
    bed.remove("streams").await;
    bed.until(async || at(tcp, "whatever.test", "/").await.is_none()).await;
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_ends_or_goes_on_by_its_name_and_what_nobody_has_just_ends() {
    let (bed, _, tls) = start().await;
    let authority = Certificates::shared().get("ca").expect("a fixture").certificate.clone();
    let mut ended = Connection::open_tls(tls, "demo.test", &authority).await.expect("a handshake");
    let answer = ended.get("demo.test", "/").await.expect("an answer");
    assert!(answer.text().starts_with("pod b"), "{}", answer.text());
    // The upstream gets the handshake itself, and being one of HTTP it answers nothing.
    for name in ["other.test", "none.test"] {
        assert!(Connection::open_tls(tls, name, &authority).await.is_err(), "{name}");
    }
    // Not TLS at all.
    let mut plain = TcpStream::connect(tls).await.expect("a connection");
    plain.write_all(b"GET / HTTP/1.1\r\nHost: demo.test\r\n\r\n").await.expect("sent");
    let mut said = Vec::new();
    // An end or a reset, but no word.
    let _ = plain.read_to_end(&mut said).await;
    assert!(said.is_empty(), "{said:?}");
    bed.stop().await;
}
