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

type Known = HashMap<(String, u16), (Instant, Arc<Endpoints>)>;

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

    /// The addresses of a host, in the order of the answer; none if there is none, or no answer in time.
    pub async fn lookup(&self, host: &str, port: u16) -> Option<Arc<Endpoints>> {
        let key = (host.to_owned(), port);
        if let Some(found) = self.kept(&key) {
            return Some(found);
        }
        let found = stream::addresses(host, port, &self.outside);
        let ready = timeout(PATIENCE, found).await.ok()?.ok()?;
        let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            let now = Instant::now();
            known.retain(|_, (since, _)| now - *since < VALID);
        }
        if known.len() < MOST {
            known.insert(key, (Instant::now(), endpoints.clone()));
        }
        Some(endpoints)
    }

    fn kept(&self, key: &(String, u16)) -> Option<Arc<Endpoints>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, endpoints) = known.get(key)?;
        (since.elapsed() < VALID).then(|| endpoints.clone())
    }
}
