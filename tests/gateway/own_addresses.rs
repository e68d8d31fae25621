//! Gateways with addresses of their own: `--gateway-addresses`.

use crate::gateway::bed::{Bed, at};
use std::net::SocketAddr;
use testkit::certificates::Certificates;
use testkit::cluster::Connection;
use testkit::ports;

const FLAG: &str = "--gateway-addresses=127.91.0.0/30";

/// A Fairway with the objects, and where the two Gateways are.
async fn start() -> (Bed, [SocketAddr; 3]) {
    let [http, https] = std::array::from_fn(|_| ports::free());
    let objects = include_str!("own-addresses.yaml");
    let objects = objects.replace("PORT-https", &https.to_string());
    let objects = objects.replace("PORT-http", &http.to_string());
    let bed = Bed::start_with(&objects, &[FLAG]).await;
    let places = [("127.91.0.1", http), ("127.91.0.2", http), ("127.91.0.1", https)];
    (bed, places.map(|(ip, port)| SocketAddr::new(ip.parse().expect("an address"), port)))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_listener_has_its_hosts_alone_and_no_ingress_is_there() {
    let (bed, [first, second, _]) = start().await;
    for (address, host, path, expected) in [
        (first, "any.test", "/", (200, "a")),
        (second, "any.test", "/", (200, "c")),
        (first, "x.wild.test", "/narrow", (200, "b")),
        // The route of the listener for all hosts is not asked.
        (first, "x.wild.test", "/", (404, "")),
        (first, "wild.test", "/", (200, "a")),
        (first, "ingress.test", "/", (200, "a")),
    ] {
        let answer = at(address, host, path).await.expect("an answer");
        assert_eq!((answer.status, &*answer.pod), expected, "{address} {host} {path}");
    }
    assert_eq!(bed.get("ingress.test", "/").await.pod, "b");
    assert_eq!(bed.get("any.test", "/").await.status, 404, "Gateways are at their addresses only");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_another_listener_than_that_of_the_handshake_is_misdirected() {
    let (bed, [.., secure]) = start().await;
    let authority = Certificates::shared().get("ca").expect("a fixture").certificate.clone();
    let open = async |name| Connection::open_tls(secure, name, &authority).await;
    // Each is verified by its name: a handshake gets the certificate of its listener.
    let mut demo = open("demo.test").await.expect("the certificate of demo.test");
    let mut other = open("other.test").await.expect("the certificate of other.test");
    for (host, status) in [("demo.test", 200), ("other.test", 421), ("none.test", 404)] {
        assert_eq!(demo.get(host, "/narrow").await.expect("an answer").status, status, "{host}");
    }
    assert_eq!(other.get("other.test", "/narrow").await.expect("an answer").status, 200);
    assert_eq!(other.get("other.test", "/").await.expect("an answer").status, 404);
    assert!(open("none.test").await.is_err(), "no listener has the name");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_closes_with_its_gateway_and_others_are_not_touched() {
    let (bed, [first, second, _]) = start().await;
    let mut kept = Connection::open(first).await.expect("a connection");
    let mut late = Connection::open(second).await.expect("a connection");
    assert_eq!(late.get("ingress.test", "/").await.expect("an answer").status, 200);
    bed.remove("second").await;
    bed.until(async || at(second, "any.test", "/").await.is_none()).await;
    // Who still holds a connection to it does not come to an Ingress by it.
    let answer = late.get("ingress.test", "/").await;
    assert!(answer.as_ref().map_or(true, |answer| answer.status != 200), "{answer:?}");
    assert_eq!(kept.get("any.test", "/").await.expect("the same connection").status, 200);
    bed.stop().await;
}
