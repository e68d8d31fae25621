//! Which Ingress is to be written next, and which is better left alone; no network.

use super::address::{Address, sorted};
use super::denial::Denial;
use super::later::{Later, pause};
use super::write::Outcome;
use crate::Known;
use crate::clock::Moment;
use imbl::ordmap::DiffItem;
use imbl::ordset;
use objects::{Ingress, ObjectKey};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Others may put their addresses over ours that often before we give way.
const PATIENCE: u32 = 3;
/// How long we give way: doubled with every further time, up to `LONGEST`.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);
/// After that long without a quarrel it is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(1200);
/// A write that the watch has not told about for that long is doubted.
const DOUBT: Duration = Duration::from_secs(30);

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// Into which Ingress.
    pub(super) key: ObjectKey,
    /// The version of it that this replaces.
    pub(super) version: Arc<str>,
    pub(super) addresses: Arc<[Address]>,
}

/// Somebody else keeps putting other addresses over ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quarrel {
    pub(super) key: ObjectKey,
    pub(super) theirs: Vec<Address>,
    /// How long we give way.
    pub(super) pause: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be written, if it differs.
    Open,
    /// The API server has been asked.
    Sent,
    /// It was written, in place of the version noted.
    Written(Moment),
    /// The version noted is not the latest one, or was refused: another one has to come first.
    Waiting,
    /// Others are given way until then.
    Left(Moment),
    /// The API server had an error for it, or forbade it: tried again then.
    Failed(Moment),
}

#[derive(Debug)]
struct Track {
    addresses: Arc<[Address]>,
    version: Arc<str>,
    state: State,
    /// How often others have put their addresses over ours, and when the last time was.
    quarrels: u32,
    latest: Moment,
    /// How often in a row the API server had an error for it, or forbade it.
    failures: u32,
}

/// What there is to write.
#[derive(Debug, Default)]
pub(super) struct Plan {
    known: Arc<Known>,
    wanted: Option<Arc<[Address]>>,
    /// Ingresses to look at.
    pending: BTreeSet<ObjectKey>,
    /// Those that failed.
    later: Later<ObjectKey>,
    /// Those that wait together, since as many were forbidden.
    denial: Denial,
    /// Whose turn was the last one.
    last: Arc<str>,
    tracks: HashMap<ObjectKey, Track>,
    quarrels: Vec<Quarrel>,
}

