//! Listeners of one Gateway that several people wrote: the most special one has a request alone.

use crate::gateway::bed::{Bed, at};
use std::net::{Ipv4Addr, SocketAddr};
use testkit::certificates::Certificates;
use testkit::cluster::Connection;
use testkit::ports;

/// The objects, with the ports of the listeners.
fn objects(http: u16, https: u16) -> String {
    let objects = include_str!("listeners-of-others.yaml");
    objects.replace("PORT-https", &https.to_string()).replace("PORT-http", &http.to_string())
}

/// A part of the objects.
fn part<'a>(objects: &'a str, name: &str) -> &'a str {
    let from = objects.split("# file: ").find_map(|part| part.strip_prefix(name));
    from.expect("a part of this name")
}

async fn handshake(https: SocketAddr) -> Option<Connection> {
    let authority = Certificates::shared().get("ca").expect("a fixture").certificate.clone();
    Connection::open_tls(https, "demo.test", &authority).await.ok()
}

/// Asks for hosts of the first set and of the Gateway, whose routes have `/app` alone, beside a listener for all hosts
/// with a route for all paths.
async fn asks(bed: &Bed, http: SocketAddr, https: SocketAddr, objects: &str) {
    for (host, path, expected) in [
        ("pay.shop.test", "/app", (200, "a")),
        ("pay.shop.test", "/", (404, "")),
        ("pay.shop.test", "/.well-known/acme-challenge/x", (404, "")),
        // No route has this host.
        ("other.shop.test", "/", (404, "")),
        ("op.test", "/app", (200, "a")),
        ("op.test", "/", (404, "")),
        ("any.test", "/", (200, "b")),
        ("shop.test", "/", (200, "b")),
    ] {
        let answer = at(http, host, path).await.expect("an answer");
        assert_eq!((answer.status, &*answer.pod), expected, "{host} {path}");
    }
    let mut kept = handshake(https).await.expect("the certificate of its listener");
    assert_eq!(kept.get("demo.test", "/app").await.expect("an answer").status, 200);
    assert_eq!(kept.get("demo.test", "/").await.expect("an answer").status, 404);
    // The certificate goes; that of the wider listener is for the same name, and is not shown in its place.
    let whole = part(objects, "first");
    bed.replace("first", &whole.replace("name: tls-demo", "name: gone")).await;
    bed.until(async || handshake(https).await.is_none()).await;
    let late = kept.get("demo.test", "/").await;
    assert!(late.as_ref().map_or(true, |answer| answer.status == 404), "{late:?}");
    assert_eq!(at(http, "any.test", "/").await.expect("an answer").pod, "b");
    assert_eq!(at(http, "pay.shop.test", "/app").await.expect("an answer").pod, "a");
    bed.replace("first", whole).await;
    bed.until(async || handshake(https).await.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_addresses_are_shared_a_wider_listener_has_nothing_of_a_more_special_one() {
    let objects = objects(80, 443);
    let bed = Bed::start(&objects).await;
    let [http, https] = bed.ports().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    asks(&bed, http, https, &objects).await;
    // Nor has it, whatever certificate a client takes.
    bed.replace("first", &part(&objects, "first").replace("name: tls-demo", "name: gone")).await;
    bed.until(async || handshake(https).await.is_none()).await;
    assert_eq!(bed.get_tls("demo.test", "/").await.0, 404);
    assert_eq!(bed.get_tls("any.test", "/").await.0, 200);
    let told = bed.explain("http://op.test/");
    assert!(
        told.contains("a more special listener, which somebody else wrote, has the host"),
        "{told}"
    );
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_an_address_of_its_own_a_listener_without_a_certificate_keeps_its_hosts() {
    let ports: [u16; 2] = std::array::from_fn(|_| ports::free());
    let objects = objects(ports[0], ports[1]);
    let bed = Bed::start_with(&objects, &["--gateway-addresses=127.91.0.32/32"]).await;
    let [http, https] = ports.map(|port| SocketAddr::from(([127, 91, 0, 32], port)));
    asks(&bed, http, https, &objects).await;
    bed.stop().await;
}
