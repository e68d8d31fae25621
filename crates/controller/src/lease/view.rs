//! What one contender knows of the Lease, and what follows from it; no clock and no network.

use crate::clock::Moment;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use std::collections::VecDeque;
use std::time::Duration;

/// Own writes that are remembered: one whose answer never came may still have counted.
const REMEMBERED: usize = 8;

/// What one contender knows of the Lease.
#[derive(Debug)]
pub(super) struct View {
    name: String,
    identity: String,
    ttl: Duration,
    /// The Lease as it was last seen, and when it was first seen like that.
    seen: Option<(Lease, Moment)>,
    /// It was there and is gone. Who held it may still lead.
    gone: bool,
    /// The times in our own writes, in microseconds, which tell them from those of a namesake.
    own: VecDeque<i64>,
}

impl View {
    pub(super) fn new(name: String, identity: String, ttl: Duration) -> Self {
        Self { name, identity, ttl, seen: None, gone: false, own: VecDeque::new() }
    }

    /// Takes what the API server has shown at this moment.
    pub(super) fn see(&mut self, lease: Option<Lease>, now: Moment) {
        self.gone = lease.is_none();
        let Some(lease) = lease else { return };
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        if self.seen.as_ref().is_none_or(|(known, _)| version(known) != version(&lease)) {
            self.seen = Some((lease, now));
        }
    }

    /// Who holds it; nobody after a release.
    pub(super) fn holder(&self) -> Option<&str> {
        let holder = self.spec()?.holder_identity.as_deref();
        holder.filter(|holder| !holder.is_empty())
    }

    /// Whether it is ours, or nobody's: because it was given back, or because its holder has been silent for as long
    /// as it said it might be.
    pub(super) fn is_free(&self, now: Moment) -> bool {
        let Some((_, since)) = &self.seen else { return true };
        let Some(holder) = self.holder() else { return true };
        (holder == self.identity && self.is_own_write())
            || since.until(now) >= self.promised().max(Duration::from_secs(1))
    }

    /// Whether its holder has missed a renewal: all of us renew when a quarter of the time is over.
    pub(super) fn is_late(&self, now: Moment) -> bool {
        self.seen.as_ref().is_some_and(|(_, since)| since.until(now) >= self.promised() / 3)
    }

    /// What to write to hold it from now on.
    pub(super) fn claim(&mut self, stamp: Timestamp) -> Lease {
        self.remember(stamp);
        let held = self.holder() == Some(&self.identity);
        let old = self.spec().cloned().unwrap_or_default();
        let transitions = old.lease_transitions.unwrap_or_default();
        let begun = old.acquire_time.filter(|_| held).unwrap_or(MicroTime(stamp));
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(
                i32::try_from(whole_seconds(self.ttl)).unwrap_or(i32::MAX),
            ),
            acquire_time: Some(begun),
            renew_time: Some(MicroTime(stamp)),
            lease_transitions: Some(match (held, &self.seen) {
                (false, Some(_)) => transitions.saturating_add(1),
                (true, _) | (false, None) => transitions,
            }),
            ..old
        };
        self.with(spec)
    }

    /// What to write to give it back; nothing, if it is not ours.
    pub(super) fn release(&mut self, stamp: Timestamp) -> Option<Lease> {
        if self.gone || self.holder() != Some(&self.identity) || !self.is_own_write() {
            return None;
        }
        let spec = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            renew_time: Some(MicroTime(stamp)),
            ..self.spec().cloned().unwrap_or_default()
        };
        Some(self.with(spec))
    }

    /// Whether the holder of our name is this very process: or the one before it in this Pod, at start.
    fn is_own_write(&self) -> bool {
        let written = self.spec().and_then(|spec| spec.renew_time.as_ref());
        let stamp = written.map(|time| time.0.as_microsecond());
        self.own.is_empty() || stamp.is_some_and(|stamp| self.own.contains(&stamp))
    }

    fn remember(&mut self, stamp: Timestamp) {
        if self.own.len() == REMEMBERED {
            self.own.pop_front();
        }
        self.own.push_back(stamp.as_microsecond());
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        self.seen.as_ref().and_then(|(lease, _)| lease.spec.as_ref())
    }

    /// How long the holder may be silent.
    fn promised(&self) -> Duration {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        seconds.map_or(self.ttl, Duration::from_secs)
    }

    /// The Lease with another content; its version says which one it replaces.
    fn with(&self, spec: LeaseSpec) -> Lease {
        let metadata = match &self.seen {
            Some((lease, _)) if !self.gone => lease.metadata.clone(),
            _ => ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
        };
        Lease { metadata, spec: Some(spec) }
    }
}

