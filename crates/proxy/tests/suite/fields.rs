//! Fields mean the same in whichever version they came.

use crate::bed::{MAIN, answering, configuration, named, put_route, put_upstream, start, talk};
use crate::http2::{client, in_time, send, status};
use crate::serve::NOTHING;
use http::{Method, StatusCode};
use model::policy::{Body, Policy};
use model::{RouteKey, ServerName, UpstreamId, ValueMatch};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_value_of_http2_with_blanks_around_it_meets_the_rule_that_it_meets_for_its_backend() {
    let (address, _seen) = answering(NOTHING).await;
    let mut all = configuration(&[(MAIN, vec![address])], Policy::default());
    let guarded = put_upstream(&mut all, "guarded", vec![named("no", 403, Duration::ZERO).await]);
    all.servers.clear();
    put_route(&mut all, "a.test", UpstreamId::new(MAIN), Arc::default());
    put_route(&mut all, "guarded.test", guarded, Arc::default());
    let key = |name| RouteKey { listener: None, host: ServerName::new(name) };
    let mut host = (*all.routes[&key("a.test")]).clone();
    let other = all.routes.remove(&key("guarded.test")).expect("it was put there");
    let mut rule = host.rules[0].clone();
    let mut matches = (*rule.matches).clone();
    matches.headers = vec![("x-admin".to_owned(), ValueMatch::Exact("1".to_owned().into()))];
    rule.matches = Arc::new(matches);
    rule.shares[0].location = host.locations.len();
    host.locations.extend(other.locations.clone());
    host.rules.insert(0, rule);
    all.routes.insert(key("a.test"), Arc::new(host));
    let native = start(&all).await;
    let mut client = client(&native).await;
    for value in ["1", " 1", "1 ", "\t1\t"] {
        let (answer, _) = send(&mut client, Method::GET, &[("x-admin", value)], true);
        assert_eq!(status(answer).await, StatusCode::FORBIDDEN, "{value:?}");
    }
    let (answer, _) = send(&mut client, Method::GET, &[("x-admin", " 2")], true);
    assert_eq!(status(answer).await, StatusCode::OK);
}

#[tokio::test]
async fn blanks_around_a_value_of_http2_go_no_further() {
    let (address, mut seen) = answering(NOTHING).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let mut client = client(&native).await;
    let (answer, _) = send(&mut client, Method::GET, &[("x-a", "\t a b\t")], true);
    assert_eq!(status(answer).await, StatusCode::OK);
    let head = in_time(seen.recv()).await.expect("a request");
    assert!(head.contains("\r\nx-a: a b\r\n"), "{head:?}");
}

#[tokio::test]
async fn a_length_that_is_none_in_64_bits_with_a_sign_reaches_no_upstream() {
    let (address, mut seen) = answering(NOTHING).await;
    let body = Body { max_size: None, request_buffering: false, ..Body::default() };
    let policy = Policy { body, ..Policy::default() };
    let native = start(&configuration(&[(MAIN, vec![address])], policy)).await;
    for (length, is_told) in [("9223372036854775807", true), ("9223372036854775808", false)] {
        let mut client = client(&native).await;
        let (answer, body) = send(&mut client, Method::POST, &[("content-length", length)], false);
        assert_eq!(status(answer).await, StatusCode::OK);
        let head = in_time(seen.recv()).await.expect("a request");
        let told = format!("\r\nContent-Length: {length}\r\n").to_lowercase();
        assert_eq!(head.to_lowercase().contains(&told), is_told, "{head}");
        assert!(is_told || head.contains("chunked"), "{head}");
        drop(body);
        let head = format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n");
        if !is_told {
            assert!(talk(&native, head.as_bytes()).await.starts_with("HTTP/1.1 400 "));
        }
    }
}

#[tokio::test]
async fn a_field_that_may_be_there_once_is_no_request_where_it_is_there_twice() {
    let (address, _seen) = answering(NOTHING).await;
    let native = start(&configuration(&[(MAIN, vec![address])], Policy::default())).await;
    let names = [
        ("authorization", "Basic YTpi"),
        ("content-range", "bytes 0-1/2"),
        ("expect", "100-continue"),
        ("if-match", "*"),
        ("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("if-none-match", "*"),
        ("if-range", "\"a\""),
        ("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("accept-encoding", "gzip"),
    ];
    for (name, value) in names {
        let (two, wanted) = match name {
            "accept-encoding" => ("HTTP/1.1 200", StatusCode::OK),
            _ => ("HTTP/1.1 400", StatusCode::BAD_REQUEST),
        };
        let lines = format!("{name}: {value}\r\n").repeat(2);
        let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\n{lines}Connection: close\r\n\r\n");
        let answer = talk(&native, request.as_bytes()).await;
        assert!(answer.starts_with(two), "{name}: {answer}");
        let mut client = client(&native).await;
        let (answer, _) = send(&mut client, Method::GET, &[(name, value), (name, value)], true);
        assert_eq!(status(answer).await, wanted, "{name}");
    }
}
