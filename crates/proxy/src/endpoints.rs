//! How it goes at each endpoint, and why requests of a route failed last: failures are always noted, all else is
//! counted only while somebody looks.

use crate::brief::brief;
use model::{Location, PathKind, ServerName};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use upstream::{Addresses, Try};

/// Addresses that are kept, of each thread and of the failures of all.
pub(crate) const MOST: usize = 10_000;
/// Upper bounds in seconds of the time that an endpoint takes; longer ones are beyond.
const BOUNDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];
/// For how long it is counted after somebody looked.
const LOOKED: Duration = Duration::from_secs(60);
/// A failure that comes so soon after another one of the same address is not noted anew.
const SOON: Duration = Duration::from_secs(1);

/// How it goes at endpoints, in all threads.
#[derive(Debug)]
pub(crate) struct Watched {
    began: Instant,
    /// Until when it is counted, in milliseconds since `began`; 0 is never.
    until: AtomicU64,
    counts: Mutex<Vec<Arc<Counts>>>,
    failures: Mutex<Failures>,
    /// The last failure of each route, by host, path and how that is meant.
    routes: Mutex<HashMap<Route, (SystemTime, String)>>,
}

type Route = (ServerName, PathKind, String);

/// What one thread counts.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<HashMap<SocketAddr, Tally>>);

#[derive(Clone, Debug, Default)]
struct Tally {
    tries: u64,
    errors: u64,
    times: [u64; BOUNDS.len() + 1],
}

#[derive(Debug, Default)]
struct Failures {
    each: HashMap<SocketAddr, Failure>,
    /// When those of endpoints that are gone were taken out for want of room.
    swept: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Failure {
    at: SystemTime,
    noted: Instant,
    why: String,
}

/// How it goes at endpoints.
#[derive(Clone, Debug, Default)]
pub struct AtEndpoints {
    /// Upper bounds of the times, in seconds.
    pub bounds: &'static [f64],
    /// Each of them that something is known of.
    pub each: Vec<AtEndpoint>,
}

/// How it goes at one of them.
#[derive(Clone, Debug)]
pub struct AtEndpoint {
    /// Its address.
    pub address: SocketAddr,
    /// Tries, while somebody looked.
    pub tries: u64,
    /// Those that failed, or were answered with 500 and more.
    pub errors: u64,
    /// How many took no longer than each bound, and all of them.
    pub up_to: Vec<u64>,
    /// The last failure, and why.
    pub failed: Option<(SystemTime, String)>,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            until: AtomicU64::new(0),
            counts: Mutex::default(),
            failures: Mutex::default(),
            routes: Mutex::default(),
        }
    }
}

impl Watched {
    /// Somebody looks: from now on it is counted for a while.
    pub(crate) fn look(&self) {
        let until = self.began.elapsed() + LOOKED;
        self.until.store(until.as_millis() as u64, Ordering::Relaxed);
    }

    /// Whether somebody looked of late.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.until.load(Ordering::Relaxed) > self.began.elapsed().as_millis() as u64
    }

    /// Where a thread counts.
    pub(crate) fn join(&self) -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        self.counts.lock().push(counts.clone());
        counts
    }

    /// A try failed. It may be one of very many.
    #[cold]
    pub(crate) fn failed(&self, address: SocketAddr, why: &dyn fmt::Display, known: &Addresses) {
        let mut failures = self.failures.lock();
        let now = Instant::now();
        let is_new = match failures.each.get(&address) {
            Some(last) if now.duration_since(last.noted) < SOON => return,
            Some(_) => false,
            None => true,
        };
        if is_new && failures.each.len() >= MOST {
            if failures.swept.is_some_and(|last| now.duration_since(last) < SOON) {
                return;
            }
            failures.swept = Some(now);
            failures.each.retain(|address, _| known.has(address));
            if failures.each.len() >= MOST {
                return;
            }
        }
        let failure = Failure { at: SystemTime::now(), noted: now, why: brief(why) };
        failures.each.insert(address, failure);
    }

    /// A request failed, of which the error log tells: no more of them are noted than told.
    #[cold]
    pub(crate) fn route_failed(
        &self,
        host: &ServerName,
        location: &Location,
        why: &dyn fmt::Display,
    ) {
        let key = (host.clone(), location.kind, location.path.clone());
        let mut routes = self.routes.lock();
        if routes.len() >= MOST && !routes.contains_key(&key) {
            routes.clear();
        }
        routes.insert(key, (SystemTime::now(), brief(why)));
    }

    /// Why a request of a route failed last.
    pub(crate) fn of_route(
        &self,
        host: &str,
        kind: PathKind,
        path: &str,
    ) -> Option<(SystemTime, String)> {
        let key = (ServerName::new(host), kind, path.to_owned());
        self.routes.lock().get(&key).cloned()
    }

    /// What is known of the endpoints that there are.
    pub(crate) fn of(&self, known: &Addresses) -> AtEndpoints {
        let mut all: HashMap<SocketAddr, (Tally, Option<Failure>)> = HashMap::new();
        for counts in self.counts.lock().iter() {
            let mut tallies = counts.0.lock();
            tallies.retain(|address, _| known.has(address));
            for (address, more) in tallies.iter() {
                all.entry(*address).or_default().0.add(more);
            }
        }
        let mut failures = self.failures.lock();
        failures.each.retain(|address, _| known.has(address));
        for (address, failure) in &failures.each {
            all.entry(*address).or_default().1 = Some(failure.clone());
        }
        let each = all.into_iter().map(|(address, (tally, failure))| AtEndpoint {
            address,
            tries: tally.tries,
            errors: tally.errors,
            up_to: tally.up_to(),
            failed: failure.map(|failure| (failure.at, failure.why)),
        });
        AtEndpoints { bounds: &BOUNDS, each: each.collect() }
    }
}