/// The Lease counts in seconds: rounded up, so that nobody takes it too early.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);
    const HOUR: i64 = 3600;

    fn view(identity: &str) -> View {
        View::new("leader".to_owned(), identity.to_owned(), TTL)
    }

    /// What the API server makes of a write.
    fn stored(mut lease: Lease, version: u32) -> Option<Lease> {
        lease.metadata.resource_version = Some(version.to_string());
        Some(lease)
    }

    fn wall(offset: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + offset).expect("a time")
    }

    #[test]
    fn whoever_comes_first_holds_it_and_the_others_wait() {
        let start = Moment::now();
        let (mut a, mut b) = (view("a"), view("b"));
        b.see(None, start);
        assert!(b.is_free(start));
        let lease = stored(a.claim(wall(0)), 1);
        a.see(lease.clone(), start);
        b.see(lease, start);
        assert!(a.is_free(start) && !b.is_free(start + TTL / 2));
        assert_eq!(b.holder(), Some("a"));
    }

    #[test]
    fn a_renewal_starts_the_wait_anew_whatever_its_wall_clock_says() {
        let start = Moment::now();
        let (mut a, mut b) = (view("a"), view("b"));
        let mut version = 0;
        for (round, clock) in [0, HOUR, -HOUR, -HOUR, 50 * HOUR].into_iter().enumerate() {
            version += 1;
            let lease = stored(a.claim(wall(clock)), version);
            a.see(lease.clone(), start);
            let now = start + TTL * u32::try_from(round).expect("small") * 9 / 10;
            b.see(lease, now);
            assert!(!b.is_free(now + TTL * 9 / 10), "round {round}");
        }
        // Silence counts from when the last change was seen, though its clock is hours ahead.
        let last = start + TTL * 4 * 9 / 10;
        assert!(!b.is_free(last + TTL * 9 / 10) && b.is_free(last + TTL));
        let taken = b.claim(wall(0)).spec.expect("a spec");
        assert_eq!(
            (taken.holder_identity.as_deref(), taken.lease_transitions),
            (Some("b"), Some(1))
        );
    }

    #[test]
    fn what_is_given_back_is_free_at_once() {
        let start = Moment::now();
        let (mut a, mut b) = (view("a"), view("b"));
        let lease = stored(a.claim(wall(0)), 1);
        a.see(lease, start);
        let back = a.release(wall(1)).expect("it is ours");
        b.see(stored(back, 2), start);
        assert!(b.is_free(start) && b.holder().is_none());
        assert!(b.release(wall(2)).is_none(), "nobody gives back what others hold");
    }

    #[test]
    fn the_same_pod_again_goes_on_and_a_namesake_does_not() {
        let start = Moment::now();
        let (mut before, mut again, mut other) = (view("a"), view("a"), view("a"));
        let lease = stored(before.claim(wall(0)), 1);
        again.see(lease.clone(), start);
        assert!(again.is_free(start), "a container that was restarted has its Pod's Lease");
        let renewed = stored(again.claim(wall(5)), 2);
        again.see(renewed, start);
        // Two processes of one name, both alive: each takes the other's writes for a stranger's.
        other.see(lease, start);
        other.claim(wall(6));
        other.see(stored(again.claim(wall(7)), 3), start);
        assert!(!other.is_free(start) && other.is_free(start + TTL));
    }

    #[test]
    fn a_lease_that_is_deleted_stays_its_holders_for_its_time() {
        let start = Moment::now();
        let (mut a, mut b) = (view("a"), view("b"));
        b.see(stored(a.claim(wall(0)), 1), start);
        b.see(None, start + TTL / 3);
        assert!(!b.is_free(start + TTL / 2) && b.is_free(start + TTL));
        assert!(b.claim(wall(9)).metadata.resource_version.is_none(), "it has to be created");
    }

    #[test]
    fn a_holder_that_promised_more_is_given_more() {
        let start = Moment::now();
        let mut a = View::new("leader".to_owned(), "a".to_owned(), TTL * 2);
        let mut b = view("b");
        b.see(stored(a.claim(wall(0)), 1), start);
        assert!(!b.is_free(start + TTL * 3 / 2) && b.is_free(start + TTL * 2));
        assert!(!b.is_late(start + TTL * 3 / 5) && b.is_late(start + TTL * 2 / 3));
    }
}
