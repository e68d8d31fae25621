//! The Snapshot from folders of YAML and JSON, followed with inotify: no cluster is needed, nothing else differs.

mod folders;
mod tree;

use crate::feed::Publisher;
use crate::{Error, Feed};
use folders::Folders;
use futures_util::StreamExt;
use inotify::{EventStream, Inotify};
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout, timeout_at};
use tree::Touched;

/// Changes belong together while they follow each other this fast: a renamed folder, a checkout.
const QUIET: Duration = Duration::from_millis(10);
/// However long a burst lasts, what came so far is taken after this time.
const LONGEST_BURST: Duration = Duration::from_millis(100);
/// How often a folder that went away is looked for.
const RETRY: Duration = Duration::from_millis(500);

type Events = EventStream<Vec<u8>>;

/// The Snapshot from folders and files, all of them together; returns when everything was read once, and follows
/// every change from then on. Where two files hold the same object, the one in the folder that was named later
/// counts, and in one folder the one that sorts later.
pub async fn manifests(paths: Vec<PathBuf>) -> Result<Feed, Error> {
    if paths.is_empty() {
        return Err(Error::NoManifests);
    }
    let inotify = Inotify::init().map_err(Error::Inotify)?;
    let events = inotify.into_event_stream(vec![0; 64 * 1024]).map_err(Error::Inotify)?;
    let watches = events.watches();
    let folders = spawn_blocking(move || Folders::read(paths, watches)).await;
    let mut folders = folders.expect("this task waits for it, and reading does not panic")?;
    let first = folders.publish().unwrap_or_default();
    let (feed, publisher) = Feed::new(first);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(events, folders, publisher));
    Ok(feed.with(tasks))
}

async fn follow(mut events: Events, mut folders: Folders, publisher: Publisher) {
    loop {
        let (touched, since) = burst(&mut events, &mut folders).await;
        let reading = spawn_blocking(move || {
            folders.refresh(touched);
            folders
        });
        // Only a runtime that is shutting down does not finish this.
        let Ok(read) = reading.await else { return };
        folders = read;
        if let Some(snapshot) = folders.publish() {
            publisher.publish(snapshot, since);
        }
    }
}

/// Waits until something that matters was touched, and then until it is quiet again; what was touched, and when it
/// began.
async fn burst(events: &mut Events, folders: &mut Folders) -> (Touched, std::time::Instant) {
    let mut touched = Touched::default();
    while touched.is_empty() {
        let event = if folders.is_incomplete() {
            let Ok(event) = timeout(RETRY, events.next()).await else {
                let touched = Touched { everything: true, ..touched };
                return (touched, std::time::Instant::now());
            };
            event
        } else {
            events.next().await
        };
        note(event, folders, &mut touched);
    }
    let since = Instant::now();
    let end = since + LONGEST_BURST;
    while let Ok(event) = timeout_at(end.min(Instant::now() + QUIET), events.next()).await {
        note(event, folders, &mut touched);
    }
    (touched, since.into_std())
}

fn note(
    event: Option<std::io::Result<inotify::EventOwned>>,
    folders: &mut Folders,
    touched: &mut Touched,
) {
    match event {
        Some(Ok(event)) => folders.note(&event, touched),
        // What was missed is found by looking at everything.
        Some(Err(_)) | None => touched.everything = true,
    }
}

#[cfg(test)]
mod tests;
