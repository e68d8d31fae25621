//! The status of the Gateway API's objects: written by the leader, after every replica serves what it says, only where
//! it differs, and patiently where somebody else insists on another.

use super::address::Address;
use super::document::Wanted;
use super::farewell;
use super::later::{Later, Naming, Silence, pause};
use super::refusals::Refusals;
use super::services::{self, Scribe};
use super::siblings::Siblings;
use super::which::{Id, Which, api, differing};
use super::write::{MANAGER, Outcome, outcome};
use crate::Known;
use crate::budget::Budget;
use crate::call::ask;
use crate::clock::Moment;
use crate::lease::Leadership;
use crate::pod::OwnPod;
use crate::task::Stop;
use futures_util::StreamExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::PostParams;
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use translate::gateway::{GatewayStatus, ServiceKind};

/// Writes at a time, and each second.
const AT_A_TIME: usize = 10;
const RATE: u32 = 200;
/// How long the API server may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// After what was written was undone as often as `QUARRELS`: doubled with each further time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
const QUARRELS: u32 = 3;
/// What is undone later than that is no quarrel.
const QUARREL: Duration = Duration::from_secs(2 * LONGEST_PAUSE.as_secs());

/// What was done about one object.
#[derive(Debug, Default)]
struct Track {
    /// What was written last, when, and how often in a row that was undone.
    written: Option<Wanted>,
    at: Option<Moment>,
    times: u32,
    /// How often in a row the API server had an error for it.
    failures: u32,
    /// Nothing before.
    until: Option<Moment>,
    busy: bool,
    /// There was something to look at while it was busy.
    again: bool,
}

impl Track {
    fn wrote(&mut self, wanted: Wanted, now: Moment) {
        let was_lately = self.at.replace(now).is_some_and(|at| at.until(now) < QUARREL);
        let is_undone = was_lately && self.written.as_ref() == Some(&wanted);
        self.times = if is_undone { self.times + 1 } else { 0 };
        self.written = Some(wanted);
    }
}

/// Keeps the status of the Gateway API's objects current.
pub(super) struct Gateways {
    pub(super) client: Client,
    pub(super) leadership: Leadership,
    /// `spec.controllerName` of our classes.
    pub(super) controller: Arc<str>,
    /// Whether the Gateways of all namespaces are seen: then what is not there does not exist.
    pub(super) sees_all: bool,
    /// The Service whose endpoints are the replicas.
    pub(super) replicas: Option<ObjectKey>,
    /// What is published of addresses, once that is known.
    pub(super) addresses: watch::Receiver<Option<Arc<[Address]>>>,
    /// The Pod of this replica, and the port at which all of them say what they serve.
    pub(super) pod: OwnPod,
    pub(super) admin_port: u16,
    /// The last replica takes the addresses away when it ends.
    pub(super) clear_at_end: bool,
}

/// What is to be looked at, by namespace.
#[derive(Debug, Default)]
struct Pending {
    all: BTreeSet<(ObjectKey, Which)>,
    /// Whose turn was the last one.
    last: Arc<str>,
}

impl Pending {
    fn insert(&mut self, (which, key): Id) {
        self.all.insert((key, which));
    }

    /// Something of the namespace that follows the last one: who always has something keeps nobody else waiting.
    fn take_turn(&mut self) -> Option<Id> {
        // No text stands between `a` and `a\0`.
        let following = (ObjectKey::new(format!("{}\0", self.last), ""), Which::Class);
        let next = self.all.range(following..).next().or_else(|| self.all.first())?.clone();
        self.all.remove(&next);
        let (key, which) = next;
        self.last = key.namespace.clone();
        Some((which, key))
    }
}

struct Keeper {
    own: Gateways,
    known: Arc<Known>,
    tracks: BTreeMap<Id, Track>,
    pending: Pending,
    siblings: Siblings,
    writes: JoinSet<(Id, Wanted, Outcome)>,
    budget: Budget,
    silence: Silence,
    /// Those that are left alone for a while.
    later: Later<Id>,
    naming: Naming,
    refusals: Refusals,
}

impl Gateways {
    /// Whether something in the status of a route that names no Gateway of ours is from us.
    fn is_left_over(&self, told_by: &[String]) -> bool {
        // What another replica with our name serves is its own to tell.
        self.sees_all && told_by.iter().any(|name| **name == *self.controller)
    }

