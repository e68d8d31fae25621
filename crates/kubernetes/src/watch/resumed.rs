//! What is known of the watches before one that is asked for: one that was ended at once, without a word, is an error,
//! and not a reason to ask again at once; and what happened long ago is listed.

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
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

/// The last watch that was answered, if nothing was listed since.
#[derive(Debug, Default)]
struct Watched(Option<Last>);

#[derive(Debug)]
struct Last {
    began: Instant,
    has_told: Arc<AtomicBool>,
}

impl Watched {
    /// Whether a watch may go on from there; otherwise what is said instead of asking.
    fn resume(&mut self, longest: Duration) -> Result<(), kube::Error> {
        let Some(Last { began, has_told }) = &self.0 else { return Ok(()) };
        let age = began.elapsed();
        let error = if age < SHORT && !has_told.load(Ordering::Relaxed) {
            kube::Error::Service(Box::new(EndedAtOnce))
        } else if age > longest {
            // The API server may have been put back to a backup meanwhile, and know the version of another past.
            let reason = "the API server was away for too long";
            kube::Error::Api(Status::failure(reason, "Expired").with_code(410).boxed())
        } else {
            return Ok(());
        };
        self.0 = None;
        Err(error)
    }

    /// A watch is answered; what notes that it has told something.
    fn answered(&mut self) -> Arc<AtomicBool> {
        let has_told = Arc::new(AtomicBool::new(false));
        self.0 = Some(Last { began: Instant::now(), has_told: Arc::clone(&has_told) });
        has_told
    }
}

/// A client for the watch of one kind. The crate asks for the next watch as soon as one is over, whatever the last one
/// was good for: after one that was ended at once, the next one is an error instead, on which a pause follows. And
/// after one that began longer ago than this it is one that leads to a list.
pub(crate) fn watching(client: &Client, longest: Duration) -> Client {
    let inner = client.clone();
    let watched = Arc::new(Mutex::new(Watched::default()));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, watched) = (inner.clone(), Arc::clone(&watched));
        async move {
            let asked = Asked::of(request.uri().query().unwrap_or_default());
            if asked == Asked::Resumed {
                watched.lock().resume(longest)?;
            }
            let answer = inner.send(request).await?;
            let has_told = match asked {
                Asked::Resumed if answer.status().is_success() => watched.lock().answered(),
                Asked::Listed if answer.status().is_success() => {
                    *watched.lock() = Watched::default();
                    Arc::default()
                }
                Asked::Resumed | Asked::Listed | Asked::Tried => Arc::default(),
            };
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

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// What has changed since a version.
    Resumed,
    /// All of it, be it by pages or in one stream.
    Listed,
    /// One object, to see whether there is an answer.
    Tried,
}

impl Asked {
    fn of(query: &str) -> Self {
        let has = |wanted: &str| query.split('&').any(|pair| pair == wanted);
        match (has("watch=true") && !has("sendInitialEvents=true"), has("limit=1")) {
            (true, _) => Self::Resumed,
            (false, true) => Self::Tried,
            (false, false) => Self::Listed,
        }
    }
}
