//! Hosts that are known only once a request is there: URLs with variables in their host. What was found is kept for a
//! while, as nginx's resolver does (`valid=30s`).

use model::Endpoints;
use std::collections::HashMap;
use std::net::SocketAddr;
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
}

impl Names {
    /// The addresses of a host, in the order of the answer; none if there is none, or no answer in time. Addresses of
    /// this machine never count: what a client can choose must not lead to the controller itself.
    pub async fn lookup(&self, host: &str, port: u16) -> Option<Arc<Endpoints>> {
        let key = (host.to_owned(), port);
        if let Some(found) = self.kept(&key) {
            return Some(found);
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = timeout(PATIENCE, tokio::net::lookup_host((bare, port))).await.ok()?.ok()?;
        let outside = |address: &SocketAddr| {
            let ip = address.ip().to_canonical();
            !(ip.is_loopback() || ip.is_unspecified())
        };
        let ready: Vec<SocketAddr> = found.filter(outside).collect();
        if ready.is_empty() {
            return None;
        }
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
