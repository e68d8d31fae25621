//! TLS on both sides of a Gateway: policies of backends, the certificate that is shown to them, and those of clients.

use crate::gateway::bed::{Bed, at};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use testkit::certificates::Certificates;
use testkit::client::Client;
use testkit::cluster::Connection;
use testkit::exchange::{Request, SeenTls};
use testkit::ports;
use testkit::upstreams::Upstreams;

const FLAG: &str = "--gateway-addresses=127.91.0.8/29";
const SHOWS: Ipv4Addr = Ipv4Addr::new(127, 91, 0, 9);
const PLAIN: Ipv4Addr = Ipv4Addr::new(127, 91, 0, 10);

/// A Fairway with the objects, an upstream that speaks TLS, and the ports of the listeners.
struct Ground {
    bed: Bed,
    upstreams: Upstreams,
    http: u16,
    strict: u16,
    both: u16,
    lax: u16,
    closed: u16,
    ended: u16,
}

impl Ground {
    async fn start() -> Self {
        let upstreams = Upstreams::local().await.expect("ports");
        let port = |pod: &str| {
            let place = upstreams.places.get(pod).expect("a fixture");
            *place.ports.values().next().expect("a port")
        };
        let [http, strict, both, lax, closed, ended] = std::array::from_fn(|_| ports::free());
        let mut objects = include_str!("certificates.yaml").to_owned();
        for (name, port) in [
            ("http", http),
            ("strict", strict),
            ("both", both),
            ("lax", lax),
            ("closed", closed),
            ("ended", ended),
            ("tls", port("echo-tls-0")),
            ("clear", port("multi-0")),
        ] {
            objects = objects.replace(&format!("PORT-{name}"), &port.to_string());
        }
        for name in ["alice", "other-ca", "ca"] {
            let pair = Certificates::shared().get(name).expect("a fixture").clone();
            for (field, text) in [("CRT", pair.certificate), ("KEY", pair.key)] {
                let text = text.replace('\n', "\\n");
                objects = objects.replace(&format!("{field}-{name}"), &format!("\"{text}\""));
            }
        }
        let bed = Bed::start_with(&objects, &[FLAG]).await;
        Self { bed, upstreams, http, strict, both, lax, closed, ended }
    }

    /// The status of a request to a Gateway, and what the upstream saw of TLS.
    async fn ask(&self, gateway: Ipv4Addr, host: &str) -> (u16, Option<SeenTls>) {
        let address = SocketAddr::from((gateway, self.http));
        let answer = at(address, host, "/").await.expect("an answer");
        let seen = self.upstreams.journal.drain().pop();
        (answer.status, seen.and_then(|seen| seen.tls))
    }

    /// The status of a request of a client with this certificate; none if it gets no answer.
    async fn shows(&self, port: u16, certificate: Option<&str>, protocol: &str) -> Option<u16> {
        let request = Request {
            url: "https://demo.test/".to_owned(),
            client_certificate: certificate.map(str::to_owned),
            protocol: Some(protocol.to_owned()),
            ..Request::default()
        };
        let answer = Client::new(IpAddr::V4(SHOWS), self.http, port).send(&request).await;
        assert!(answer.status.is_some() || answer.error.is_some());
        answer.status
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_is_spoken_to_as_its_policy_says_and_never_otherwise() {
    let ground = Ground::start().await;
    for (host, status, name) in [
        ("good.test", 200, Some("echo-tls.demo.svc")),
        ("sni.test", 200, Some("other.test")),
        ("wrong-name.test", 502, None),
        ("wrong-ca.test", 502, None),
        ("system.test", 502, None),
        ("closed.test", 500, None),
    ] {
        // Several times: a connection that is kept is never another policy's.
        for _ in 0..3 {
            let (answered, seen) = ground.ask(PLAIN, host).await;
            assert_eq!(answered, status, "{host}");
            assert_eq!(seen.as_ref().and_then(|seen| seen.sni.as_deref()), name, "{host}");
            assert!(seen.is_none_or(|seen| seen.client.is_none()), "{host}");
        }
    }
    // A backend that does not speak TLS gets a handshake, and no request in clear.
    let (answered, _) = ground.ask(PLAIN, "in-clear.test").await;
    assert!((500..600).contains(&answered), "{answered}");
    let got: Vec<_> = ground.upstreams.journal.drain();
    assert!(got.iter().all(|seen| seen.tls.is_some()), "{got:?}");
    ground.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_shows_its_certificate_over_its_own_connections_alone() {
    let ground = Ground::start().await;
    for _ in 0..4 {
        for (gateway, client) in [(SHOWS, Some("alice")), (PLAIN, None)] {
            let (status, seen) = ground.ask(gateway, "good.test").await;
            let seen = seen.expect("TLS");
            assert_eq!((status, seen.client.as_deref()), (200, client), "{gateway}");
        }
    }
    // What ends here may go on under TLS, too.
    let authority = Certificates::shared().get("ca").expect("a fixture").certificate.clone();
    let ended = SocketAddr::from((SHOWS, ground.ended));
    let mut ended = Connection::open_tls(ended, "demo.test", &authority).await.expect("TLS");
    assert_eq!(ended.get("demo.test", "/").await.expect("an answer").status, 200);
    let seen = ground.upstreams.journal.drain().pop().and_then(|seen| seen.tls).expect("TLS");
    assert_eq!(seen.sni.as_deref(), Some("echo-tls.demo.svc"));
    assert_eq!(seen.client.as_deref(), Some("alice"));
    ground.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_must_show_a_good_certificate_where_a_port_asks_for_one() {
    let ground = Ground::start().await;
    for protocol in ["http/1.1", "h2"] {
        for (certificate, strict) in
            [(Some("alice"), Some(200)), (Some("mallory"), None), (None, None)]
        {
            let told = ground.shows(ground.strict, certificate, protocol).await;
            assert_eq!(told, strict, "{certificate:?} over {protocol}");
            let told = ground.shows(ground.lax, certificate, protocol).await;
            assert_eq!(told, Some(200), "{certificate:?} over {protocol}");
            let told = ground.shows(ground.closed, certificate, protocol).await;
            assert_eq!(told, None, "{certificate:?}: nobody knows who is trusted");
        }
    }
    ground.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_trusted_no_more_is_refused_over_connections_that_are_there() {
    let ground = Ground::start().await;
    let get = |name| Certificates::shared().get(name).expect("a fixture").clone();
    let authority = get("ca").certificate;
    let address = SocketAddr::from((SHOWS, ground.both));
    let open =
        async |own| Connection::open_tls_as(address, "demo.test", &authority, &get(own)).await;
    let (mut alice, mut mallory) =
        (open("alice").await.expect("TLS"), open("mallory").await.expect("TLS"));
    for connection in [&mut alice, &mut mallory] {
        assert_eq!(connection.get("demo.test", "/").await.expect("an answer").status, 200);
    }
    ground.bed.remove("passing").await;
    let is_refused = async || ground.shows(ground.both, Some("alice"), "http/1.1").await.is_none();
    ground.bed.until(is_refused).await;
    assert_eq!(alice.get("demo.test", "/").await.expect("an answer").status, 400);
    assert_eq!(mallory.get("demo.test", "/").await.expect("an answer").status, 200);
    ground.bed.stop().await;
}
