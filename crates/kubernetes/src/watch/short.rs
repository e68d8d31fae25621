//! Watches that are ended at once, without a word: an error, and not a reason to ask again at once.

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tower::service_fn;

/// A watch that is over within that long, and has told nothing, was cut by the server or by what is before it.
const SHORT: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
#[error(
    "watches end at once, and nothing is told in them; look whether a balancer or proxy before the API server cuts \
     long answers"
)]
struct EndedAtOnce;

/// The last watch that was answered.
struct Last {
    began: Instant,
    has_told: Arc<AtomicBool>,
}

impl Last {
    fn was_short(&self) -> bool {
        !self.has_told.load(Ordering::Relaxed) && self.began.elapsed() < SHORT
    }
}

/// A client for the watch of one kind. The crate asks for the next watch as soon as one is over, whatever the last one
/// was good for: after one that was ended at once, the next one is an error instead, on which a pause follows.
pub(crate) fn told_of_short_ones(client: &Client) -> Client {
    let inner = client.clone();
    let last = Arc::new(Mutex::new(None::<Last>));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, last) = (inner.clone(), Arc::clone(&last));
        async move {
            let is_watch = is_resumed(request.uri().query().unwrap_or_default());
            let before = if is_watch { last.lock().take() } else { None };
            if before.is_some_and(|before| before.was_short()) {
                return Err(kube::Error::Service(Box::new(EndedAtOnce)));
            }
            let answer = inner.send(request).await?;
            let has_told = Arc::new(AtomicBool::new(false));
            if is_watch && answer.status().is_success() {
                let has_told = Arc::clone(&has_told);
                *last.lock() = Some(Last { began: Instant::now(), has_told });
            }
            let (head, body) = answer.into_parts();
            let body = body.map_frame(move |frame| {
                has_told.store(true, Ordering::Relaxed);
                frame
            });
            Ok::<_, kube::Error>(Response::from_parts(head, body))
        }
    });
    Client::new(service, client.default_namespace())
}

/// Whether this asks for what has changed since a version. A list that is streamed has pauses of its own.
fn is_resumed(query: &str) -> bool {
    let has = |wanted: &str| query.split('&').any(|pair| pair == wanted);
    has("watch=true") && !has("sendInitialEvents=true")
}
