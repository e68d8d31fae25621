//! Hosts that are known only once a request is there: URLs with variables in their host. What was found is kept for a
//! while, as nginx's resolver does (`valid=30s`).

use model::{Endpoints, Outside};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long an address is believed.
const VALID: Duration = Duration::from_secs(30);
/// How long a lookup may take (nginx: resolver_timeout).
const PATIENCE: Duration = Duration::from_secs(5);
/// Hosts that are kept at most: clients may choose them.
const MOST: usize = 1000;
/// Of these, those that the Ingresses of one namespace asked for first.
const OF_ONE: usize = 250;

type Host = (String, u16);

/// What is known of a host.
#[derive(Debug)]
struct Entry {
    since: Instant,
    endpoints: Arc<Endpoints>,
    /// The namespace that asked first.
    whose: Arc<str>,
}

/// What is known of all hosts.
#[derive(Debug, Default)]
struct Known {
    hosts: HashMap<Host, Entry>,
    counts: HashMap<Arc<str>, usize>,
    /// Hosts that made room for others before their time.
    forgotten: u64,
}

/// The addresses of hosts, shared by all threads.
#[derive(Debug, Default)]
pub struct Names {
    known: Mutex<Known>,
    outside: Outside,
}

impl Names {
    /// Names that may lead there.
    pub fn new(outside: Outside) -> Self {
        Self { known: Mutex::default(), outside }
    }

    /// The addresses of a host, in the order of the answer; none if there is none, or no answer in time. An Ingress of
    /// `whose` namespace asks.
    pub async fn lookup(&self, host: &str, port: u16, whose: &Arc<str>) -> Option<Arc<Endpoints>> {
        let key = (host.to_owned(), port);
        if let Some(found) = self.kept(&key) {
            return Some(found);
        }
        let found = stream::addresses(host, port, &self.outside);
        let ready = timeout(PATIENCE, found).await.ok()?.ok()?;
        let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        known.keep(key, Entry { since, endpoints: endpoints.clone(), whose: whose.clone() });
        Some(endpoints)
    }

    /// How many hosts are kept, how many may be, and how many made room for others before their time.
    pub fn kept_hosts(&self) -> (u64, u64, u64) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        (known.hosts.len() as u64, MOST as u64, known.forgotten)
    }

    fn kept(&self, key: &(String, u16)) -> Option<Arc<Endpoints>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = known.hosts.get(key)?;
        (entry.since.elapsed() < VALID).then(|| entry.endpoints.clone())
    }
}

impl Known {
    /// Keeps an entry. Where there are too many, the oldest one goes: of its own namespace if that has its share, else
    /// of the one that has most.
    fn keep(&mut self, host: Host, entry: Entry) {
        self.forget(&host);
        if self.hosts.len() >= MOST {
            let old = self.hosts.iter().filter(|(_, entry)| entry.since.elapsed() >= VALID);
            let old: Vec<Host> = old.map(|(host, _)| host.clone()).collect();
            old.iter().for_each(|host| self.forget(host));
        }
        let own = self.counts.get(&entry.whose).copied().unwrap_or(0);
        let gives = if own >= OF_ONE {
            Some(entry.whose.clone())
        } else if self.hosts.len() >= MOST {
            self.counts.iter().max_by_key(|(_, count)| **count).map(|(whose, _)| whose.clone())
        } else {
            None
        };
        if let Some(whose) = gives {
            let theirs = self.hosts.iter().filter(|(_, entry)| entry.whose == whose);
            let oldest = theirs.min_by_key(|(_, entry)| entry.since);
            if let Some(oldest) = oldest.map(|(host, _)| host.clone()) {
                self.forgotten += 1;
                self.forget(&oldest);
            }
        }
        *self.counts.entry(entry.whose.clone()).or_default() += 1;
        self.hosts.insert(host, entry);
    }

    fn forget(&mut self, host: &Host) {
        let Some(entry) = self.hosts.remove(host) else { return };
        if let Some(count) = self.counts.get_mut(&entry.whose) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&entry.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Known, MOST, OF_ONE};
    use tokio::time::Instant;

    fn keep(known: &mut Known, host: &str, whose: &str) {
        let entry =
            Entry { since: Instant::now(), endpoints: Default::default(), whose: whose.into() };
        known.keep((host.to_owned(), 80), entry);
    }

    #[test]
    fn who_asks_for_many_hosts_loses_its_own() {
        let mut known = Known::default();
        let has = |known: &Known, host: &str| known.hosts.contains_key(&(host.to_owned(), 80));
        keep(&mut known, "first.of-b", "b");
        for number in 0..3 * OF_ONE {
            keep(&mut known, &format!("{number}.of-a"), "a");
        }
        assert!(has(&known, "first.of-b") && !has(&known, "0.of-a"));
        assert_eq!((known.counts["a"], known.counts["b"]), (OF_ONE, 1));
        assert_eq!(known.forgotten, 2 * OF_ONE as u64);
        for namespace in 0..20 {
            for number in 0..OF_ONE / 2 {
                keep(&mut known, &format!("{number}.of-{namespace}"), &namespace.to_string());
            }
        }
        assert!(has(&known, "first.of-b"), "who has little loses nothing to who has much");
        assert_eq!(known.hosts.len(), MOST);
        assert_eq!(known.counts.values().sum::<usize>(), MOST);
    }
}
