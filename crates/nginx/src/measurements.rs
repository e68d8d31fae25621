//! What each request took, as nginx's workers send it: once a second, a batch on a socket of ours.

use crate::socket::listen;
use serde::Deserialize;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use system::sockets;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Bytes of a batch at most: some 400 for each of `--monitor-max-batch-size` requests.
const LONGEST: u64 = 64 << 20;
/// How long one batch may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Batches that are read at once; workers wait in the queue of the socket meanwhile.
const AT_ONCE: usize = 16;
/// What stands for a text that is not there.
const NOTHING: &str = "-";

/// What one request took. What is not known is absent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Sent")]
pub struct Measurement {
    /// The host asked for.
    pub host: String,
    /// Namespace of the Ingress.
    pub namespace: String,
    /// Name of the Ingress.
    pub ingress: String,
    /// Name of the Service.
    pub service: String,
    /// The upstream of the canary, if that was chosen.
    pub canary: String,
    /// The path of the location, as the Ingress has it.
    pub path: String,
    /// The method.
    pub method: String,
    /// The status.
    pub status: u16,
    /// Bytes of the request.
    pub request_length: Option<u64>,
    /// Seconds from the first byte of the request to the last one of the answer.
    pub request_time: Option<f64>,
    /// Bytes of the answer.
    pub response_length: Option<u64>,
    /// Seconds to connect to the upstream.
    pub upstream_latency: Option<f64>,
    /// Seconds to the upstream's head.
    pub upstream_header_time: Option<f64>,
    /// Seconds to the end of the upstream's answer.
    pub upstream_response_time: Option<f64>,
    /// Bytes of the upstream's answer.
    pub upstream_response_length: Option<u64>,
}

/// The same as the Lua writes it: numbers that are not known are negative, texts are `-`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    host: String,
    namespace: String,
    ingress: String,
    service: String,
    canary: String,
    path: String,
    method: String,
    status: String,
    request_length: f64,
    request_time: f64,
    response_length: f64,
    upstream_latency: f64,
    upstream_header_time: f64,
    upstream_response_time: f64,
    upstream_response_length: f64,
}

impl From<Sent> for Measurement {
    fn from(sent: Sent) -> Self {
        let text = |text: String| if text == NOTHING { String::new() } else { text };
        let number = |number: f64| (number >= 0.0).then_some(number);
        let bytes = |count: f64| number(count).map(|count| count as u64);
        Self {
            host: text(sent.host),
            namespace: text(sent.namespace),
            ingress: text(sent.ingress),
            service: text(sent.service),
            canary: text(sent.canary),
            path: text(sent.path),
            method: text(sent.method),
            status: sent.status.parse().unwrap_or(0),
            request_length: bytes(sent.request_length),
            request_time: number(sent.request_time),
            response_length: bytes(sent.response_length),
            upstream_latency: number(sent.upstream_latency),
            upstream_header_time: number(sent.upstream_header_time),
            upstream_response_time: number(sent.upstream_response_time),
            upstream_response_length: bytes(sent.upstream_response_length),
        }
    }
}

/// Hands every batch that comes in on `socket` to `take`, for good. Call it before nginx learns of the socket.
pub fn receive<T: Fn(Vec<Measurement>) + Send + Sync + 'static>(
    socket: &Path,
    take: T,
) -> io::Result<impl Future<Output = ()> + Send + use<T>> {
    Ok(accept(listen(socket)?, Arc::new(take)))
}

async fn accept(
    listener: UnixListener,
    take: Arc<impl Fn(Vec<Measurement>) + Send + Sync + 'static>,
) {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    while let Ok(slot) = slots.clone().acquire_owned().await {
        let stream = sockets::accept(&listener, |_| ()).await;
        let take = take.clone();
        tokio::spawn(async move {
            match timeout(PATIENCE, read(stream)).await {
                Ok(Ok(batch)) => take(batch),
                Ok(Err(error)) => tracing::warn!(%error, "a batch of measurements is lost"),
                Err(_) => tracing::warn!("a batch of measurements is lost: it came too slowly"),
            }
            drop(slot);
        });
    }
}

async fn read(stream: UnixStream) -> io::Result<Vec<Measurement>> {
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text).await?;
    // nginx takes any byte in a host, and so does its JSON: one client's request is not to lose those of all others.
    Ok(serde_json::from_str(&String::from_utf8_lossy(&text))?)
}
