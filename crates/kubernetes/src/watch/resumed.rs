//! What is known of the watches before one that is asked for: one that was ended at once, without a word, is an error,
//! and not a reason to ask again at once; what happened long ago is listed; and which version was asked for last.

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// The last list or watch that was answered, if there was one since it was said that all is to be listed.
#[derive(Debug, Default)]
struct Watched(Option<Last>);

#[derive(Debug)]
struct Last {
    /// When it began; of a list by pages, when its last piece came.
    began: Instant,
    has_told: bool,
}

impl Watched {
    /// Whether a watch may go on from there; otherwise what is said instead of asking.
    fn resume(&mut self, longest: Duration) -> Result<(), kube::Error> {
        let Some(Last { began, has_told }) = &mut self.0 else { return Ok(()) };
        let age = began.elapsed();
        if age < SHORT && !std::mem::replace(has_told, true) {
            return Err(kube::Error::Service(Box::new(EndedAtOnce)));
        }
        if age <= longest {
            return Ok(());
        }
        self.0 = None;
        // The API server may have been put back to a backup meanwhile, and know the version of another past.
        let reason = "the API server was away for too long";
        Err(kube::Error::Api(Status::failure(reason, "Expired").with_code(410).boxed()))
    }

    /// It is answered. A list is no watch that has to tell something, but from it on time passes, too: one that is
    /// streamed is followed by no other watch for as long as one lasts.
    fn answered(&mut self, asked: Asked) {
        let has_told = match asked {
            Asked::Resumed(_) => false,
            Asked::Listed | Asked::Streamed => true,
            Asked::Tried => return,
        };
        self.0 = Some(Last { began: Instant::now(), has_told });
    }

    /// A piece of the answer is there. However long the pages of a list take, what is asked for next is new.
    fn told(&mut self, asked: Asked) {
        let Some(last) = &mut self.0 else { return };
        match asked {
            Asked::Resumed(_) | Asked::Streamed => last.has_told = true,
            Asked::Listed => last.began = Instant::now(),
            Asked::Tried => {}
        }
    }
}

/// The version from which the latest watch goes on, if it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since(Arc<AtomicU64>);

impl Since {
    /// Whether that is later than this one, which is the API server's latest.
    pub(crate) fn is_ahead_of(&self, version: u64) -> bool {
        self.0.load(Ordering::Relaxed) > version
    }
}

/// A client for the watch of one kind. The crate asks for the next watch as soon as one is over, whatever the last one
/// was good for: after one that was ended at once, the next one is an error instead, on which a pause follows. And
/// after one that began longer ago than this it is one that leads to a list.
pub(crate) fn watching(client: &Client, longest: Duration) -> (Client, Since) {
    let inner = client.clone();
    let watched = Arc::new(Mutex::new(Watched::default()));
    let since = Since::default();
    let asked_for = since.clone();
    let service = service_fn(move |request: Request<Body>| {
        let (inner, watched, since) = (inner.clone(), Arc::clone(&watched), asked_for.clone());
        async move {
            let asked = Asked::of(request.uri().query().unwrap_or_default());
            match asked {
                Asked::Resumed(version) => {
                    watched.lock().resume(longest)?;
                    since.0.store(version, Ordering::Relaxed);
                }
                Asked::Listed | Asked::Streamed => since.0.store(0, Ordering::Relaxed),
                Asked::Tried => {}
            }
            let answer = inner.send(request).await?;
            if answer.status().is_success() {
                watched.lock().answered(asked);
            }
            let (head, body) = answer.into_parts();
            let body = body.map_frame(move |frame| {
                watched.lock().told(asked);
                frame
            });
            Ok::<_, kube::Error>(Response::from_parts(head, body))
        }
    });
    (Client::new(service, client.default_namespace()), since)
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// What has changed since a version; 0 if it is no number.
    Resumed(u64),
    /// All of it, by pages.
    Listed,
    /// All of it, in one stream that is a watch from there on.
    Streamed,
    /// One object, to see whether there is an answer.
    Tried,
}

impl Asked {
    fn of(query: &str) -> Self {
        let has = |wanted: &str| query.split('&').any(|pair| pair == wanted);
        if has("watch=true") {
            if has("sendInitialEvents=true") {
                return Self::Streamed;
            }
            let version = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
            return Self::Resumed(version.and_then(|it| it.parse().ok()).unwrap_or_default());
        }
        if has("limit=1") { Self::Tried } else { Self::Listed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const LONGEST: Duration = Duration::from_secs(50);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_asked_for_is_known_by_the_query() {
        for (query, asked) in [
            (
                "&watch=true&timeoutSeconds=40&allowWatchBookmarks=true&resourceVersion=840",
                Asked::Resumed(840),
            ),
            ("&watch=true&resourceVersion=0&sendInitialEvents=true", Asked::Streamed),
            ("&limit=500", Asked::Listed),
            ("&limit=1", Asked::Tried),
        ] {
            assert_eq!(Asked::of(query), asked, "{query}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn from_a_list_on_an_outage_counts_as_from_a_watch() {
        for asked in [Asked::Listed, Asked::Streamed] {
            let mut watched = Watched::default();
            watched.answered(asked);
            assert!(watched.resume(LONGEST).is_ok(), "a list is no watch that was cut");
            advance(LONGEST).await;
            assert!(watched.resume(LONGEST).is_ok(), "{asked:?}");
            advance(SECOND).await;
            let Err(kube::Error::Api(status)) = watched.resume(LONGEST) else {
                panic!("{asked:?}")
            };
            assert_eq!(status.code, 410);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_was_cut_is_told_once_and_the_outage_after_it_counts() {
        let mut watched = Watched::default();
        watched.answered(Asked::Resumed(7));
        assert!(matches!(watched.resume(LONGEST), Err(kube::Error::Service(_))));
        assert!(watched.resume(LONGEST).is_ok(), "it is told once");
        advance(LONGEST + SECOND).await;
        assert!(matches!(watched.resume(LONGEST), Err(kube::Error::Api(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn pages_may_take_as_long_as_they_like_and_a_stream_lasts_no_longer_than_a_watch() {
        for (asked, is_new) in [(Asked::Listed, true), (Asked::Streamed, false)] {
            let mut watched = Watched::default();
            watched.answered(asked);
            advance(LONGEST + SECOND).await;
            watched.told(asked);
            assert_eq!(watched.resume(LONGEST).is_ok(), is_new, "{asked:?}");
        }
    }
}
