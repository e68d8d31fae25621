//! `fairway run --shadow`: copies of requests are thought through and counted, and whoever is behind hears of none.

use crate::console::bed::{BINARY, CLASS, Fairway, ask, ingress, until};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::client::Client;
use testkit::exchange::Request;
use testkit::ports;

/// Neighbours are on this machine here.
const LOOPBACK: &str = "--allow-target-networks=127.0.0.0/8";

/// Somebody who must hear nothing: connections that came.
fn witness() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    (port, heard)
}

/// A shop with every kind of decision, all of whose neighbours are the witness; and a TCP service at `tcp`.
fn shop(port: u16, tcp: u16) -> String {
    let behind = format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: shop}}\nspec: {{ports: [{{name: http, port: 80}}]}}\n\
         ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: web-1, namespace: shop, labels: {{kubernetes.io/service-name: web}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: {port}}}]\nendpoints: [{{addresses: [127.0.0.1]}}]\n\
         ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: tcp, namespace: shop}}\ndata: {{\"{tcp}\": \"shop/web:80\"}}\n"
    );
    let one = |name: &str, annotations: Value| {
        let prefixed = annotations
            .as_object()
            .expect("a map")
            .iter()
            .map(|(key, value)| (format!("nginx.ingress.kubernetes.io/{key}"), value.clone()));
        let prefixed = Value::Object(prefixed.collect());
        ingress("shop", name, &prefixed, &[format!("{name}.test")])
    };
    let there = format!("http://127.0.0.1:{port}/");
    let all = [
        one("plain", json!({})),
        one("asks", json!({"auth-url": there, "mirror-target": there})),
        one("moved", json!({"permanent-redirect": "https://elsewhere.test/"})),
        one("secure", json!({"force-ssl-redirect": "true"})),
        one("few", json!({"allowlist-source-range": "203.0.113.0/24"})),
        one("small", json!({"proxy-body-size": "1k"})),
        one("passed", json!({"ssl-passthrough": "true"})),
        one(
            "pages",
            json!({"custom-http-errors": "403,404,503", "denylist-source-range": "0.0.0.0/0"}),
        ),
    ];
    format!("{CLASS}{behind}{}", all.concat())
}

