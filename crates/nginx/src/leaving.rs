//! Workers that leave: they finish what they have by the nginx.conf that they were started with, and who connected
//! before may still make a request. What they need of a Configuration that runs no more is kept until they are gone.

use crate::conf::Written;
use crate::process::Worker;
use model::{Backend, Changes, Configuration, Location, Server};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What workers that leave serve, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Leaving(Vec<Older>);

#[derive(Debug)]
struct Older {
    /// Their process ids.
    workers: Vec<i32>,
    configuration: Configuration,
    files: BTreeSet<String>,
    remembered: BTreeSet<String>,
}

impl Leaving {
    /// Those of `workers` that have not been told to leave yet are about to be; they serve this. What was said of the
    /// same ones before, for a reload that did not come, is old.
    pub(crate) fn add(
        &mut self,
        workers: &[Worker],
        configuration: Configuration,
        written: &Written,
    ) {
        let workers = staying(workers);
        self.stay(&workers);
        let files = written.files.keys().cloned().collect();
        let remembered = written.remembered.clone();
        self.0.push(Older { workers, configuration, files, remembered });
    }

    /// These workers stay, for now.
    pub(crate) fn stay(&mut self, workers: &[i32]) {
        self.0.retain(|older| older.workers != workers);
    }

    /// Forgets what no worker serves any more; whether there was such a thing.
    pub(crate) fn forget(&mut self, workers: &[Worker]) -> bool {
        let before = self.0.len();
        let lives = |pid: &i32| workers.iter().any(|worker| worker.pid == *pid);
        self.0.retain(|older| older.workers.iter().any(lives));
        self.0.len() < before
    }

    /// Whether nobody leaves.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them may read a file.
    pub(crate) fn reads(&self, file: &str) -> bool {
        self.0.iter().any(|older| older.files.contains(file))
    }

    /// Whether one of them remembers what authenticators said in a folder.
    pub(crate) fn remembers(&self, folder: &str) -> bool {
        self.0.iter().any(|older| older.remembered.contains(folder))
    }

    /// A Configuration, and of the older ones whatever Lua is asked for by their workers alone: upstreams and routes.
    pub(crate) fn and(&self, next: &Configuration) -> Configuration {
        let mut all = next.clone();
        for Older { configuration: older, .. } in self.0.iter().rev() {
            let Changes { servers, upstreams, .. } = Changes::between(older, next);
            for id in upstreams {
                if let (None, Some(upstream)) = (all.upstreams.get(&id), older.upstreams.get(&id)) {
                    all.upstreams.insert(id, upstream.clone());
                }
            }
            for name in servers {
                if let Some(server) = older.servers.get(&name) {
                    let both = with_routes(all.servers.get(&name), server);
                    all.servers.insert(name, Arc::new(both));
                }
            }
        }
        all
    }
}

/// The process ids of those that have not been told to leave.
pub(crate) fn staying(workers: &[Worker]) -> Vec<i32> {
    let staying = workers.iter().filter(|worker| !worker.is_leaving);
    staying.map(|worker| worker.pid).collect()
}

/// A server, and the locations of an older one that lead where none of its own does. Certificates are those of now.
fn with_routes(now: Option<&Arc<Server>>, older: &Server) -> Server {
    let gone = || Server { certificate: None, locations: Vec::new(), ..older.clone() };
    let mut server = now.map_or_else(gone, |now| Server::clone(now));
    for location in &older.locations {
        let is_same = |now: &Arc<Location>| {
            (now.kind, &now.path, &now.backend)
                == (location.kind, &location.path, &location.backend)
        };
        let leads = matches!(location.backend, Backend::Upstream(_));
        if leads && !server.locations.iter().any(is_same) {
            server.locations.push(location.clone());
        }
    }
    server
}
