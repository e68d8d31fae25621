//! What tells a page that something changed: Server-Sent Events, one for each change and one every few seconds.

use crate::history::History;
use bytes::Bytes;
use parking_lot::Mutex;
use runtime::admin::Page;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};

/// Where they are.
pub(crate) const PATH: &str = "/api/v1/events";
/// Streams at a time.
pub(crate) const STREAMS: usize = 32;
static OPEN: Semaphore = Semaphore::const_new(STREAMS);
/// Readers who found no place.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Between two that only say that time has passed.
const BEAT: Duration = Duration::from_secs(5);
/// Changes that come faster than that are told together.
const REST: Duration = Duration::from_millis(250);

/// Streams that are open.
pub(crate) fn open() -> usize {
    STREAMS - OPEN.available_permits()
}

/// Readers who found no place since the start.
pub(crate) fn refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// A stream of them.
#[expect(clippy::disallowed_methods, reason = "a beat, so that a dead connection is noticed")]
pub(crate) fn page(history: Arc<Mutex<History>>, mut news: watch::Receiver<u64>) -> Page {
    let Ok(permit) = OPEN.try_acquire() else {
        REFUSED.fetch_add(1, Ordering::Relaxed);
        let error =
            format!(r#"{{"error":"{STREAMS} pages look already: close one, or reload by hand"}}"#);
        return Page::json(error).with_status(503);
    };
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(async move {
        let _permit = permit;
        let mut what = "hello";
        loop {
            let generation = history.lock().generation();
            let event = format!("event: {what}\ndata: {{\"generation\":{generation}}}\n\n");
            if sender.send(Bytes::from(event)).await.is_err() {
                return;
            }
            what = tokio::select! {
                changed = news.changed() => match changed {
                    Ok(()) => "change",
                    Err(_) => return,
                },
                () = tokio::time::sleep(BEAT) => "beat",
                () = sender.closed() => return,
            };
            if what == "change" {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "so many changes a second are told, no more"
                )]
                tokio::time::sleep(REST).await;
                news.mark_unchanged();
            }
        }
    });
    Page::stream("text/event-stream", pieces)
}