fn copy(fairway: &Fairway, path: &str, fields: &str) -> u16 {
    ask(fairway.http, path, fields).expect("an answer").0
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_are_thought_through_and_nobody_else_hears_of_them() {
    let ((port, heard), tcp) = (witness(), ports::free());
    let objects = shop(port, tcp);
    let flags = [
        "--shadow",
        "--enable-ssl-passthrough",
        LOOPBACK,
        "--tcp-services-configmap=shop/tcp",
        "-v=0",
    ];
    let fairway = Fairway::start(&objects, &flags);
    for (path, fields, status) in [
        ("/a?token=secret", "Host: plain.test\r\n", 204),
        ("/a", "Host: plain.test-shadow\r\n", 204),
        ("/a", "Host: asks.test\r\nContent-Length: 2\r\n\r\nab", 204),
        ("/a", "Host: moved.test\r\n", 301),
        ("/a", "Host: secure.test\r\n", 308),
        ("/a", "Host: secure.test\r\nX-Forwarded-Proto: https\r\n", 204),
        ("/a", "Host: few.test\r\n", 403),
        ("/a", "Host: few.test\r\nX-Forwarded-For: 10.0.0.1, 203.0.113.9\r\n", 204),
        ("/a", "Host: small.test\r\nContent-Length: 5000\r\n", 413),
        ("/a", "Host: pages.test\r\n", 403),
        ("/a", "Host: nobody.test\r\n", 404),
    ] {
        assert_eq!(copy(&fairway, path, fields), status, "{fields}");
    }
    let client =
        Client::new(IpAddr::V4(Ipv4Addr::LOCALHOST), fairway.http.port(), fairway.https.port());
    for protocol in ["http/1.1", "h2"] {
        let request = Request {
            url: "https://secure.test/b".to_owned(),
            protocol: Some(protocol.to_owned()),
            ..Request::default()
        };
        assert_eq!(client.send(&request).await.status, Some(204), "{protocol}");
    }
    let passed = Request { url: "https://passed.test/".to_owned(), ..Request::default() };
    assert_eq!(client.send(&passed).await.status, None, "it ends");
    until("the last copy is counted", || fairway.api("/api/v1/shadow")["copies"]["upstream"] == 8);
    let all = fairway.api("/api/v1/shadow");
    assert_eq!(all["copies"], json!({"answer": 0, "redirect": 2, "refusal": 4, "upstream": 8}));
    let group = |host: &str, decision: &str| -> Value {
        let groups = all["groups"].as_array().expect("a list");
        let found = groups.iter().find(|one| one["host"] == host && one["decision"] == decision);
        found.unwrap_or_else(|| panic!("{host} {decision}: {all:#}")).clone()
    };
    let plain = group("plain.test", "upstream");
    assert_eq!((&plain["count"], &plain["upstream"]), (&json!(2), &json!("shop-web-http")));
    assert_eq!(
        (&plain["ingress"], &plain["example"]),
        (&json!("shop/plain"), &json!("GET plain.test/a"))
    );
    assert_eq!(group("few.test", "refusal")["by"], "access");
    assert_eq!(group("secure.test", "redirect")["by"], "redirect to HTTPS");
    assert_eq!((group("_", "refusal")["status"].as_u64(), &all["beyond"]), (Some(404), &json!(0)));
    assert!(!all.to_string().contains("secret"), "{all:#}");
    told_everywhere(&fairway);
    // The port of the TCP service is not open, and nobody heard anything.
    assert!(std::net::TcpStream::connect(("127.0.0.1", tcp)).is_err());
    assert_eq!(heard.load(Ordering::SeqCst), 0);
}

/// On the page of metrics, in the overview, and in the log.
fn told_everywhere(fairway: &Fairway) {
    let (_, page) = fairway.get("/metrics").expect("a page");
    assert!(page.contains("fairway_shadow_copies_total{decision=\"upstream\"} 8"), "{page}");
    assert_eq!(fairway.api("/api/v1/overview")["copies"], 14);
    let log = fairway.log();
    assert!(log.contains("--shadow: nothing is served"), "{log}");
    assert_eq!(log.matches("GET plain.test/a").count(), 1, "once for each kind: {log}");
    assert!(!log.contains("secret"), "{log}");
    let _ = Command::new("kill").arg(fairway.id().to_string()).status();
    until("it says at the end what came", || {
        fairway
            .log()
            .contains("copies since the start: 14 (upstream 8, redirect 2, refusal 4, answer 0)")
    });
}

#[test]
fn who_serves_says_so_and_nginx_cannot_only_think() {
    let fairway = Fairway::start(CLASS, &[]);
    let (status, text) = fairway.get("/api/v1/shadow").expect("an answer");
    assert!(status == 404 && text.contains("started with --shadow"), "{text}");
    let output = Command::new(BINARY)
        .args([
            "run",
            "--shadow",
            "--engine=nginx",
            "--manifests",
            "/nonexistent",
            "--healthz-port=0",
        ])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("leave out --engine=nginx"), "{said}");
}

/// An application that answers.
fn application() -> u16 {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
    port
}

#[test]
fn what_nginx_mirrors_by_the_annotation_is_decided_as_the_original() {
    let (port, heard) = witness();
    let shadow = Fairway::start(&shop(port, ports::free()), &["--shadow"]);
    // What serves has the same host, with the copies of docs/prove.md.
    let annotations = json!({
        "nginx.ingress.kubernetes.io/mirror-target": format!("http://{}$request_uri", shadow.http),
        "nginx.ingress.kubernetes.io/mirror-host": "$host",
    });
    let objects = shop(application(), ports::free());
    let serves = objects.split("---\n").filter(|object| !object.contains("\"Ingress\""));
    let serves = serves.collect::<Vec<_>>().join("---\n");
    let front = ingress("shop", "plain", &annotations, &["plain.test".to_owned()]);
    let folder = tempfile::tempdir().expect("a folder");
    let directory = format!("--nginx-directory={}", folder.path().join("nginx").display());
    let flags = ["--engine=nginx", "--sync-rate-limit=0", LOOPBACK, &directory];
    let nginx = Fairway::start(&format!("{serves}{front}"), &flags);
    let asked = || copy(&nginx, "/cart?id=7", "Host: plain.test\r\n");
    until("nginx serves", || asked() == 200);
    until("a copy came", || shadow.api("/api/v1/shadow")["copies"]["upstream"].as_u64() > Some(0));
    let all = shadow.api("/api/v1/shadow");
    assert_eq!(all["groups"][0]["example"], "GET plain.test/cart", "{all:#}");
    assert_eq!(all["groups"][0]["upstream"], "shop-web-http", "{all:#}");
    assert_eq!(heard.load(Ordering::SeqCst), 0);
}
