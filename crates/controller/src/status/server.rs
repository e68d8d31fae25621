//! An API server for tests, that answers as it is told.

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;

/// A client of an API server that answers a method, a path and a body so.
pub(crate) async fn api_server(
    answer: impl Fn(&Method, &str, &str) -> (u16, Value) + Send + Sync + 'static,
) -> kube::Client {
    let answer = Arc::new(answer);
    let serve = move |request: Request<Incoming>| {
        let answer = answer.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let body = String::from_utf8_lossy(&body);
            let (code, object) = answer(&head.method, head.uri.path(), &body);
            let mut response = Response::new(Full::new(Bytes::from(object.to_string())));
            *response.status_mut() = StatusCode::from_u16(code).expect("a status");
            Ok::<_, Infallible>(response)
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let uri = format!("http://{}", listener.local_addr().expect("it has an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = hyper::server::conn::http1::Builder::new();
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service_fn(serve.clone())));
        }
    });
    kube::Client::try_from(kube::Config::new(uri.parse().expect("a URL"))).expect("a client")
}

/// How it says no.
pub(crate) fn refusal(code: u16, message: &str) -> (u16, Value) {
    let reason = StatusCode::from_u16(code).expect("a status").canonical_reason();
    let reason = reason.unwrap_or_default().replace(' ', "");
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code,
    });
    (code, status)
}
