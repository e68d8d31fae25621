//! Events: what happens to objects, told where their owners look. Told once, counted from then on, and never so many
//! or so slowly that anything else has to wait.
//!
//! They are `v1` Events, which the ClusterRole of ingress-nginx allows, and not those of `events.k8s.io`, which kube's
//! own recorder writes. Their names are made of what they say, so that another leader goes on counting.

mod tell;
mod write;

pub use tell::TellOptions;

use crate::Known;
use crate::lease::Leadership;
use crate::pod::OwnPod;
use crate::task::Task;
use kube::Client;
use objects::{Meta, ObjectKey};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Events that wait to be written; more are dropped, or wait where they come from.
const QUEUE: usize = 256;
/// How long the end waits for the one that is being written.
const FAREWELL: Duration = Duration::from_secs(2);

/// Events that were not written, by reason.
static DROPPED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Why an Event was not written.
#[derive(Clone, Copy, Debug)]
enum Dropped {
    /// Too many waited.
    Queue,
    /// There were too many of one object.
    Object,
    /// There were too many of one namespace.
    Namespace,
    /// The API server did not take it.
    Refused,
}

impl Dropped {
    fn count(self) {
        DROPPED[self as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Events of this process that were not written since the start, by reason.
pub fn dropped() -> [(&'static str, u64); 4] {
    let reasons = ["queue", "object", "namespace", "refused"];
    std::array::from_fn(|at| (reasons[at], DROPPED[at].load(Ordering::Relaxed)))
}

/// How serious an Event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Warning,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// One for all: dropped if this replica leads no more.
    Leader,
    /// Each for itself.
    Everyone,
}

/// The object that an Event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) key: ObjectKey,
    /// Empty if it is not known.
    pub(crate) uid: Arc<str>,
}

impl Object {
    pub(crate) fn ingress(meta: &Meta) -> Self {
        Self {
            api_version: "networking.k8s.io/v1",
            kind: "Ingress",
            key: meta.key.clone(),
            uid: meta.uid.clone(),
        }
    }

    pub(crate) fn service(meta: &Meta) -> Self {
        Self { api_version: "v1", kind: "Service", key: meta.key.clone(), uid: meta.uid.clone() }
    }

    fn pod(own: &OwnPod) -> Self {
        let key = ObjectKey::new(own.namespace.as_str(), own.name.as_str());
        Self { api_version: "v1", kind: "Pod", key, uid: own.uid.as_str().into() }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) object: Object,
    pub(crate) kind: Kind,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) speaker: Speaker,
}

/// Takes Events. Copies share the queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: Option<mpsc::Sender<Event>>,
    /// That some were dropped was told.
    dropped: Arc<AtomicBool>,
}

impl Recorder {
    /// One that says nothing.
    pub fn silent() -> Self {
        Self { queue: None, dropped: Arc::default() }
    }

    /// Takes an Event if there is room; never waits.
    pub(crate) fn record(&self, event: Event) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(event).is_err() {
            Dropped::Queue.count();
            if !self.dropped.swap(true, Ordering::Relaxed) {
                tracing::warn!("Events come faster than they may be written: some are dropped");
            }
        }
    }

    /// Takes an Event as soon as there is room.
    async fn record_all(&self, event: Event) {
        if let Some(queue) = &self.queue {
            drop(queue.send(event).await);
        }
    }
}

/// Whose Events these are, and about what.
#[derive(Clone)]
pub struct EventOptions {
    /// The client for all of them.
    pub client: Client,
    /// The Pod of this replica.
    pub pod: OwnPod,
    /// What is told.
    pub tell: TellOptions,
}

/// Tells what happens.
#[derive(Debug)]
pub struct Events {
    recorder: Recorder,
    writing: Task,
    telling: Task,
}

impl Events {
    /// Begins. Must be called within a tokio runtime.
    pub fn start(
        options: EventOptions,
        leadership: &Leadership,
        known: watch::Receiver<Arc<Known>>,
    ) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE);
        let EventOptions { client, pod, tell } = options;
        let all = Recorder { queue: Some(sender), dropped: Arc::default() };
        let recorder = if tell.objects { all.clone() } else { Recorder::silent() };
        let writer = write::EventWriter::new(client, pod.name.clone(), leadership.clone());
        let teller = tell::Teller::new(tell, Object::pod(&pod), all, leadership.clone(), known);
        Self {
            recorder,
            writing: Task::start(|stop| writer.run(queue, stop)),
            telling: Task::start(|stop| teller.run(stop)),
        }
    }

    /// Where other parts may tell something.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Ends; what waits is dropped.
    pub async fn stop(self) {
        tokio::join!(self.telling.end(FAREWELL), self.writing.end(FAREWELL));
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Kind, Object, Recorder, Speaker, dropped};
    use objects::ObjectKey;
    use std::sync::Arc;
    use tokio::sync::mpsc;

    #[test]
    fn an_event_that_finds_no_room_is_counted() {
        let (sender, _queue) = mpsc::channel(1);
        let recorder = Recorder { queue: Some(sender), dropped: Arc::default() };
        let key = ObjectKey::new("demo", "shop");
        let object = Object { api_version: "v1", kind: "Service", key, uid: "1".into() };
        let (kind, speaker, message) = (Kind::Normal, Speaker::Leader, String::new());
        let event = Event { object, kind, reason: "TEST", message, speaker };
        let [before, now] = [1, 3].map(|times| {
            (0..times).for_each(|_| recorder.record(event.clone()));
            dropped()[0]
        });
        assert_eq!((before.1 + 3, before.0), (now.1, "queue"), "the first one had the only place");
    }
}
