//! Batches of measurements arrive on a socket of ours.

use crate::lua::bed::Nginx;
use nginx::measurements::{Measurement, receive};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

/// Lets the workers send batches of at most `batch`, and hands them over.
fn measure(nginx: &Nginx, batch: usize) -> Receiver<Vec<Measurement>> {
    let socket = nginx.folder().join("metrics.sock");
    let (sender, batches) = channel(64);
    let receiving = receive(&socket, move |batch| drop(sender.try_send(batch))).expect("a socket");
    tokio::spawn(receiving);
    nginx.push(r#"[{"name":"demo-cart-80","endpoints":[{"address":"127.0.0.2","port":"PORT"}]}]"#);
    let general = format!(r#"{{"metrics":{{"socket":"{}","batch":{batch}}}}}"#, socket.display());
    assert_eq!(nginx.control("POST", "/configuration/general", &general).status, 201);
    batches
}

async fn next(batches: &mut Receiver<Vec<Measurement>>) -> Vec<Measurement> {
    timeout(Duration::from_secs(60), batches.recv()).await.expect("in time").expect("a batch")
}

#[tokio::test]
async fn each_request_is_measured_once() {
    let nginx = Nginx::start().await;
    let mut batches = measure(&nginx, 1000);
    for _ in 0..40 {
        assert_eq!(nginx.get("/x", "").status, 200);
    }
    nginx.push("[]");
    assert_eq!(nginx.get("/y", "").status, 503);
    let mut all = Vec::new();
    while all.len() < 41 {
        all.extend(next(&mut batches).await);
    }
    assert_eq!(all.len(), 41);
    let (fine, nobody): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.status == 200);
    let one = &fine[0];
    let labels = [
        &one.host,
        &one.namespace,
        &one.ingress,
        &one.service,
        &one.canary,
        &one.path,
        &one.method,
    ];
    assert_eq!(labels, ["shop.example", "demo", "shop", "cart", "", "/", "GET"]);
    for bytes in [one.request_length, one.response_length, one.upstream_response_length] {
        assert!(bytes.is_some_and(|bytes| bytes > 0), "{one:?}");
    }
    let times = [
        one.request_time,
        one.upstream_latency,
        one.upstream_header_time,
        one.upstream_response_time,
    ];
    assert!(times.iter().all(Option::is_some), "{one:?}");
    let [nobody] = &nobody[..] else { panic!("one request found nobody: {nobody:?}") };
    assert_eq!((nobody.status, nobody.upstream_latency), (503, None));
}

#[tokio::test]
async fn a_batch_is_bounded_and_the_log_says_what_was_left_out() {
    let nginx = Nginx::start().await;
    let mut batches = measure(&nginx, 3);
    for _ in 0..40 {
        assert_eq!(nginx.get("/x", "").status, 200);
    }
    let batch = next(&mut batches).await;
    assert!(!batch.is_empty() && batch.len() <= 3, "{}", batch.len());
    assert!(nginx.log().contains("requests were not measured"), "{}", nginx.log());
}

#[tokio::test]
async fn a_worker_that_ends_sends_what_it_has() {
    let nginx = Nginx::start().await;
    let mut batches = measure(&nginx, 1000);
    // Whatever is measured right before the reload would otherwise wait for a timer that never fires.
    assert_eq!(nginx.get("/x", "").status, 200);
    nginx.reload().await;
    assert_eq!(next(&mut batches).await.len(), 1);
}

#[tokio::test]
async fn a_host_that_is_no_text_loses_no_measurement() {
    let nginx = Nginx::start().await;
    let mut batches = measure(&nginx, 1000);
    for host in [&b"\xff"[..], b"a.test", b"\xe2\x28\xa1"] {
        let mut stream = TcpStream::connect(("127.0.0.1", nginx.http)).expect("nginx listens");
        let head = [b"GET /x HTTP/1.1\r\nConnection: close\r\nHost: ", host, b"\r\n\r\n"].concat();
        stream.write_all(&head).expect("nginx reads");
        stream.read_to_end(&mut Vec::new()).expect("nginx answers");
    }
    let mut all = Vec::new();
    while all.len() < 3 {
        all.extend(next(&mut batches).await);
    }
    assert!(all.iter().any(|one| one.host == "a.test"), "{all:?}");
}
