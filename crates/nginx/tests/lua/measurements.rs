//! Batches of measurements arrive on a socket of ours.

use crate::bed::Nginx;
use serde_json::Value;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixListener;
use tokio::time::timeout;

#[tokio::test]
async fn each_request_is_measured_once_and_a_batch_is_bounded() {
    let nginx = Nginx::start().await;
    let socket = nginx.folder().join("metrics.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    nginx.push(r#"[{"name":"demo-cart-80","endpoints":[{"address":"127.0.0.2","port":"PORT"}]}]"#);
    let general = format!(r#"{{"metrics":{{"socket":"{}","batch":3}}}}"#, socket.display());
    assert_eq!(nginx.control("POST", "/configuration/general", &general).status, 201);
    let (workers, sent) = (nginx.workers().len(), 40);
    for _ in 0..sent {
        assert_eq!(nginx.get("/x", "").status, 200);
    }
    let (mut stream, _) = timeout(Duration::from_secs(5), listener.accept())
        .await
        .expect("in time")
        .expect("a batch");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("a batch");
    let batch: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(!batch.is_empty() && batch.len() <= 3, "{} of {sent} by {workers}", batch.len());
    let one = &batch[0];
    for (key, wanted) in [
        ("host", "shop.example"),
        ("namespace", "demo"),
        ("ingress", "shop"),
        ("service", "cart"),
        ("canary", "-"),
        ("path", "/"),
        ("method", "GET"),
        ("status", "200"),
    ] {
        assert_eq!(one[key], wanted, "{key}");
    }
    for key in ["requestLength", "responseLength", "upstreamResponseLength"] {
        assert!(one[key].as_f64().expect("a number") > 0.0, "{key}: {one}");
    }
    for key in ["requestTime", "upstreamLatency", "upstreamHeaderTime", "upstreamResponseTime"] {
        assert!(one[key].as_f64().expect("a number") >= 0.0, "{key}: {one}");
    }
    assert!(nginx.log().contains("requests were not measured"), "{}", nginx.log());
}
