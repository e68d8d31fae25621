//! The client of the exchange format against the fixtures, without anything between them.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;
use testkit::{
    client::Client,
    exchange::{Answer, Body, Request, Seen, SeenTls},
    upstreams::Upstreams,
    wire::value,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The fixtures, and a client whose `http` and `https` are the two named pods.
async fn bed(http: &str, https: &str) -> (Upstreams, Client) {
    let upstreams = Upstreams::local().await.expect("the fixtures start");
    let port = |pod: &str| {
        let ports = &upstreams.places.get(pod).expect("the pod exists").ports;
        *ports.values().next().expect("every pod has a port")
    };
    let client = Client::new(LOCAL, port(http), port(https));
    (upstreams, client)
}

fn request(yaml: &str) -> Request {
    let document = testkit::yaml::documents(yaml).expect("the request is YAML").remove(0);
    serde_json::from_value(document).expect("the request is in the format")
}

/// Sends one request; gives its answer and what the fixture saw.
async fn send(upstreams: &Upstreams, client: &Client, yaml: &str) -> (Answer, Vec<Seen>) {
    let answer = client.send(&request(yaml)).await;
    (answer, upstreams.journal.drain())
}

fn text(answer: &Answer) -> &str {
    answer.body.as_ref().and_then(Body::as_text).unwrap_or_default()
}

#[tokio::test]
async fn a_request_arrives_byte_for_byte_and_comes_back_as_json() {
    let (upstreams, client) = bed("echo-0", "echo-tls-0").await;
    let yaml = r#"{url: "http://a.test/a%2f/../b c?x#y", headers: [[x-LOWER, "\x01\xff"], [A, '1'], [a, '2']]}"#;
    let (answer, seen) = send(&upstreams, &client, yaml).await;
    assert_eq!((answer.status, answer.protocol.as_deref()), (Some(200), Some("HTTP/1.1")));
    assert!(
        text(&answer)
            .starts_with(r#"{"service": "echo", "pod": "echo-0", "protocol": "c?x#y HTTP/1.1""#)
    );
    assert_eq!(seen[0].uri.as_deref(), Some("/a%2f/../b"));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let want =
        [pair("Host", "a.test"), pair("x-LOWER", "\u{1}\u{ff}"), pair("A", "1"), pair("a", "2")];
    assert_eq!(seen[0].headers.as_deref(), Some(&want[..]));
}

#[tokio::test]
async fn headers_of_the_request_steer_the_echo() {
    let (upstreams, client) = bed("echo-1", "echo-tls-0").await;
    let status = "{url: 'http://a.test/', headers: [[Echo-Status, 201], [Echo-Status-On, echo-1=503], [Echo-Body, hi]]}";
    let (answer, _) = send(&upstreams, &client, status).await;
    assert_eq!((answer.status, text(&answer)), (Some(503), "hi"));
    let header =
        "{url: 'http://a.test/', headers: [[Echo-Header, 'Content-Type: a/b'], [Echo-Size, 3000]]}";
    let (answer, _) = send(&upstreams, &client, header).await;
    assert!(matches!(answer.body, Some(Body::Digest { size: 3000, .. })));
    assert_eq!(value(answer.headers.as_deref().unwrap(), "content-type"), Some("a/b"));
    let trailer = "{url: 'http://a.test/', headers: [[Echo-Trailer, 'X-T: v'], [Echo-Body, abc]]}";
    let (answer, _) = send(&upstreams, &client, trailer).await;
    assert_eq!(
        (text(&answer), answer.trailers.as_slice()),
        ("abc", &[("X-T".to_owned(), "v".to_owned())][..])
    );
    let close = "{url: 'http://a.test/', headers: [[Echo-Close, 1]]}";
    assert_eq!(
        send(&upstreams, &client, close).await.0.error.as_deref(),
        Some("connection-closed")
    );
    let slow = "{url: 'http://a.test/', headers: [[Echo-Delay, 2s]], timeout: 50ms}";
    assert_eq!(send(&upstreams, &client, slow).await.0.error.as_deref(), Some("timeout"));
}

#[tokio::test]
async fn bodies_of_every_framing_arrive() {
    let (upstreams, client) = bed("echo-0", "echo-tls-0").await;
    for (yaml, want) in [
        ("{url: 'http://a.test/', method: POST, body: hello}", "hello"),
        (
            "{url: 'http://a.test/', method: POST, body: hello, headers: [[Transfer-Encoding, chunked]]}",
            "hello",
        ),
        (
            "{url: 'http://a.test/', method: POST, body: hello, headers: [[Expect, 100-continue]]}",
            "hello",
        ),
        ("{url: 'http://a.test/', method: POST, body-size: 3}", "bbb"),
    ] {
        let (answer, seen) = send(&upstreams, &client, yaml).await;
        assert_eq!(answer.status, Some(200), "{yaml}");
        assert_eq!(seen[0].body.as_ref().and_then(Body::as_text), Some(want), "{yaml}");
        assert_eq!(
            answer.interim,
            if yaml.contains("Expect") { vec![100] } else { vec![] },
            "{yaml}"
        );
    }
}

#[tokio::test]
async fn raw_connections_carry_several_requests() {
    let (upstreams, client) = bed("echo-0", "echo-tls-0").await;
    let yaml = r#"{url: 'http://a.test/', raw: "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.0\r\n\r\n"}"#;
    let (answer, seen) = send(&upstreams, &client, yaml).await;
    assert_eq!((answer.status, answer.more.as_slice(), seen.len()), (Some(200), &[200][..], 2));
    assert_eq!(seen[1].protocol, "HTTP/1.0");
    let nothing = r#"{url: 'http://a.test/', raw: "GET /", timeout: 100ms}"#;
    assert_eq!(
        send(&upstreams, &client, nothing).await.0.error.as_deref(),
        Some("connection-closed")
    );
}

#[tokio::test]
async fn web_sockets_are_echoed() {
    let (upstreams, client) = bed("echo-0", "echo-tls-0").await;
    for url in ["http://a.test/", "https://a.test/"] {
        let (answer, _) =
            send(&upstreams, &client, &format!("{{url: '{url}', websocket: hello}}")).await;
        assert_eq!(
            (answer.status, answer.websocket.as_deref()),
            (Some(101), Some("hello")),
            "{url}"
        );
    }
}

#[tokio::test]
async fn the_https_echo_reports_name_and_client_certificate() {
    let (upstreams, client) = bed("echo-0", "echo-tls-0").await;
    let yaml =
        "{url: 'https://a.test/', client-certificate: alice, tls-inspect: true, tls: {max: '1.2'}}";
    let (answer, seen) = send(&upstreams, &client, yaml).await;
    let text = |text: &str| Some(text.to_owned());
    let want = SeenTls { sni: text("a.test"), client: text("alice"), version: text("TLSv1.2") };
    assert_eq!(seen[0].tls, Some(want));
    let inspected = answer.tls.unwrap();
    assert_eq!(inspected["cn"], "echo-tls.demo.svc");
    assert_eq!(inspected["o"], "Fairway tests");
    assert_eq!(inspected["issuer"], "Fairway test CA");
    assert_eq!(inspected["sans"], json!(["echo-tls.demo.svc"]));
    assert_eq!(
        (&inspected["version"], &inspected["alpn"]),
        (&json!("TLSv1.2"), &json!("http/1.1"))
    );
    let (_, seen) = send(&upstreams, &client, "{url: 'https://a.test/', sni: ''}").await;
    assert_eq!(seen[0].tls.clone().map(|tls| (tls.sni, tls.client)), Some((None, None)));
}

#[tokio::test]
async fn failed_handshakes_have_the_names_of_openssl() {
    let (upstreams, client) = bed("echo-0", "echo-tls-0").await;
    for (yaml, want) in [
        (
            "{url: 'https://a.test/', tls: {min: '1.0', max: '1.1'}}",
            "tls-sslv3-alert-handshake-failure",
        ),
        (
            "{url: 'https://a.test/', tls: {max: '1.2', ciphers: AES128-SHA}}",
            "tls-sslv3-alert-handshake-failure",
        ),
        (
            "{url: 'https://a.test/', tls: {max: '1.2'}, client-certificate: mallory}",
            "tls-tlsv1-alert-unknown-ca",
        ),
        (
            "{url: 'https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test/'}",
            "not-sent",
        ),
    ] {
        let (answer, seen) = send(&upstreams, &client, yaml).await;
        assert_eq!((answer.error.as_deref(), seen.len()), (Some(want), 0), "{yaml}");
    }
}

#[tokio::test]
async fn who_speaks_no_tls_to_the_https_echo_gets_nothing() {
    let (upstreams, _) = bed("echo-0", "echo-tls-0").await;
    let port = upstreams.places.get("echo-tls-0").expect("the pod exists").ports[""];
    let mut socket = tokio::net::TcpStream::connect((LOCAL, port)).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // The unread request may turn the end into a reset; either way nothing comes.
    let _ended = socket.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn grpc_calls_come_back_with_trailers_in_clear_and_over_tls() {
    let (upstreams, client) = bed("grpc-0", "grpcs-0").await;
    for (url, pod) in [("http://a.test/", "grpc-0"), ("https://a.test/", "grpcs-0")] {
        let yaml = format!(
            "{{url: '{url}', grpc: {{method: /e.E/U, message: hello, metadata: [[X-Meta, v]]}}}}"
        );
        let (answer, seen) = send(&upstreams, &client, &yaml).await;
        assert_eq!((answer.status, text(&answer)), (Some(200), "hello"));
        assert_eq!(value(answer.headers.as_deref().unwrap(), "x-pod"), Some(pod));
        assert_eq!(value(&answer.trailers, "grpc-status"), Some("0"));
        let fields = seen[0].headers.as_deref().unwrap();
        assert_eq!((seen[0].uri.as_deref(), fields[0].0.as_str()), (Some("/e.E/U"), ":scheme"));
        assert_eq!(value(fields, "x-meta"), Some("v"));
    }
    let failing =
        "{url: 'http://a.test/', grpc: {method: /e.E/U, metadata: [[echo-grpc-status, '5']]}}";
    let (answer, _) = send(&upstreams, &client, failing).await;
    assert_eq!(value(answer.headers.as_deref().unwrap(), "grpc-message"), Some("asked for"));
}

#[tokio::test]
async fn long_bodies_go_over_http_2_within_the_credit_of_the_other_side() {
    let (upstreams, client) = bed("grpc-0", "grpcs-0").await;
    let yaml = "{url: 'https://a.test/x', protocol: h2, method: POST, body-size: 300000}";
    let (answer, seen) = send(&upstreams, &client, yaml).await;
    assert!(matches!(answer.body, Some(Body::Digest { size: 300_000, .. })), "{answer:?}");
    assert_eq!(seen[0].method.as_deref(), Some("POST"));
}

#[tokio::test]
async fn layer_4_ports_send_back_what_they_get() {
    let (upstreams, client) = bed("echo-0", "echo-tls-0").await;
    for protocol in ["tcp", "udp"] {
        let port = upstreams.places.get(&format!("{protocol}-0")).unwrap().ports[""];
        let yaml = format!("{{{protocol}: {{port: {port}, send: \"hello\\n\"}}}}");
        let (answer, seen) = send(&upstreams, &client, &yaml).await;
        assert_eq!((text(&answer), seen.len()), (format!("{protocol}-0:hello\n").as_str(), 1));
    }
    let free = testkit::ports::free();
    let (answer, _) =
        send(&upstreams, &client, &format!("{{tcp: {{port: {free}, send: x}}}}")).await;
    assert_eq!(answer.error.as_deref(), Some("connection-refused"));
}

#[tokio::test]
async fn authenticator_and_error_pages_answer_as_asked() {
    let (upstreams, client) = bed("auth-0", "echo-tls-0").await;
    let (answer, _) = send(
        &upstreams,
        &client,
        "{url: 'http://a.test/bearer', headers: [[Authorization, Bearer ok]]}",
    )
    .await;
    assert_eq!((answer.status, text(&answer)), (Some(200), "auth"));
    let (upstreams, client) = bed("errors-0", "echo-tls-0").await;
    let (answer, _) = send(
        &upstreams,
        &client,
        "{url: 'http://a.test/', headers: [[X-Code, '503'], [X-B, '1']]}",
    )
    .await;
    assert_eq!((answer.status, text(&answer)), (Some(503), r#"{"X-B": "1", "X-Code": "503"}"#));
}