    /// Runs until it is asked to end.
    #[expect(clippy::disallowed_methods, reason = "what was refused is tried again by the clock")]
    pub(super) async fn run(self, mut known: watch::Receiver<Arc<Known>>, mut stop: Stop) {
        let (mut leadership, mut addresses) = (self.leadership.clone(), self.addresses.clone());
        let now = Moment::now();
        let siblings = Siblings::new(self.client.clone(), self.pod.clone(), self.admin_port);
        let mut keeper = Keeper {
            own: self,
            siblings,
            known: Arc::default(),
            tracks: BTreeMap::new(),
            pending: Pending::default(),
            writes: JoinSet::new(),
            budget: Budget::new(RATE, f64::from(RATE), now),
            silence: Silence::default(),
            later: Later::default(),
            naming: Naming::default(),
            refusals: Refusals::default(),
        };
        loop {
            if keeper.own.leadership.is_leader() {
                keeper.follow(known.borrow_and_update().clone());
            } else {
                // Whoever leads next looks at everything.
                (keeper.known, keeper.tracks) = (Arc::default(), BTreeMap::new());
                keeper.pending.all.clear();
                keeper.later.clear();
                keeper.siblings.clear();
            }
            let wait = keeper.send();
            tokio::select! {
                () = stop.asked() => break,
                () = leadership.changed() => {}
                Ok(()) = known.changed() => {}
                Ok(()) = addresses.changed() => keeper.look_at_gateways(),
                Some(Ok(done)) = keeper.writes.join_next() => keeper.done(done),
                free = keeper.siblings.heard() => {
                    free.into_iter().for_each(|id| keeper.pending.insert(id));
                }
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
        while keeper.writes.join_next().await.is_some() {}
        if keeper.own.clear_at_end {
            keeper.known = known.borrow_and_update().clone();
            keeper.take_leave().await;
        }
    }
}

impl Keeper {
    /// Notes what differs: what is to be said, or the version of the object, which may mean that somebody wrote.
    fn follow(&mut self, known: Arc<Known>) {
        let (old, new) = (&self.known, &known);
        let mut touched = BTreeSet::new();
        let mut note = |which, keys: Vec<ObjectKey>| {
            touched.extend(keys.into_iter().map(|key| (which, key)));
        };
        note(Which::Class, differing(&old.statuses.classes, &new.statuses.classes));
        note(Which::Gateway, differing(&old.statuses.gateways, &new.statuses.gateways));
        let (before, now) = (&old.snapshot, &new.snapshot);
        note(Which::Class, differing(&before.gateway_classes, &now.gateway_classes));
        note(Which::Gateway, differing(&before.gateways, &now.gateways));
        note(Which::Set, differing(&old.statuses.sets, &new.statuses.sets));
        note(Which::Set, differing(&before.listener_sets, &now.listener_sets));
        note(Which::Policy, differing(&old.statuses.policies, &new.statuses.policies));
        note(Which::Policy, differing(&before.backend_tls, &now.backend_tls));
        note(Which::Service, services::touched(old, new, self.own.replicas.as_ref()));
        let of_http = |(kind, key)| (Which::Route(kind), key);
        let told = differing(&old.statuses.routes, &new.statuses.routes);
        touched.extend(told.into_iter().map(of_http));
        touched.extend(differing(&before.http_routes, &now.http_routes).into_iter().map(of_http));
        let of_stream = |(kind, key)| (Which::Stream(kind), key);
        let told = differing(&old.statuses.stream_routes, &new.statuses.stream_routes);
        touched.extend(told.into_iter().map(of_stream));
        touched.extend(
            differing(&before.stream_routes, &now.stream_routes).into_iter().map(of_stream),
        );
        let told = &new.statuses;
        touched.retain(|id| {
            let (which, key) = id;
            let is_there = match which {
                Which::Class => told.classes.contains_key(key),
                Which::Gateway => told.gateways.contains_key(key),
                Which::Set => told.sets.contains_key(key),
                // One that has left us is told so, be it while nobody led.
                Which::Route(kind) => {
                    let at = (*kind, key.clone());
                    let route = new.snapshot.http_routes.get(&at);
                    told.routes.contains_key(&at)
                        || self.tracks.contains_key(id)
                        || route.is_some_and(|one| self.own.is_left_over(&one.told_by))
                }
                Which::Service => {
                    let has_service = |status: &Arc<GatewayStatus>| status.service.is_some();
                    told.gateways.get(key).is_some_and(has_service) || self.tracks.contains_key(id)
                }
                Which::Policy => told.policies.contains_key(key) || self.tracks.contains_key(id),
                Which::Stream(kind) => {
                    let at = (*kind, key.clone());
                    let route = new.snapshot.stream_routes.get(&at);
                    told.stream_routes.contains_key(&at)
                        || self.tracks.contains_key(id)
                        || route.is_some_and(|one| self.own.is_left_over(&one.told_by))
                }
            };
            if !is_there {
                self.tracks.remove(id);
                self.siblings.forget(id);
            }
            is_there
        });
        touched.into_iter().for_each(|id| self.pending.insert(id));
        self.known = known;
    }

    fn look_at_gateways(&mut self) {
        for key in self.known.statuses.gateways.keys() {
            self.pending.insert((Which::Gateway, key.clone()));
        }
        for key in self.known.statuses.sets.keys() {
            self.pending.insert((Which::Set, key.clone()));
        }
    }

    /// The addresses that are published, if they are known; none where a Gateway has its own ones.
    fn published_for(&self, status: &GatewayStatus) -> Option<Arc<[Address]>> {
        if status.own.is_some() {
            Some(Arc::default())
        } else {
            self.own.addresses.borrow().clone()
        }
    }

    /// What an object is to be told; none: nothing now.
    fn wanted(&self, (which, key): &Id) -> Option<Wanted> {
        let told = &self.known.statuses;
        match which {
            Which::Class => told.classes.get(key).cloned().map(Wanted::Class),
            Which::Gateway => {
                let status = told.gateways.get(key)?.clone();
                let addresses = self.published_for(&status)?;
                Some(Wanted::Gateway(status, addresses))
            }
            Which::Set => {
                let status = told.sets.get(key)?.clone();
                let gateway = told.gateways.get(&status.gateway)?.clone();
                let addresses = self.published_for(&gateway)?;
                Some(Wanted::Set(status, Some(gateway), addresses))
            }
            Which::Route(kind) => {
                Some(Wanted::Route(told.routes.get(&(*kind, key.clone())).cloned()))
            }
            Which::Service => {
                let status = told.gateways.get(key);
                let service = status.and_then(|status| status.service.clone());
                let is_balanced = matches!(
                    service.as_ref().map(|service| service.kind),
                    Some(ServiceKind::LoadBalancer(_))
                );
                let replicas = self.own.replicas.as_ref().filter(|_| is_balanced);
                let slices = replicas.and_then(|key| self.known.snapshot.slices.get(key).cloned());
                Some(Wanted::Service(service, slices))
            }
            Which::Policy => Some(Wanted::Policy(told.policies.get(key).cloned())),
            Which::Stream(kind) => {
                let status = told.stream_routes.get(&(*kind, key.clone()));
                Some(Wanted::Route(status.cloned()))
            }
        }
    }

    /// What is told where nobody serves any more. A Gateway with an address of its own keeps it for the next start.
    fn last_words(&self) -> Vec<(Id, Wanted)> {
        let told = &self.known.statuses;
        let shares = |gateway: &GatewayStatus| gateway.own.is_none();
        // That it has no address is what is wrong with it, not which one it asks for.
        let without = |gateway: &Arc<GatewayStatus>| {
            Arc::new(GatewayStatus { wanted: Vec::new(), ..(**gateway).clone() })
        };
        let gateways = told.gateways.iter().filter(|(_, status)| shares(status));
        let gateways = gateways.map(|(key, status)| {
            let wanted = Wanted::Gateway(without(status), Arc::default());
            ((Which::Gateway, key.clone()), wanted)
        });
        let sets = told.sets.iter().filter_map(|(key, status)| {
            let gateway = told.gateways.get(&status.gateway).filter(|one| shares(one))?;
            let wanted = Wanted::Set(status.clone(), Some(without(gateway)), Arc::default());
            Some(((Which::Set, key.clone()), wanted))
        });
        gateways.chain(sets).collect()
    }

    /// Takes the addresses away that are published, where no other replica stays: as from Ingresses, if it is one.
    async fn take_leave(&self) {
        let is_one = self.own.addresses.borrow().as_ref().is_some_and(|all| all.len() == 1);
        let words = self.last_words();
        let Gateways { client, pod, leadership, controller, .. } = &self.own;
        if !is_one
            || words.is_empty()
            || !farewell::may_clear("Gateways", client, pod, leadership).await
        {
            return;
        }
        let (all, written) = (words.len(), AtomicUsize::new(0));
        let writing = futures_util::stream::iter(words).for_each_concurrent(
            AT_A_TIME,
            async |(id, wanted)| {
                for _ in 0..farewell::TRIES {
                    let (client, leadership) = (client.clone(), leadership.clone());
                    let scribe = Scribe { client, leadership, replicas: None };
                    let (Ok(outcome) | Err(outcome)) =
                        write(scribe, controller, &id, &wanted).await;
                    if let Some(is_written) = farewell::settled(outcome).await {
                        written.fetch_add(usize::from(is_written), Ordering::Relaxed);
                        break;
                    }
                }
            },
        );
        match tokio::time::timeout(farewell::PATIENCE, writing).await {
            Ok(()) => {
                let told = written.load(Ordering::Relaxed);
                tracing::info!(
                    told,
                    all,
                    "no replica stays: these Gateways and sets tell no address now"
                );
            }
            Err(_) => tracing::warn!("there was no time to take the address of all Gateways away"),
        }
    }

    /// Sends as much as may be sent now; how long to wait for more.
    fn send(&mut self) -> Option<Duration> {
        if !self.own.leadership.is_leader() {
            return None;
        }
        loop {
            let now = Moment::now();
            let pause = self.silence.left(now);
            if !pause.is_zero() {
                return Some(pause);
            }
            while let Some(id) = self.later.take(now) {
                self.pending.insert(id);
            }
            // Something else happens before there is room again.
            if self.writes.len() >= AT_A_TIME {
                return None;
            }
            let Some(id) = self.pending.take_turn() else { return self.later.wait(now) };
            let track = self.tracks.entry(id.clone()).or_default();
            if track.busy {
                track.again = true;
                continue;
            }
            // It is among those that are looked at later.
            if track.until.is_some_and(|until| !now.until(until).is_zero()) {
                continue;
            }
            let Some(wanted) = self.wanted(&id) else {
                self.siblings.forget(&id);
                continue;
            };
            if !self.may_tell(&id, &wanted, now) {
                continue;
            }
            if let Err(pause) = self.budget.take(now) {
                self.pending.insert(id);
                return Some(pause);
            }
            self.begin(id, wanted);
        }
    }

    /// Whether every replica serves what an object is to be told; otherwise it waits. What was written already is
    /// only put right.
    fn may_tell(&mut self, id: &Id, wanted: &Wanted, now: Moment) -> bool {
        let track = self.tracks.get(id);
        let is_told = track.is_some_and(|track| track.written.as_ref() == Some(wanted));
        let number = wanted.number(id).filter(|_| !is_told);
        number.is_none_or(|number| self.siblings.may_tell(id, number, now))
    }

    /// Begins to write what an object is to be told.
    fn begin(&mut self, id: Id, wanted: Wanted) {
        self.siblings.forget(&id);
        if let Some(track) = self.tracks.get_mut(&id) {
            track.busy = true;
        }
        let Gateways { client, leadership, controller, replicas, .. } = &self.own;
        let scribe = Scribe {
            client: client.clone(),
            leadership: leadership.clone(),
            replicas: replicas.clone(),
        };
        let controller = controller.clone();
        self.writes.spawn(async move {
            let outcome = write(scribe, &controller, &id, &wanted).await;
            (id, wanted, outcome.unwrap_or_else(|outcome| outcome))
        });
    }

    fn done(&mut self, (id, wanted, outcome): (Id, Wanted, Outcome)) {
        let now = Moment::now();
        if !matches!(outcome, Outcome::Silent(_) | Outcome::NotLeader) {
            self.silence.end();
        }
        let gone =
            matches!(wanted, Wanted::Route(None) | Wanted::Policy(None) | Wanted::Service(None, _));
        let track = self.tracks.entry(id.clone()).or_default();
        track.busy = false;
        if std::mem::take(&mut track.again) {
            self.pending.insert(id.clone());
        }
        let failures = std::mem::take(&mut track.failures);
        match outcome {
            Outcome::Written => {
                track.wrote(wanted, now);
                if track.times >= QUARRELS {
                    let pause = FIRST_PAUSE * 2_u32.saturating_pow(track.times.min(12));
                    let pause = pause.min(LONGEST_PAUSE);
                    track.until = Some(now + pause);
                    self.later.insert(now + pause, id.clone());
                    tracing::warn!(
                        kind = id.0.kind().name(), namespace = %id.1.namespace, name = %id.1.name,
                        "somebody else keeps changing our part of it; left alone for {} s", pause.as_secs()
                    );
                }
                if gone {
                    self.tracks.remove(&id);
                }
            }
            // It stands as it should, or a later version is on its way.
            Outcome::Gone => {
                if gone {
                    self.tracks.remove(&id);
                }
            }
            Outcome::Conflict => self.pending.insert(id),
            Outcome::Refused(reason) => self.refusals.tell(&id, &reason, now),
            Outcome::Failed(reason) => {
                if self.naming.is_due(now) {
                    tracing::warn!(
                        kind = id.0.kind().name(), namespace = %id.1.namespace, name = %id.1.name, reason,
                        "cannot write this status, trying again; others do not wait for it"
                    );
                }
                track.failures = failures.saturating_add(1);
                let until = now + pause(track.failures);
                track.until = Some(until);
                self.later.insert(until, id);
            }
            Outcome::Silent(reason) => {
                if self.silence.begin(now) {
                    tracing::warn!(
                        reason,
                        "cannot write the status of the Gateway API's objects, trying again"
                    );
                }
                self.pending.insert(id);
            }
            Outcome::NotLeader => {}
        }
    }
}

/// Reads an object and writes its status where that differs; `Gone` where there is nothing to do.
async fn write(
    scribe: Scribe,
    controller: &str,
    (which, key): &Id,
    wanted: &Wanted,
) -> Result<Outcome, Outcome> {
    if let Wanted::Service(service, _) = wanted {
        return scribe.write(key, service.as_deref()).await;
    }
    let Scribe { client, leadership, .. } = scribe;
    let left = leadership.remaining().ok_or(Outcome::NotLeader)?;
    let api = api(client, *which, key);
    let mut found = outcome(ask(left.min(PATIENCE), api.get(&key.name)).await)?;
    let generation = found.metadata.generation.unwrap_or_default();
    if wanted.generation().is_some_and(|judged| judged != generation) {
        return Ok(Outcome::Gone);
    }
    let status = wanted.within(&found.data["status"], controller, Timestamp::now());
    if found.data["status"] == status {
        return Ok(Outcome::Gone);
    }
    found.data["status"] = status;
    let as_fairway = PostParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
    let left = leadership.remaining().ok_or(Outcome::NotLeader)?;
    let update = api.replace_status(&key.name, &as_fairway, &found);
    outcome(ask(left.min(PATIENCE), update).await)?;
    Ok(Outcome::Written)
}

#[cfg(test)]
mod tests {
    use super::{Moment, Pending, QUARREL, Track, Wanted, Which};
    use objects::ObjectKey;

    #[test]
    fn what_is_undone_again_and_again_is_a_quarrel_and_what_is_undone_once_in_a_while_is_none() {
        let (mut track, start) = (Track::default(), Moment::now());
        for times in 0..5 {
            track.wrote(Wanted::Policy(None), start);
            assert_eq!(track.times, times);
        }
        track.wrote(Wanted::Policy(None), start + QUARREL);
        assert_eq!(track.times, 0);
    }

    #[test]
    fn a_namespace_that_always_has_something_to_tell_keeps_no_other_one_waiting() {
        let mut pending = Pending::default();
        for number in 0..100 {
            pending.insert((Which::Gateway, ObjectKey::new("a", format!("g{number:03}"))));
        }
        for namespace in ["", "a-b", "z"] {
            pending.insert((Which::Class, ObjectKey::new(namespace, "one")));
        }
        let mut turns = (0..5).filter_map(|_| pending.take_turn()).map(|(_, key)| key.namespace);
        assert!(turns.by_ref().take(5).eq(["a", "a-b", "z", "", "a"].map(Into::into)));
        assert_eq!(std::iter::from_fn(|| pending.take_turn()).count(), 98);
    }
}