impl Counts {
    /// A request is over: what its tries came to; answers of 500 and more are failures of `watched`, too.
    #[cold]
    pub(crate) fn note(&self, tries: &[Rc<Try>], watched: &Watched, known: &Addresses) {
        for attempt in tries {
            self.attempt(attempt);
            if let Some(status) = attempt.status.get().filter(|status| *status >= 500)
                && attempt.header.get().is_some()
            {
                watched.failed(attempt.address, &format!("it answered {status}"), known);
            }
        }
    }

    fn attempt(&self, attempt: &Try) {
        let mut tallies = self.0.lock();
        if tallies.len() >= MOST && !tallies.contains_key(&attempt.address) {
            return;
        }
        let tally = tallies.entry(attempt.address).or_default();
        tally.tries += 1;
        tally.errors += u64::from(attempt.status.get().is_none_or(|status| status >= 500));
        // As long as a client waits for it: what comes after the head may be as slow as the client is.
        let took = attempt.header.get().or(attempt.ended.get());
        let took = took.unwrap_or_else(|| wire::since(attempt.since)).as_secs_f64();
        let at = BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(BOUNDS.len());
        tally.times[at] += 1;
    }

    /// Nobody looks any more.
    pub(crate) fn forget(&self) {
        *self.0.lock() = HashMap::new();
    }
}

impl Tally {
    fn add(&mut self, more: &Self) {
        self.tries += more.tries;
        self.errors += more.errors;
        self.times.iter_mut().zip(more.times).for_each(|(own, more)| *own += more);
    }

    fn up_to(&self) -> Vec<u64> {
        let mut sum = 0;
        let each = self.times.iter().map(|count| {
            sum += count;
            sum
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Endpoints, UpstreamId};
    use upstream::Group;

    /// Known as long as the group lives.
    fn known(addresses: &Arc<Addresses>, all: impl Iterator<Item = u32>) -> Group {
        let group = Group::new(UpstreamId::new("one"), Arc::default());
        group.tell(addresses);
        let ready = all.map(address).collect();
        group.replace(Arc::new(Endpoints { ready, draining: Vec::new() }));
        group
    }

    fn address(number: u32) -> SocketAddr {
        SocketAddr::from((number.to_be_bytes(), 80))
    }

    #[test]
    fn tries_are_counted_by_address_and_failures_say_why() {
        let watched = Watched::default();
        let threads = [watched.join(), watched.join()];
        for (thread, status, took) in [(0, 200, 3), (1, 200, 30), (1, 503, 300)] {
            let attempt = Try::new(address(1));
            attempt.status.set(Some(status));
            attempt.header.set(Some(Duration::from_millis(took)));
            threads[thread].attempt(&attempt);
        }
        let addresses = Arc::default();
        let group = known(&addresses, 1..=2);
        watched.failed(address(2), &"connecting: refused", &addresses);
        watched.failed(address(2), &"too soon after it", &addresses);
        let all = watched.of(&addresses);
        let of = |number| all.each.iter().find(|one| one.address == address(number)).unwrap();
        assert_eq!((of(1).tries, of(1).errors, of(1).up_to[5], of(1).up_to[14]), (3, 1, 2, 3));
        assert_eq!(of(2).failed.as_ref().unwrap().1, "connecting: refused");
        drop(group);
        assert_eq!(watched.of(&addresses).each.len(), 0);
        let _group = known(&addresses, 1..=2);
        assert_eq!(watched.of(&addresses).each.len(), 0, "who is gone is forgotten");
    }

    #[test]
    fn addresses_that_failed_are_bounded_by_those_that_there_are() {
        let (watched, most) = (Watched::default(), MOST as u32);
        let addresses = Arc::default();
        let group = known(&addresses, 0..most + 10);
        for number in 0..most + 10 {
            watched.failed(address(number), &"gone", &addresses);
        }
        assert_eq!(watched.of(&addresses).each.len(), MOST);
        drop(group);
        let _group = known(&addresses, [3, 1 << 20].into_iter());
        // So many come that they are gone through once in a while, not for each.
        watched.failures.lock().swept = Some(Instant::now() + SOON);
        watched.failed(address(1 << 20), &"too soon", &addresses);
        assert_eq!(watched.failures.lock().each.len(), MOST);
        let long_ago = Instant::now().checked_sub(SOON);
        watched.failures.lock().swept = long_ago;
        watched.failed(address(1 << 20), &"gone", &addresses);
        assert_eq!(watched.failures.lock().each.len(), 2);
    }

    #[test]
    fn it_is_looked_at_for_a_while_after_somebody_looked() {
        let watched = Watched::default();
        assert!(!watched.is_looked_at());
        watched.look();
        assert!(watched.is_looked_at());
    }
}
