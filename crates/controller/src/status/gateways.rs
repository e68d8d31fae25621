//! The status of the Gateway API's objects: written by the leader, after every replica serves what it says, only where
//! it differs, and patiently where somebody else insists on another.

use super::address::Address;
use super::astray;
use super::document::Wanted;
use super::later::{Later, Naming, Silence, crossed_again, pause};
use super::leave::{self, Leaving};
use super::pending::Pending;
use super::refusals::Refusals;
use super::replace::write;
use super::services::{self, Scribe};
use super::siblings::Siblings;
use super::which::{Id, Which, differing};
use super::write::Outcome;
use crate::Known;
use crate::budget::Budget;
use crate::clock::Moment;
use crate::events::{Event, Kind, Object, Recorder, Speaker};
use crate::lease::Leadership;
use crate::pod::OwnPod;
use crate::task::Stop;
use kube::Client;
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use translate::gateway::{GatewayStatus, ServiceKind};

/// Writes at a time, and each second.
const AT_A_TIME: usize = 10;
const RATE: u32 = 200;
/// After what was written was undone as often as `QUARRELS`: doubled with each further time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
const QUARRELS: u32 = 3;
/// How soon it is asked again whether what was kept may go.
const KEPT: Duration = Duration::from_secs(60);
/// How soon what was refused is tried again: a policy that said no may be gone.
const REFUSED: Duration = Duration::from_secs(300);
/// How often in a row something is forbidden before that is told: an API server that starts forbids for a moment what
/// it allows.
const LASTING: u32 = 3;
/// What is undone later than that is no quarrel.
const QUARREL: Duration = Duration::from_secs(2 * LONGEST_PAUSE.as_secs());
/// What tells no address is nobody's, but it is not written every moment either.
const NOBODYS: Duration = Duration::from_secs(5);

/// What was done about one object.
#[derive(Debug, Default)]
struct Track {
    /// What was written last, to which object of the name, when, and how often in a row that was undone.
    written: Option<Wanted>,
    uid: Option<Arc<str>>,
    at: Option<Moment>,
    times: u32,
    /// How often in a row the API server had an error for it.
    failures: u32,
    /// Nothing before.
    until: Option<Moment>,
    /// When it is looked at again, since it was kept or refused.
    again_at: Option<Moment>,
    busy: bool,
    /// There was something to look at while it was busy.
    again: bool,
    /// The API server refuses it, and not for a moment only.
    is_forbidden: bool,
}