impl Plan {
    /// Takes what is served now; costs time by what differs.
    pub(super) fn follow(&mut self, known: Arc<Known>) {
        let before = std::mem::replace(&mut self.known, known);
        let known = Arc::clone(&self.known);
        for item in before.snapshot.ingresses.diff(&known.snapshot.ingresses) {
            match item {
                DiffItem::Add(key, _) | DiffItem::Update { new: (key, _), .. } => {
                    self.pending.insert(key.clone());
                }
                DiffItem::Remove(key, _) => self.forget(key),
            }
        }
        for item in before.served.diff(&known.served) {
            match item {
                ordset::DiffItem::Add(key) => drop(self.pending.insert(key.clone())),
                ordset::DiffItem::Remove(key) => self.forget(key),
            }
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.tracks.remove(key);
        self.denial.forget(key);
    }

    /// Takes the addresses to write.
    pub(super) fn want(&mut self, addresses: Vec<Address>) {
        if self.wanted.as_deref() != Some(&addresses) {
            self.wanted = Some(addresses.into());
            self.pending.extend(self.known.served.iter().cloned());
        }
    }

    /// What is to be written.
    pub(super) fn wanted(&self) -> Option<&Arc<[Address]>> {
        self.wanted.as_ref()
    }

    /// What is served.
    pub(super) fn known(&self) -> &Arc<Known> {
        &self.known
    }

    /// Looks at everything anew: what was refused may be taken, and what others have is ours again after its time.
    pub(super) fn look_again(&mut self, now: Moment) {
        for (key, track) in &mut self.tracks {
            let seen = self.known.snapshot.ingresses.get(key);
            let is_seen = seen.is_none_or(|seen| seen.meta.resource_version != track.version);
            match track.state {
                State::Waiting => track.state = State::Open,
                State::Written(at) if !is_seen && at + DOUBT <= now => track.state = State::Open,
                State::Open
                | State::Sent
                | State::Written(_)
                | State::Left(_)
                | State::Failed(_) => {}
            }
            if track.latest + FORGOTTEN <= now {
                track.quarrels = 0;
            }
        }
        self.pending.extend(self.known.served.iter().cloned());
    }

    /// The next thing to write.
    pub(super) fn next(&mut self, now: Moment) -> Option<Write> {
        let wanted = self.wanted.clone()?;
        while let Some(key) = self.later.take(now) {
            self.pending.insert(key);
        }
        loop {
            let (key, waited) = match self.take_turn() {
                Some(key) => (key, false),
                None => (self.denial.release(now)?, true),
            };
            let Some(ingress) = self.served(&key) else {
                self.forget(&key);
                continue;
            };
            let theirs = sorted(ingress.addresses.clone());
            let stands = *theirs == *wanted;
            // What is on its way takes nobody's turn among those that wait.
            if stands || self.is_on_its_way(&ingress, &wanted) || !waited && self.holds(&key) {
                continue;
            }
            if !self.is_due(&ingress, theirs, &wanted, now) {
                continue;
            }
            self.denial.tries(&key, now);
            let version = ingress.meta.resource_version.clone();
            let track = self.tracks.entry(key.clone()).or_insert_with(|| Track {
                addresses: wanted.clone(),
                version: version.clone(),
                state: State::Open,
                quarrels: 0,
                latest: now,
                failures: 0,
            });
            track.addresses = wanted.clone();
            track.version = version.clone();
            track.state = State::Sent;
            return Some(Write { key, version, addresses: wanted });
        }
    }

    /// Whether it was sent, or was written and the watch has not told of it yet.
    fn is_on_its_way(&self, ingress: &Ingress, wanted: &Arc<[Address]>) -> bool {
        self.tracks.get(&ingress.meta.key).is_some_and(|track| match track.state {
            State::Sent => true,
            State::Written(_) => {
                track.addresses == *wanted && track.version == ingress.meta.resource_version
            }
            State::Open | State::Waiting | State::Left(_) | State::Failed(_) => false,
        })
    }

    /// Whether others like it were forbidden, so that it waits with them.
    fn holds(&mut self, key: &ObjectKey) -> bool {
        let failures = self.tracks.get(key).map_or(0, |track| track.failures);
        self.denial.holds(key, failures == 0)
    }

    /// Something to look at, of the namespace that follows the last one: who always has something keeps nobody else
    /// waiting.
    fn take_turn(&mut self) -> Option<ObjectKey> {
        // No text stands between `a` and `a\0`.
        let following = ObjectKey::new(format!("{}\0", self.last), "");
        let key = self.pending.range(following..).next().or_else(|| self.pending.first())?.clone();
        self.pending.remove(&key);
        self.last = key.namespace.clone();
        Some(key)
    }

    /// Whether there is nothing to look at now.
    pub(super) fn is_idle(&self, now: Moment) -> bool {
        let nothing = self.pending.is_empty() && self.wait(now).is_none_or(|wait| !wait.is_zero());
        nothing || self.wanted.is_none()
    }

    /// How long until something that failed is tried again.
    pub(super) fn wait(&self, now: Moment) -> Option<Duration> {
        [self.later.wait(now), self.denial.wait(now)].into_iter().flatten().min()
    }

    /// Takes what became of a write; whether so many were forbidden that they wait together from now on.
    pub(super) fn done(&mut self, key: ObjectKey, outcome: &Outcome, now: Moment) -> bool {
        let is_news = match outcome {
            Outcome::Forbidden(_) => self.denial.forbidden(&key, now),
            Outcome::Written => {
                self.pending.append(&mut self.denial.written(&key, now));
                false
            }
            Outcome::Conflict | Outcome::Gone => {
                self.denial.nothing_learnt(&key, now);
                false
            }
            _ => {
                self.denial.lets_others(&key);
                false
            }
        };
        self.note(key, outcome, now);
        is_news
    }

    fn note(&mut self, key: ObjectKey, outcome: &Outcome, now: Moment) {
        let Some(track) = self.tracks.get_mut(&key) else { return };
        let failures = std::mem::take(&mut track.failures);
        track.state = match outcome {
            Outcome::Written => State::Written(now),
            Outcome::Conflict | Outcome::Refused(_) | Outcome::Kept(_) => State::Waiting,
            Outcome::Silent(_) | Outcome::NotLeader => State::Open,
            Outcome::Failed(_) | Outcome::Forbidden(_) => {
                track.failures = failures.saturating_add(1);
                let until = now + pause(track.failures);
                self.later.insert(until, key.clone());
                State::Failed(until)
            }
            Outcome::Gone => return drop(self.tracks.remove(&key)),
        };
        // It may have changed in the meantime, and so may the addresses.
        self.pending.insert(key);
    }

    /// Those who have begun to be given way since the last time.
    pub(super) fn take_quarrels(&mut self) -> Vec<Quarrel> {
        std::mem::take(&mut self.quarrels)
    }

    fn served(&self, key: &ObjectKey) -> Option<Arc<Ingress>> {
        let is_served = self.known.served.contains(key);
        self.known.snapshot.ingresses.get(key).filter(|_| is_served).cloned()
    }

    /// Whether an Ingress that has other addresses is to be written.
    fn is_due(
        &mut self,
        ingress: &Ingress,
        theirs: Vec<Address>,
        wanted: &Arc<[Address]>,
        now: Moment,
    ) -> bool {
        let version = &ingress.meta.resource_version;
        let Some(track) = self.tracks.get_mut(&ingress.meta.key) else { return true };
        if track.addresses != *wanted {
            track.quarrels = 0;
            return true;
        }
        match track.state {
            State::Open => true,
            State::Failed(until) => now >= until,
            State::Sent => false,
            State::Waiting => track.version != *version,
            State::Written(_) => {
                track.quarrels += 1;
                track.latest = now;
                if track.quarrels < PATIENCE {
                    return true;
                }
                let doubled = SHORTEST * 2_u32.saturating_pow((track.quarrels - PATIENCE).min(8));
                let pause = doubled.min(LONGEST);
                track.state = State::Left(now + pause);
                self.quarrels.push(Quarrel { key: ingress.meta.key.clone(), theirs, pause });
                false
            }
            // Nobody's addresses are no quarrel, but not every moment either.
            State::Left(until) => {
                now >= until || (theirs.is_empty() && now >= track.latest + SHORTEST / 12)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Ingress `n/a`, served, in a version and with an address.
    fn known(version: u32, address: &str) -> Arc<Known> {
        let ingress = match address {
            "" => "[]".to_owned(),
            address => format!("[{{ip: {address}}}]"),
        };
        let text = format!(
            "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: a, namespace: demo, \
             resourceVersion: '{version}'}}, status: {{loadBalancer: {{ingress: {ingress}}}}}}}"
        );
        let snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        let served = std::iter::once(key()).collect();
        Arc::new(Known { snapshot, served, ..Known::default() })
    }

    fn key() -> ObjectKey {
        ObjectKey::new("demo", "a")
    }

    fn address(text: &str) -> Vec<Address> {
        vec![(None, Some(text.to_owned()))]
    }

    /// A plan that has written 192.0.2.1 over version 1.
    fn written(now: Moment) -> Plan {
        let mut plan = Plan::default();
        plan.follow(known(1, ""));
        plan.want(address("192.0.2.1"));
        assert_eq!(plan.next(now).map(|write| write.version), Some("1".into()));
        plan.done(key(), &Outcome::Written, now);
        plan
    }

    #[test]
    fn one_write_for_one_difference() {
        let now = Moment::now();
        let mut plan = written(now);
        assert_eq!(plan.next(now), None, "the watch has not told of it yet");
        plan.look_again(now);
        assert_eq!(plan.next(now), None);
        plan.follow(known(2, "192.0.2.1"));
        plan.follow(known(3, "192.0.2.1"));
        plan.look_again(now + DOUBT);
        assert_eq!(plan.next(now), None);
        plan.want(address("192.0.2.2"));
        assert_eq!(plan.next(now).map(|write| write.version), Some("3".into()));
        plan.want(address("192.0.2.3"));
        assert_eq!(plan.next(now), None, "one at a time");
        plan.done(key(), &Outcome::Written, now);
        plan.follow(known(4, "192.0.2.2"));
        let write = plan.next(now).expect("the latest address");
        assert_eq!(*write.addresses, *address("192.0.2.3"));
    }

    #[test]
    fn a_conflict_waits_for_the_next_version_and_a_failure_for_nothing() {
        let now = Moment::now();
        let mut plan = Plan::default();
        plan.follow(known(1, ""));
        plan.want(address("192.0.2.1"));
        for outcome in [Outcome::Conflict, Outcome::Refused("422".to_owned())] {
            plan.next(now).expect("it differs");
            plan.done(key(), &outcome, now);
            assert_eq!(plan.next(now), None);
            plan.look_again(now);
        }
        plan.next(now).expect("looked at again");
        plan.done(key(), &Outcome::Conflict, now);
        plan.follow(known(2, "203.0.113.9"));
        assert_eq!(plan.next(now).map(|write| write.version), Some("2".into()));
        plan.done(key(), &Outcome::Silent("no answer".to_owned()), now);
        plan.next(now).expect("it is tried again");
    }

    #[test]
    fn one_that_the_api_server_has_an_error_for_waits_alone_and_longer_each_time() {
        let now = Moment::now();
        let failed = Outcome::Failed("500: request is too large".to_owned());
        let mut plan = Plan::default();
        plan.follow(known(1, ""));
        plan.want(address("192.0.2.1"));
        plan.next(now).expect("it differs");
        plan.done(key(), &failed, now);
        // A new version of it is no reason to hurry: its owner makes as many as he likes.
        plan.follow(known(2, ""));
        assert_eq!(plan.next(now), None);
        assert!(plan.is_idle(now));
        let then = now + plan.wait(now).expect("its time comes");
        assert!(!plan.is_idle(then));
        assert_eq!(plan.next(then).map(|write| write.version), Some("2".into()));
        assert_eq!(plan.wait(then), None, "it is under way");
        plan.done(key(), &failed, then);
        assert_eq!(plan.wait(then), Some(now.until(then) * 2));
        let later = then + now.until(then) * 2;
        plan.next(later).expect("its time has come");
        plan.done(key(), &Outcome::Written, later);
        assert_eq!(plan.wait(later), None);
    }

    #[test]
    fn who_insists_on_other_addresses_is_given_way_and_who_removes_them_is_not() {
        let now = Moment::now();
        let mut plan = written(now);
        let mut version = 2;
        for _ in 1..PATIENCE {
            plan.follow(known(version, "203.0.113.9"));
            plan.next(now).expect("a mistake may happen");
            plan.done(key(), &Outcome::Written, now);
            version += 2;
        }
        plan.follow(known(version, "203.0.113.9"));
        assert_eq!(plan.next(now), None);
        let quarrels = plan.take_quarrels();
        assert_eq!((quarrels.len(), quarrels[0].pause), (1, SHORTEST));
        plan.follow(known(version + 1, "203.0.113.10"));
        plan.look_again(now + SHORTEST / 2);
        assert_eq!(plan.next(now + SHORTEST / 2), None);
        plan.follow(known(version + 2, ""));
        plan.next(now + SHORTEST / 2).expect("an Ingress without addresses is nobody's");
        plan.done(key(), &Outcome::Written, now + SHORTEST / 2);
        plan.follow(known(version + 4, "203.0.113.9"));
        assert_eq!(plan.next(now + SHORTEST / 2), None);
        assert_eq!(plan.take_quarrels()[0].pause, SHORTEST * 2);
        plan.look_again(now + SHORTEST * 3);
        plan.next(now + SHORTEST * 3).expect("its time is over");
        plan.done(key(), &Outcome::Written, now);
        plan.want(address("192.0.2.2"));
        plan.next(now).expect("a new address is no quarrel");
    }

    /// Served Ingresses of these namespaces and names, without an address.
    fn several(version: u32, all: &[(&str, usize)]) -> Arc<Known> {
        let keys = all.iter().flat_map(|(namespace, number)| {
            (0..*number).map(|one| ObjectKey::new(*namespace, format!("i{one:04}")))
        });
        let served: imbl::OrdSet<ObjectKey> = keys.collect();
        let documents = served.iter().map(|key| {
            format!(
                "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: {}, namespace: {}, \
                 resourceVersion: '{version}'}}}}\n---\n",
                key.name, key.namespace
            )
        });
        let text: String = documents.collect();
        let snapshot = objects::snapshot_of([(Path::new("in.yaml"), text.as_str())]);
        Arc::new(Known { snapshot, served, ..Known::default() })
    }

    #[test]
    fn a_namespace_that_always_has_something_to_write_keeps_no_other_one_waiting() {
        let now = Moment::now();
        let mut plan = Plan::default();
        plan.want(address("192.0.2.1"));
        plan.follow(several(1, &[("a", 500), ("a-b", 2), ("b", 3), ("z", 1)]));
        let wrote = |plan: &mut Plan, number: usize| {
            let keys = (0..number).filter_map(|_| plan.next(now)).map(|write| write.key);
            keys.map(|key| key.namespace.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(wrote(&mut plan, 6), "a a-b b z a a-b");
        // All of its Ingresses are there anew, and somebody else's appear.
        plan.follow(several(2, &[("a", 500), ("a-b", 2), ("b", 4), ("x", 1), ("z", 1)]));
        assert_eq!(wrote(&mut plan, 7), "x b b a b a a");
        assert_eq!(plan.pending.len(), 495, "nothing is left out, and nobody else waits");
        assert_eq!(wrote(&mut plan, 1000).split(' ').count(), 495);
        assert!(plan.is_idle(now));
    }

    #[test]
    fn where_the_right_is_missing_few_are_tried_however_many_there_are_and_all_once_it_is_there() {
        let (mut plan, start) = (Plan::default(), Moment::now());
        plan.want(address("192.0.2.1"));
        plan.follow(several(1, &[("a", 400), ("b", 200), ("c", 1)]));
        let forbidden = Outcome::Forbidden("403".to_owned());
        let (mut tried, mut told, mut now) = (0, 0, start);
        // As the loop does it: what may be tried is, and the time passes until something may.
        while start.until(now) < Duration::from_secs(600) {
            while let Some(write) = plan.next(now) {
                tried += 1;
                told += usize::from(plan.done(write.key, &forbidden, now));
            }
            assert!(plan.is_idle(now), "it does not turn in circles");
            plan.look_again(now);
            now = now + plan.wait(now).expect("they wait").max(Duration::from_millis(1));
        }
        assert!((20..100).contains(&tried), "{tried} in ten minutes");
        assert_eq!(told, 1);
        let mut written = 0;
        for _ in 0..601 {
            now = now + plan.wait(now).unwrap_or_default();
            let Some(write) = plan.next(now) else { break };
            plan.done(write.key, &Outcome::Written, now);
            written += 1;
        }
        assert_eq!(written, 601);
    }

    #[test]
    fn what_a_policy_forbids_in_one_namespace_keeps_no_other_one_waiting() {
        let (mut plan, now) = (Plan::default(), Moment::now());
        plan.want(address("192.0.2.1"));
        plan.follow(several(1, &[("a", 1000)]));
        while let Some(write) = plan.next(now) {
            plan.done(write.key, &Outcome::Forbidden("403".to_owned()), now);
        }
        plan.follow(several(1, &[("a", 1000), ("b", 1)]));
        let write = plan.next(now).expect("nothing was forbidden there");
        assert_eq!(&*write.key.namespace, "b");
    }

    /// What is written of these within a time where those are forbidden, how many are tried, and how often it was told
    /// that they wait.
    fn run(
        plan: &mut Plan,
        (start, time): (Moment, Duration),
        is_forbidden: impl Fn(&ObjectKey) -> bool,
    ) -> (BTreeSet<ObjectKey>, usize, usize) {
        let (mut written, mut tried, mut told, mut now) = (BTreeSet::new(), 0, 0, start);
        while start.until(now) < time {
            while let Some(write) = plan.next(now) {
                tried += 1;
                assert!(tried < 100_000, "it turns in circles");
                let outcome = if is_forbidden(&write.key) {
                    Outcome::Forbidden("403".to_owned())
                } else {
                    written.insert(write.key.clone());
                    Outcome::Written
                };
                told += usize::from(plan.done(write.key, &outcome, now));
            }
            assert!(plan.is_idle(now), "it does not turn in circles");
            let Some(wait) = plan.wait(now) else { break };
            now = now + wait.max(Duration::from_millis(1));
        }
        (written, tried, told)
    }

    #[test]
    fn who_may_be_written_behind_many_of_his_namespace_who_may_not_has_his_turn() {
        let (mut plan, start) = (Plan::default(), Moment::now());
        plan.want(address("192.0.2.1"));
        plan.follow(several(1, &[("a", 27)]));
        let allowed = [25, 26].map(|one| ObjectKey::new("a", format!("i{one:04}")));
        let time = Duration::from_secs(26 * 30);
        let (written, tried, _) = run(&mut plan, (start, time), |key| !allowed.contains(key));
        assert_eq!(written, BTreeSet::from(allowed));
        assert!(tried < 60, "{tried}");
    }

    #[test]
    fn what_is_written_elsewhere_ends_no_pause_and_all_are_written_soon_once_the_right_is_there() {
        let (mut plan, start) = (Plan::default(), Moment::now());
        plan.want(address("192.0.2.1"));
        let small = (0..30).map(|one| format!("n{one}")).collect::<Vec<_>>();
        let mut all = vec![("a", 400), ("b", 200)];
        all.extend(small.iter().map(|name| (name.as_str(), 3)));
        plan.follow(several(1, &all));
        let (mut tried, mut told, mut now) = (0, 0, start);
        for writes in 1..100 {
            // One more in a namespace that has the right.
            all.retain(|(name, _)| *name != "free");
            all.push(("free", writes));
            plan.follow(several(1, &all));
            let second = (now, Duration::from_secs(1));
            let (_, one, news) = run(&mut plan, second, |key| &*key.namespace != "free");
            (tried, told, now) = (tried + one, told + news, now + Duration::from_secs(1));
        }
        assert!(tried < 400, "{tried}");
        assert_eq!(told, 1);
        let (written, ..) = run(&mut plan, (now, Duration::from_secs(31)), |_| false);
        assert_eq!(written.len(), 400 + 200 + 30 * 3);
    }

    #[test]
    fn who_has_the_right_again_is_written_soon_though_a_policy_forbids_another_namespace_for_good()
    {
        let (mut plan, start) = (Plan::default(), Moment::now());
        plan.want(address("192.0.2.1"));
        plan.follow(several(1, &[("a", 25), ("b", 25), ("c", 3)]));
        let minute = Duration::from_secs(60);
        let (written, ..) = run(&mut plan, (start, minute), |_| true);
        assert!(written.is_empty());
        let time = (start + minute, minute + Duration::from_secs(5));
        let (written, tried, _) = run(&mut plan, time, |key| &*key.namespace == "a");
        assert_eq!(written.len(), 25 + 3, "{written:?}");
        assert!(tried < 28 + 5, "{tried}");
    }

    #[test]
    fn what_is_not_served_is_not_written() {
        let now = Moment::now();
        let mut plan = written(now);
        let gone = Known { served: imbl::OrdSet::new(), ..Known::clone(&known(2, "")) };
        plan.follow(Arc::new(gone));
        plan.look_again(now);
        assert_eq!(plan.next(now), None);
        plan.follow(known(3, ""));
        plan.next(now).expect("it is served again");
    }
}
