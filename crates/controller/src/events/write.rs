//! Writing Events: the same one again only counts, and there are so many at most for each object and for all.

use super::{Dropped, Event, Kind, Object, Speaker};
use crate::budget::Budget;
use crate::call::{Called, ask, remedy};
use crate::clock::Moment;
use crate::lease::Leadership;
use crate::lines::cut;
use crate::stable;
use crate::task::Stop;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use lru::LruCache;
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Who speaks, to those who filter Events by it.
const COMPONENT: &str = "nginx-ingress-controller";
/// For one object: so many at once, and then one each five minutes.
const BURST_OF_ONE: u32 = 25;
const RATE_OF_ONE: f64 = 1.0 / 300.0;
/// For those of one namespace: more are dropped, so that others are heard.
const BURST_OF_NAMESPACE: u32 = 200;
const RATE_OF_NAMESPACE: f64 = 5.0;
/// For all of them.
const BURST: u32 = 100;
const RATE: f64 = 20.0;
/// Objects and Events that are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("more than none");
/// How long the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What it takes to write them.
const RIGHTS: &str = "create and patch of events, and a quota of the namespace that has room";
/// Pauses between tries; after the last one the Event is dropped.
const PAUSES: [u64; 6] = [1, 2, 5, 10, 30, 60];
/// Bytes of a message at most, as the API server has it.
const MESSAGE: usize = 1024;
/// Bytes of a name at most, without the part that follows the object's name.
const NAME: usize = 253 - 17;
/// Where Events of objects without namespace are.
const NOWHERE: &str = "default";

/// Writes Events one after the other.
pub(super) struct EventWriter {
    client: Client,
    instance: String,
    leadership: Leadership,
    all: Budget,
    namespaces: LruCache<Arc<str>, Budget>,
    objects: LruCache<Object, Budget>,
    /// How often each one was told, by namespace and name.
    counts: LruCache<(String, String), i32>,
    /// Trouble was told, and is not over.
    troubled: bool,
}

impl EventWriter {
    pub(super) fn new(client: Client, instance: String, leadership: Leadership) -> Self {
        Self {
            client,
            instance,
            leadership,
            all: Budget::new(BURST, RATE, Moment::now()),
            namespaces: LruCache::new(REMEMBERED),
            objects: LruCache::new(REMEMBERED),
            counts: LruCache::new(REMEMBERED),
            troubled: false,
        }
    }

    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Event>, mut stop: Stop) {
        loop {
            let event = tokio::select! {
                Some(event) = queue.recv() => event,
                () = stop.asked() => return,
                else => return,
            };
            tokio::select! {
                () = self.deliver(event) => {}
                () = stop.asked() => return,
            }
        }
    }

    async fn deliver(&mut self, event: Event) {
        let now = Moment::now();
        let of_one = self.objects.get_or_insert_mut(event.object.clone(), || {
            Budget::new(BURST_OF_ONE, RATE_OF_ONE, now)
        });
        if of_one.take(now).is_err() {
            Dropped::Object.count();
            return tracing::debug!(?event, "too many Events of one object: dropped");
        }
        let namespace = Arc::clone(&event.object.key.namespace);
        let of_namespace = self.namespaces.get_or_insert_mut(namespace, || {
            Budget::new(BURST_OF_NAMESPACE, RATE_OF_NAMESPACE, now)
        });
        // What goes on as it should says little to who looks for what is wrong.
        let taken = match event.kind {
            Kind::Normal => of_namespace.take_leaving_half(now),
            Kind::Warning => of_namespace.take(now),
        };
        if taken.is_err() {
            Dropped::Namespace.count();
            return tracing::debug!(?event, "too many Events of one namespace: dropped");
        }
        while let Err(wait) = self.all.take(Moment::now()) {
            #[expect(clippy::disallowed_methods, reason = "a budget by time")]
            sleep(wait).await;
        }
        for pause in PAUSES {
            if event.speaker == Speaker::Leader && !self.leadership.is_leader() {
                return;
            }
            let reason = match self.write(&event).await {
                Called::Good(()) => return self.recovered(),
                // Its namespace is gone or ending; or nothing that repeating would mend.
                Called::Bad { code: Some(404 | 400 | 422), reason } => {
                    Dropped::Refused.count();
                    return tracing::debug!(?event, reason, "an Event is not taken: dropped");
                }
                Called::Bad { code, reason } => {
                    let forbidden = code == Some(403);
                    if !std::mem::replace(&mut self.troubled, true) {
                        let remedy = remedy(code, RIGHTS);
                        tracing::warn!(reason, "cannot write an Event{remedy}");
                    }
                    if forbidden {
                        return Dropped::Refused.count();
                    }
                    reason
                }
            };
            tracing::debug!(reason, "an Event waits");
            #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
            sleep(Duration::from_secs(pause)).await;
        }
        Dropped::Refused.count();
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.troubled) {
            tracing::info!("Events can be written again");
        }
    }

    /// Creates it, or counts it once more.
    async fn write(&mut self, event: &Event) -> Called<()> {
        let namespace = match &*event.object.key.namespace {
            "" => NOWHERE,
            namespace => namespace,
        };
        let name = name(event);
        let events: Api<core::Event> = Api::namespaced(self.client.clone(), namespace);
        let id = (namespace.to_owned(), name.clone());
        if let Some(count) = self.counts.get(&id).copied() {
            match again(&events, &name, Some(count.saturating_add(1))).await {
                Called::Good(count) => return self.counted(id, count),
                // Events are kept for an hour, usually.
                Called::Bad { code: Some(404), .. } => drop(self.counts.pop(&id)),
                Called::Bad { code, reason } => return Called::Bad { code, reason },
            }
        }
        let new = self.made(event, namespace, &name);
        match ask(PATIENCE, events.create(&PostParams::default(), &new)).await {
            Called::Good(_) => self.counted(id, 1),
            // It was told by the leader before, or by this Pod before it was restarted.
            Called::Bad { code: Some(409), .. } => {
                let count = match again(&events, &name, None).await {
                    Called::Good(count) => count.saturating_add(1),
                    Called::Bad { code, reason } => return Called::Bad { code, reason },
                };
                match again(&events, &name, Some(count)).await {
                    Called::Good(count) => self.counted(id, count),
                    Called::Bad { code, reason } => Called::Bad { code, reason },
                }
            }
            Called::Bad { code, reason } => Called::Bad { code, reason },
        }
    }

    fn counted(&mut self, id: (String, String), count: i32) -> Called<()> {
        self.counts.put(id, count);
        Called::Good(())
    }

    fn made(&self, event: &Event, namespace: &str, name: &str) -> core::Event {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::now());
        let Object { api_version, kind, key, uid } = &event.object;
        core::Event {
            metadata: kube::api::ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                ..Default::default()
            },
            involved_object: core::ObjectReference {
                api_version: text(api_version),
                kind: text(kind),
                namespace: text(&key.namespace),
                name: text(&key.name),
                uid: text(uid),
                ..Default::default()
            },
            type_: Some(type_of(event.kind).to_owned()),
            reason: text(event.reason),
            message: Some(cut(&event.message, MESSAGE).to_owned()),
            count: Some(1),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            source: Some(core::EventSource { component: text(COMPONENT), host: None }),
            reporting_component: text(COMPONENT),
            reporting_instance: text(&self.instance),
            ..Default::default()
        }
    }
}

