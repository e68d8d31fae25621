//! The CORS and RequestMirror filters over real sockets.

use crate::gateway::bed::{Answer, Bed, header};
use std::cell::Cell;

fn value(answer: &Answer, name: &str) -> String {
    header(&answer.head, name).join("|")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_tells_allowed_origins_what_its_filter_says_and_others_nothing() {
    let bed = Bed::start(include_str!("origins-and-copies.yaml")).await;
    let preflight = async |path: &str, origin: &str| {
        let asks = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "PUT"),
            ("Access-Control-Request-Headers", "x-one, x-two"),
        ];
        bed.send("OPTIONS", "a.test", path, &asks).await
    };
    let said = |answer: &Answer| {
        let of = |name: &str| value(answer, &format!("access-control-{name}"));
        let all = ["allow-origin", "allow-methods", "allow-headers", "allow-credentials"];
        (answer.status, answer.pod.clone(), all.map(of))
    };
    let told = |origin: &str, methods: &str, headers: &str, credentials: &str| {
        (204, String::new(), [origin, methods, headers, credentials].map(str::to_owned))
    };
    let (one, deep) = ("https://a.example", "https://x.y.b.example");
    for origin in [one, deep] {
        let answer = preflight("/listed", origin).await;
        assert_eq!(said(&answer), told(origin, "GET, PUT", "x-one", "true"));
        assert_eq!(value(&answer, "access-control-max-age"), "60");
        assert_eq!(value(&answer, "vary"), "Origin");
    }
    for foreign in ["https://evil.example", "http://a.example", "https://a.example:8443", "null"] {
        assert_eq!(said(&preflight("/listed", foreign).await), told("", "", "", ""), "{foreign}");
    }
    // Without credentials a star says all; with them it would say nothing, so that names stand in its place.
    assert_eq!(said(&preflight("/all", one).await), told("*", "*", "*", ""));
    let named = told(one, "PUT", "x-one, x-two", "true");
    assert_eq!(said(&preflight("/trusting", one).await), named);
    // What the upstream says of the same is nothing that the filter allows.
    let forged = [("X-Say", "Access-Control-Allow-Origin: https://evil.example")];
    for (origin, expected) in [(one, one), ("https://evil.example", "")] {
        let asks = [forged[0], ("Origin", origin)];
        let answer = bed.send("GET", "a.test", "/listed", &asks).await;
        assert_eq!((answer.status, answer.pod.as_str()), (200, "a"));
        assert_eq!(value(&answer, "access-control-allow-origin"), expected);
        assert_eq!(value(&answer, "access-control-allow-methods"), "");
    }
    // A preflight is led to no backend, and so fails for none; who may not read the answer learns nothing of the 500.
    assert_eq!(said(&preflight("/gone", one).await), told(one, "PUT", "", ""));
    for (origin, expected) in [(one, one), ("https://evil.example", "")] {
        let answer = bed.send("GET", "a.test", "/gone", &[("Origin", origin)]).await;
        assert_eq!(answer.status, 500);
        assert_eq!(value(&answer, "access-control-allow-origin"), expected);
    }
    // Who asks for nothing of the kind is no browser that asks before it sends.
    let plain = bed.send("OPTIONS", "a.test", "/listed", &[("Origin", one)]).await;
    assert_eq!((plain.status, plain.pod.as_str()), (200, "a"));
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mirrors_get_what_the_backend_gets_and_as_often_as_their_share_says() {
    let bed = Bed::start(include_str!("origins-and-copies.yaml")).await;
    // What an upstream was sent under an id: how often, and the last of it.
    let sent_to = async |path: &str, id: &str| {
        let answer = bed.send("GET", "a.test", path, &[("X-Of", id)]).await;
        (value(&answer, "x-times"), answer.seen)
    };
    let length = |body: &str| body.len().to_string();
    let body = "a body".repeat(20_000);
    let asks = [("X-Id", "one"), ("X-Gone", "client"), ("Content-Length", &length(&body))];
    let answer = bed.send_with("POST", "a.test", "/copied?x=y", &asks, &body).await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "a"));
    for path in ["/b", "/c"] {
        bed.until(async || sent_to(path, "one").await.0 == "1").await;
        let (_, seen) = sent_to(path, "one").await;
        assert!(seen.starts_with("POST /copied?x=y HTTP/1.1\r\n"), "{seen}");
        assert_eq!(header(&seen, "host"), ["a.test"]);
        assert_eq!(header(&seen, "x-set"), ["edited"], "edits count for copies, too");
        assert_eq!(header(&seen, "x-gone"), [""; 0]);
        assert!(seen.ends_with(&body), "{}", seen.len());
    }
    // A mirror that never answers, and one that is nowhere, keep nobody waiting.
    let asks = [("X-Id", "two"), ("X-Silent-At", "b")];
    let answer = bed.send("GET", "a.test", "/silent", &asks).await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "c"));
    assert_eq!(bed.get("a.test", "/nowhere").await.pod, "a");
    // A quarter of 400 requests: off by 50 once in some hundred million runs.
    for _ in 0..400 {
        let answer = bed.send("GET", "a.test", "/quarter", &[("X-Id", "three")]).await;
        assert_eq!(answer.pod, "a");
    }
    let count = async || sent_to("/b", "three").await.0.parse::<i32>().unwrap_or(0);
    bed.until(async || (count().await - 100).abs() <= 50).await;
    let before = Cell::new(-1);
    bed.until(async || {
        let now = count().await;
        before.replace(now) == now
    })
    .await;
    assert!((before.get() - 100).abs() <= 50, "{before:?}");
    bed.stop().await;
}
