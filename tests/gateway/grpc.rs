//! GRPCRoutes over real sockets: calls by HTTP/2 in clear on both sides.

use crate::gateway::bed::Bed;
use std::cell::RefCell;
use testkit::exchange::{Answer, Seen};
use testkit::upstreams::Upstreams;

async fn start() -> (Bed, Upstreams) {
    let upstreams = Upstreams::local().await.expect("ports");
    let place = upstreams.places.get("grpc-0").expect("a fixture");
    let port = place.ports.values().next().expect("a port").to_string();
    let objects = include_str!("grpc.yaml").replace("PORT-grpc", &port);
    (Bed::start(&objects).await, upstreams)
}

/// The values of a field or trailer.
fn all(answer: &Answer, name: &str) -> Vec<String> {
    let fields = answer.headers.iter().flatten().chain(&answer.trailers);
    fields.filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
}

fn one(answer: &Answer, name: &str) -> String {
    all(answer, name).join("|")
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_by_service_and_method_in_the_order_of_the_specification() {
    let (bed, _upstreams) = start().await;
    for (method, metadata, rule) in [
        ("/shop.Cart/Add", &[][..], "exact"),
        ("/shop.Cart/Take", &[], "service"),
        ("/shop.Cart/Take", &[("version", "two")], "header"),
        ("/shop.Cart/Add", &[("version", "two")], "exact"),
        ("/other.Cart/Add", &[], "method"),
        ("/shop.CART/Take", &[], "expression"),
        // A call that no GRPCRoute has is a request like others.
        ("/shop.Other/Say", &[], "page"),
    ] {
        let answer = bed.call("a.test", method, metadata).await;
        assert_eq!(
            (answer.status, one(&answer, "grpc-status").as_str()),
            (Some(200), "0"),
            "{method}: {answer:?}"
        );
        assert_eq!(one(&answer, "x-rule"), rule, "{method} {metadata:?}");
        assert_eq!(one(&answer, "x-trailer"), "kept", "{method}");
    }
    // Who asks for the same path and calls nothing is not of a GRPCRoute.
    let page = bed.send("POST", "a.test", "/shop.Cart/Add", &[("Content-Length", "0")]).await;
    assert_eq!((page.status, page.pod.as_str()), (200, "a"));
    let nothing = bed.send("POST", "a.test", "/other.Cart/Add", &[("Content-Length", "0")]).await;
    assert_eq!(nothing.status, 404);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expression_goes_before_a_service_only_where_it_has_more_characters() {
    let (bed, _upstreams) = start().await;
    for (method, rule) in [
        // Nine characters each: the older route has it.
        ("/shop.Cart/Take", "service"),
        ("/shop.Bar/GetAAAAAAAAA", "nine"),
        ("/shop.Bar/Get", "nine"),
        ("/shop.Pie/Take", "twelve"),
        ("/other.Cart/Say", "two"),
        // One without a service has no characters of it, however long its method is.
        ("/other.Cart/Call", "two"),
    ] {
        let answer = bed.call("c.test", method, &[]).await;
        let found = (answer.status, one(&answer, "grpc-status"), one(&answer, "x-rule"));
        assert_eq!(found, (Some(200), "0".to_owned(), rule.to_owned()), "{method}: {answer:?}");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_nobody_has_are_told_so_as_grpc_tells_it() {
    let (bed, _upstreams) = start().await;
    for (host, method, status) in [
        ("a.test", "/shop.Cart2/Add2", "12"),
        ("a.test", "/", "12"),
        ("b.test", "/shop.Nobody/Say", "12"),
        ("nobody.test", "/shop.Cart/Add", "12"),
        ("a.test", "/shop.Broken/Say", "14"),
        ("a.test", "/shop.Away/Say", "14"),
    ] {
        let answer = bed.call(host, method, &[]).await;
        let found = (answer.status, one(&answer, "grpc-status"));
        assert_eq!(found, (Some(200), status.to_owned()), "{host} {method}: {answer:?}");
        assert_eq!(one(&answer, "content-type"), "application/grpc");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_see_the_edits_and_what_they_answer_comes_back_whole() {
    let (bed, upstreams) = start().await;
    drop(upstreams.journal.drain());
    let sent =
        [("x-set", "client"), ("x-add", "one"), ("x-gone", "client"), ("echo-grpc-status", "5")];
    let answer = bed.call("a.test", "/shop.Cart/Add", &sent).await;
    assert_eq!((answer.status, one(&answer, "grpc-status").as_str()), (Some(200), "5"));
    let seen = upstreams.journal.drain();
    let [seen] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((seen.protocol.as_str(), seen.uri.as_deref()), ("HTTP/2", Some("/shop.Cart/Add")));
    let fields = Answer { headers: seen.headers.clone(), ..Answer::default() };
    assert_eq!(all(&fields, "x-set"), ["mine"]);
    assert_eq!(all(&fields, "x-add"), ["one", "two"]);
    assert_eq!(all(&fields, "x-gone"), [""; 0]);
    bed.stop().await;
}

/// What an upstream was sent of a path once there is as much of it as there should be.
async fn seen_of(bed: &Bed, upstreams: &Upstreams, path: &str, wanted: usize) -> Vec<Seen> {
    let all = RefCell::new(Vec::new());
    bed.until(async || {
        all.borrow_mut().extend(upstreams.journal.drain());
        let is_of = |seen: &&Seen| seen.uri.as_deref() == Some(path);
        all.borrow().iter().filter(is_of).count() >= wanted
    })
    .await;
    let mut all = all.into_inner();
    all.retain(|seen| seen.uri.as_deref() == Some(path));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_calls_and_of_requests_reach_backends_that_speak_http2() {
    let (bed, upstreams) = start().await;
    // Short enough to come with its head, and long enough to come behind it.
    for (method, size) in [("/shop.Copied/Short", 5), ("/shop.Copied/Long", 50_000)] {
        let sent = [("x-set", "client")];
        let answer = bed.call_with("a.test", method, &sent, Some("m".repeat(size))).await;
        let found = (answer.status, one(&answer, "grpc-status"));
        assert_eq!(found, (Some(200), "0".to_owned()), "{answer:?}");
        let seen = seen_of(&bed, &upstreams, method, 2).await;
        let [first, second] = &seen[..] else { panic!("a call and its copy: {seen:?}") };
        assert_eq!(first.body, second.body, "a copy has the whole message");
        for seen in [first, second] {
            let fields = Answer { headers: seen.headers.clone(), ..Answer::default() };
            assert_eq!(all(&fields, "x-set"), ["mine"], "edits count for copies, too");
            assert_eq!(all(&fields, "te"), ["trailers"]);
        }
    }
    // Too long to be kept for a copy: it goes on.
    let long = Some("m".repeat(200_000));
    let answer = bed.call_with("a.test", "/shop.Copied/Over", &[], long).await;
    assert_eq!(one(&answer, "grpc-status"), "0");
    // A mirror without endpoints keeps nobody waiting.
    let answer = bed.call("a.test", "/shop.Aside/Say", &[]).await;
    assert_eq!(one(&answer, "grpc-status"), "0");
    // A request of HTTP/1.1 is copied to who speaks HTTP/2.
    let length = [("Content-Length", "4")];
    let answer = bed.send_with("POST", "a.test", "/copied?x=y", &length, "body").await;
    assert_eq!((answer.status, answer.pod.as_str()), (200, "a"));
    let seen = seen_of(&bed, &upstreams, "/copied?x=y", 1).await;
    assert_eq!((seen.len(), seen[0].protocol.as_str()), (1, "HTTP/2"));
    bed.stop().await;
}