/// Sets the time of an Event, and its count if there is one; the count that it has then.
async fn again(events: &Api<core::Event>, name: &str, count: Option<i32>) -> Called<i32> {
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::now());
    let mut patch = json!({"lastTimestamp": now});
    if let Some(count) = count {
        patch["count"] = count.into();
    }
    let params = PatchParams::default();
    match ask(PATIENCE, events.patch(name, &params, &Patch::Merge(patch))).await {
        Called::Good(event) => Called::Good(event.count.unwrap_or(1)),
        Called::Bad { code, reason } => Called::Bad { code, reason },
    }
}

/// The object's name and a number made of everything that makes two Events the same.
fn name(event: &Event) -> String {
    let Event { object, kind, reason, message, speaker: _ } = event;
    let Object { api_version, kind: of_object, key, uid } = object;
    let parts =
        [api_version, of_object, &*key.namespace, &*key.name, &**uid, type_of(*kind), reason];
    let number = stable::number(parts.into_iter().chain([message.as_str()]).map(str::as_bytes));
    let own = &key.name[..key.name.len().min(NAME)];
    format!("{}.{number:016x}", own.trim_end_matches(['.', '-']))
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Normal => "Normal",
        Kind::Warning => "Warning",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::ObjectKey;

    fn event(name: &str, message: &str) -> Event {
        let key = ObjectKey::new("demo", name);
        let object = Object { api_version: "v1", kind: "ConfigMap", key, uid: "1".into() };
        let (kind, speaker) = (Kind::Normal, Speaker::Leader);
        Event { object, kind, reason: "UPDATE", message: message.to_owned(), speaker }
    }

    #[test]
    fn the_same_event_has_the_same_name_everywhere() {
        let one = name(&event("settings", "ConfigMap demo/settings"));
        assert_eq!(one, name(&event("settings", "ConfigMap demo/settings")));
        assert_ne!(one, name(&event("settings", "something else")));
        // Written down: who changes how names are made starts all counts anew.
        assert_eq!(one, "settings.d3a30c6d38b66aa3");
    }

    #[test]
    fn names_and_messages_are_as_long_as_the_api_server_takes() {
        let long = name(&event(&"a".repeat(253), "x"));
        assert_eq!(long.len(), 253);
        let dotted = name(&event(&format!("{}.b", "a".repeat(NAME - 1)), "x"));
        assert!(!dotted.contains(".."), "{dotted}");
        let message = "ä".repeat(MESSAGE);
        assert_eq!(cut(&message, MESSAGE).len(), MESSAGE);
        assert_eq!(cut(&format!("x{message}"), MESSAGE).len(), MESSAGE - 1);
    }
}