impl Track {
    /// For how long it is left alone then, if somebody else insists. One that was made anew has undone nothing.
    fn wrote(&mut self, wanted: Wanted, uid: Option<Arc<str>>, now: Moment) -> Option<Duration> {
        let was_lately = self.at.replace(now).is_some_and(|at| at.until(now) < QUARREL);
        let is_same = std::mem::replace(&mut self.uid, uid) == self.uid;
        let is_undone = is_same && was_lately && self.written.as_ref() == Some(&wanted);
        self.times = if is_undone { self.times + 1 } else { 0 };
        self.written = Some(wanted);
        if self.times < QUARRELS {
            self.until = None;
            return None;
        }
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.times.min(12));
        let pause = pause.min(LONGEST_PAUSE);
        self.until = Some(now + pause);
        Some(pause)
    }

    /// Whether it is left alone now. Somebody else insists on what was written last: what is new is told at once, while
    /// of what failed nothing new is a reason to hurry, since its owner makes as many as he likes.
    fn waits(&self, wanted: &Wanted, now: Moment) -> bool {
        let is_early = self.until.is_some_and(|until| !now.until(until).is_zero());
        is_early && (self.failures > 0 || self.written.as_ref() == Some(wanted))
    }

    /// When it is to be looked at again after so long; none if it is already, before that.
    fn look_again(&mut self, after: Duration, now: Moment) -> Option<Moment> {
        let is_before = |at| now < at && at <= now + after;
        let is_due = !self.again_at.is_some_and(is_before);
        is_due.then(|| *self.again_at.insert(now + after))
    }

    /// It is nobody's now, so that it need not be left alone for long: until when, if that is earlier.
    fn end_quarrel(&mut self, now: Moment) -> Option<Moment> {
        let due = self.at.map_or(now, |at| (at + NOBODYS).max(now));
        let is_earlier = self.times >= QUARRELS && self.until.is_some_and(|until| due < until);
        is_earlier.then(|| *self.until.insert(due))
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
    /// Whether Gateways have Services.
    pub(super) makes_services: bool,
    /// The Service whose endpoints are the replicas.
    pub(super) replicas: Option<ObjectKey>,
    /// What is published of addresses, once that is known.
    pub(super) addresses: watch::Receiver<Option<Arc<[Address]>>>,
    /// The Pod of this replica, and the port at which all of them say what they serve.
    pub(super) pod: OwnPod,
    pub(super) admin_port: u16,
    /// The last replica takes the addresses away when it ends.
    pub(super) clear_at_end: bool,
    /// Where it is told that somebody else insists on another status.
    pub(super) recorder: Recorder,
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
                keeper.pending.clear();
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
            let told = known.borrow_and_update().statuses.clone();
            let Self { client, pod, leadership, controller, addresses, .. } = &keeper.own;
            let published = addresses.borrow().clone();
            let leaving = Leaving { client, pod, leadership, controller };
            let written = keeper.tracks.iter().filter(|((which, _), _)| *which == Which::Gateway);
            let written = written.filter_map(|((_, key), track)| {
                Some((key.clone(), track.written.as_ref()?.addresses()))
            });
            leave::take(leaving, (&told, written.collect()), published).await;
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
        if self.own.makes_services {
            note(Which::Service, services::touched(old, new, self.own.replicas.as_ref()));
        }
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
                    told.gateways.get(key).is_some_and(has_service)
                        || self.tracks.contains_key(id)
                        || astray::is_left(&new.snapshot, key, &self.own.controller)
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
        self.known = known;
        self.end_quarrels(&touched, Moment::now());
        touched.into_iter().for_each(|id| self.pending.insert(id));
    }

    /// Gateways that tell no address are nobody's, where we have one for them, and so are their sets: whoever insisted
    /// on another one has gone.
    fn end_quarrels(&mut self, touched: &BTreeSet<Id>, now: Moment) {
        let seen = &self.known.snapshot.gateways;
        let tells_none = |key| seen.get(key).is_some_and(|gateway| gateway.published.is_empty());
        let has_one =
            |wanted: Wanted| wanted.addresses().as_array().is_some_and(|all| !all.is_empty());
        let nobodys = touched.iter().filter(|id| {
            id.0 == Which::Gateway && tells_none(&id.1) && self.wanted(id).is_some_and(has_one)
        });
        let nobodys: BTreeSet<ObjectKey> = nobodys.map(|(_, key)| key.clone()).collect();
        if nobodys.is_empty() {
            return;
        }
        let Self { tracks, later, known, .. } = self;
        for (id, track) in tracks.iter_mut() {
            let is_nobodys = match id {
                (Which::Gateway, key) => nobodys.contains(key),
                (Which::Set, key) => {
                    let set = known.statuses.sets.get(key);
                    set.is_some_and(|set| nobodys.contains(&set.gateway))
                }
                _ => false,
            };
            if let Some(due) = is_nobodys.then(|| track.end_quarrel(now)).flatten() {
                later.insert(due, id.clone());
            }
        }
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
                let service = self.tracks.get(&(Which::Service, key.clone()));
                let lacks_service = service.is_some_and(|track| track.is_forbidden);
                Some(Wanted::Gateway(status, addresses, lacks_service))
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
            self.pending.release(now);
            // Something else happens before there is room again.
            if self.writes.len() >= AT_A_TIME {
                return None;
            }
            let Some(id) = self.pending.take_turn() else {
                let waits = [self.later.wait(now), self.pending.wait(now)];
                return waits.into_iter().flatten().min();
            };
            let track = self.tracks.entry(id.clone()).or_default();
            if track.busy {
                track.again = true;
                continue;
            }
            let Some(wanted) = self.wanted(&id) else {
                self.siblings.forget(&id);
                continue;
            };
            // It is among those that are looked at later.
            if self.tracks.get(&id).is_some_and(|track| track.waits(&wanted, now)) {
                continue;
            }
            if !self.may_tell(&id, &wanted, now) {
                continue;
            }
            if !self.pending.charge(&id, now) {
                continue;
            }
            if let Err(pause) = self.budget.take(now) {
                self.pending.give_back(&id, now);
                self.pending.insert(id);
                return Some(pause);
            }
            self.begin(id, wanted);
        }
    }

    /// Whether every replica serves what an object is to be told, or else it waits; what was written is put right.
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
            controller: controller.clone(),
        };
        self.writes.spawn(async move {
            let outcome = write(scribe, &id, &wanted, |_| true).await;
            (id, wanted, outcome.unwrap_or_else(|outcome| outcome))
        });
    }

    /// Says that an object is left to somebody else, and what it may be: as often as of what the API server refuses.
    fn give_way(&mut self, id: &Id, pause: Duration, now: Moment) {
        let Some(message) = self.refusals.contested(id, pause, now) else { return };
        let Some(uid) = self.uid(id) else { return };
        let (which, key) = id;
        let kind = which.kind();
        self.own.recorder.record(Event {
            object: Object {
                api_version: kind.api_version(),
                kind: kind.name(),
                key: key.clone(),
                uid,
            },
            kind: Kind::Warning,
            reason: "StatusContested",
            message,
            speaker: Speaker::Leader,
        });
    }

    /// Which object of its name it is; none of a Service, which goes by its Gateway.
    fn uid(&self, (which, key): &Id) -> Option<Arc<str>> {
        let seen = &self.known.snapshot;
        let meta = match which {
            Which::Class => seen.gateway_classes.get(key).map(|one| &one.meta),
            Which::Gateway => seen.gateways.get(key).map(|one| &one.meta),
            Which::Set => seen.listener_sets.get(key).map(|one| &one.meta),
            Which::Route(kind) => seen.http_routes.get(&(*kind, key.clone())).map(|one| &one.meta),
            Which::Stream(kind) => {
                seen.stream_routes.get(&(*kind, key.clone())).map(|one| &one.meta)
            }
            Which::Policy => seen.backend_tls.get(key).map(|one| &one.meta),
            Which::Service => None,
        };
        meta.map(|meta| meta.uid.clone())
    }

    /// Notes whether the API server refuses the Service of a Gateway after so many failures, which that is told then.
    fn note_rights(&mut self, id: &Id, outcome: &Outcome, failures: u32) {
        let is_forbidden = match outcome {
            Outcome::Silent(_) | Outcome::Conflict | Outcome::NotLeader => return,
            Outcome::Forbidden(_) => failures + 1 >= LASTING,
            _ => false,
        };
        let Some(track) = self.tracks.get_mut(id) else { return };
        if std::mem::replace(&mut track.is_forbidden, is_forbidden) != is_forbidden {
            self.pending.insert((Which::Gateway, id.1.clone()));
        }
    }

    /// Looks at what has failed again, after a pause that grows with its failures in a row.
    fn put_off(&mut self, id: Id, failures: u32, now: Moment) {
        let track = self.tracks.entry(id.clone()).or_default();
        track.failures = failures.saturating_add(1);
        let until = now + pause(track.failures);
        track.until = Some(until);
        self.later.insert(until, id);
    }

    /// Somebody wrote between our read and our write. Services have no pace of their own ([`Pending`]).
    fn crossed(&mut self, id: Id, failures: u32, now: Moment) {
        let again = crossed_again(failures, LASTING).filter(|_| id.0 == Which::Service);
        if let Some(failures) = again {
            self.tell_failure(&id, "somebody else writes it all the time", now);
            return self.put_off(id, failures, now);
        }
        self.tracks.entry(id.clone()).or_default().failures = u32::from(id.0 == Which::Service);
        self.pending.insert(id);
    }

    fn tell_failure(&mut self, (which, key): &Id, reason: &str, now: Moment) {
        if self.naming.is_due(now) {
            tracing::warn!(
                kind = which.kind().name(), namespace = %key.namespace, name = %key.name, reason,
                "cannot write this status, trying again; others do not wait for it"
            );
        }
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
        self.note_rights(&id, &outcome, failures);
        let uid = self.uid(&id);
        let track = self.tracks.entry(id.clone()).or_default();
        match outcome {
            Outcome::Written => {
                if let Some(pause) = track.wrote(wanted, uid, now) {
                    self.later.insert(now + pause, id.clone());
                    self.give_way(&id, pause, now);
                }
                if gone {
                    self.tracks.remove(&id);
                }
            }
            // It stands as it should, or a later version is on its way.
            Outcome::Gone => {
                self.pending.give_back(&id, now);
                if gone {
                    self.tracks.remove(&id);
                }
            }
            Outcome::Conflict => self.crossed(id, failures, now),
            Outcome::Refused(reason) => {
                self.refusals.tell(&id, &reason, now);
                if let Some(at) = track.look_again(REFUSED, now) {
                    self.later.insert(at, id);
                }
            }
            Outcome::Failed(reason) => {
                self.tell_failure(&id, &reason, now);
                self.put_off(id, failures, now);
            }
            Outcome::Forbidden(reason) => {
                if failures + 1 == LASTING {
                    self.refusals.tell(&id, &reason, now);
                }
                self.put_off(id, failures, now);
            }
            Outcome::Kept(reason) => {
                // Whatever is wanted of it meanwhile is done at once.
                if let Some(at) = track.look_again(KEPT, now) {
                    self.refusals.tell_kept(&id, &reason, now);
                    self.later.insert(at, id);
                }
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

#[cfg(test)]
mod tests {
    use super::{KEPT, LONGEST_PAUSE, Moment, NOBODYS, QUARREL, QUARRELS, REFUSED, Track, Wanted};
    use std::time::Duration;

    #[test]
    fn what_is_undone_again_and_again_is_a_quarrel_and_what_is_undone_once_in_a_while_is_none() {
        let (mut track, start) = (Track::default(), Moment::now());
        for times in 0..5 {
            let pause = track.wrote(Wanted::Policy(None), None, start);
            assert_eq!(track.times, times);
            assert_eq!(pause.is_some(), times >= QUARRELS, "{times}");
        }
        track.wrote(Wanted::Policy(None), None, start + QUARREL);
        assert_eq!(track.times, 0);
    }

    #[test]
    fn what_is_deleted_and_made_again_again_and_again_is_no_quarrel() {
        let (mut track, start) = (Track::default(), Moment::now());
        let mut wrote = |uid: &str| track.wrote(Wanted::Policy(None), Some(uid.into()), start);
        for times in 0..3 * QUARRELS {
            assert_eq!(wrote(&times.to_string()), None, "{times}");
        }
        assert!((0..QUARRELS).filter_map(|_| wrote("last")).count() == 0);
        assert!(wrote("last").is_some(), "that one is undone");
    }

    #[test]
    fn what_is_new_is_told_whoever_insists_on_what_was_before_and_what_failed_waits() {
        let (mut track, start) = (Track::default(), Moment::now());
        let (old, new) = (Wanted::Policy(None), Wanted::Route(None));
        for _ in 0..=QUARRELS {
            assert!(!track.waits(&old, start));
            track.wrote(old.clone(), None, start);
        }
        let later = start + Duration::from_secs(1);
        assert!(track.waits(&old, later) && !track.waits(&new, later));
        // That one is nobody's quarrel yet, so that it is put right when it is undone.
        assert_eq!(track.wrote(new.clone(), None, later), None);
        assert!(!track.waits(&new, later));
        let until = Some(start + LONGEST_PAUSE);
        let failed = Track { until, failures: 1, ..Track::default() };
        assert!(failed.waits(&new, later) && !failed.waits(&new, start + LONGEST_PAUSE));
    }

    #[test]
    fn what_was_refused_is_looked_at_again_once_however_often_it_is_tried_meanwhile() {
        let (mut track, start) = (Track::default(), Moment::now());
        assert_eq!(track.look_again(REFUSED, start), Some(start + REFUSED));
        assert_eq!(track.look_again(REFUSED, start + REFUSED / 2), None);
        assert_eq!(track.look_again(REFUSED, start + REFUSED), Some(start + REFUSED * 2));
        let sooner = start + REFUSED + KEPT;
        assert_eq!(track.look_again(KEPT, start + REFUSED), Some(sooner), "for another reason");
        assert_eq!(track.look_again(REFUSED, start + REFUSED), None);
    }

    #[test]
    fn who_was_given_way_is_written_over_soon_once_nobody_s_address_is_told() {
        let (mut track, start) = (Track::default(), Moment::now());
        for _ in 0..12 {
            track.wrote(Wanted::Policy(None), None, start);
        }
        let second = Duration::from_secs(1);
        assert_eq!(track.until, Some(start + LONGEST_PAUSE));
        assert_eq!(track.end_quarrel(start + second), Some(start + NOBODYS), "not every moment");
        assert_eq!(track.end_quarrel(start + second), None, "it is due anyway");
        track.until = Some(start + LONGEST_PAUSE);
        assert_eq!(track.end_quarrel(start + second * 60), Some(start + second * 60), "at once");
        // What waits for another reason goes on waiting.
        let mut failed = Track { until: Some(start + LONGEST_PAUSE), ..Track::default() };
        assert_eq!(failed.end_quarrel(start + second), None);
    }
}
