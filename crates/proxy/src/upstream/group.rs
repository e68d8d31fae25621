//! An upstream while it serves: its endpoints now, and whose turn it is. It outlives generations.

use arc_swap::ArcSwap;
use balance::RoundRobin;
use model::{Endpoints, UpstreamId};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often the name of an ExternalName Service is looked up.
const LOOKUP: Duration = Duration::from_secs(5);

/// The endpoints of one upstream, replaced as a whole when they change.
#[derive(Debug)]
pub struct Group {
    /// The upstream's name.
    pub id: UpstreamId,
    endpoints: Arc<ArcSwap<Endpoints>>,
    turns: RoundRobin,
    resolving: Mutex<Option<Resolving>>,
}

/// A name that is being followed.
#[derive(Debug)]
struct Resolving {
    name: (String, u16),
    task: JoinHandle<()>,
}

impl Drop for Resolving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Group {
    /// A group with these endpoints.
    pub fn new(id: UpstreamId, endpoints: Arc<Endpoints>) -> Self {
        let endpoints = Arc::new(ArcSwap::new(endpoints));
        Self { id, endpoints, turns: RoundRobin::default(), resolving: Mutex::new(None) }
    }

    /// Replaces the endpoints.
    pub fn replace(&self, endpoints: Arc<Endpoints>) {
        self.endpoints.store(endpoints);
    }

    /// Follows a name from now on (host and port of an ExternalName Service), or none.
    pub fn resolve(&self, name: Option<(String, u16)>) {
        let mut resolving = self.resolving.lock().unwrap_or_else(PoisonError::into_inner);
        if resolving.as_ref().map(|resolving| &resolving.name) == name.as_ref() {
            return;
        }
        *resolving = name.map(|name| Resolving {
            task: tokio::spawn(follow(self.endpoints.clone(), name.clone())),
            name,
        });
    }

    /// The endpoint for the next request, if there is any.
    pub fn pick(&self) -> Option<SocketAddr> {
        self.turns.next(self.endpoints.load().usable())
    }

    /// The endpoints now.
    pub fn endpoints(&self) -> Arc<Endpoints> {
        self.endpoints.load_full()
    }

    /// Whether no endpoint can take a request.
    pub fn is_empty(&self) -> bool {
        self.endpoints.load().usable().is_empty()
    }
}

/// Looks a name up now and then. A lookup that fails leaves the endpoints as they were.
async fn follow(endpoints: Arc<ArcSwap<Endpoints>>, (host, port): (String, u16)) {
    let mut ticks = tokio::time::interval(LOOKUP);
    loop {
        ticks.tick().await;
        match tokio::net::lookup_host((host.as_str(), port)).await {
            Ok(found) => {
                let mut ready: Vec<SocketAddr> =
                    found.filter(|address| !address.ip().is_loopback()).collect();
                ready.sort_unstable();
                endpoints.store(Arc::new(Endpoints { ready, draining: Vec::new() }));
            }
            Err(error) => {
                tracing::warn!(host, %error, "the name of an ExternalName Service cannot be resolved")
            }
        }
    }
}
