//! Makes nginx have what a Configuration says: sends what differs from what it has already, again and again until it is
//! taken or refused for good.

use super::backends::{self, Backends, Gone};
use super::client::{PushError, send};
use super::general::General;
use super::servers::{self, Posted, Servers};
use backon::{BackoffBuilder, ExponentialBuilder};
use http::Method;
use model::{Certificate, Configuration, Endpoints, UpstreamId};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

const BACKENDS: &str = "/configuration/backends";
const SERVERS: &str = "/configuration/servers";
const GENERAL: &str = "/configuration/general";

/// Upstreams or certificates of one request at most: a worker reads it in one go, and answers nobody meanwhile.
const PIECE: usize = 200;
/// The first pause before another attempt, the longest, and how long all of them take together.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(15);

/// Tells nginx what changes without a reload. Knows what nginx has, so that only differences are sent, and notices when
/// it is mistaken.
#[derive(Debug)]
pub struct Pusher {
    socket: PathBuf,
    fallback: Arc<Certificate>,
    has: Mutex<Option<Has>>,
}

/// What nginx has.
#[derive(Debug, Default)]
struct Has {
    generation: u64,
    backends: Backends,
    servers: Servers,
    general: Option<General>,
}

/// What nginx is to have.
struct Wanted {
    backends: Backends,
    servers: Servers,
    general: General,
}

/// What is there and no longer wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Surplus {
    Stays,
    Goes,
}

impl Pusher {
    /// Speaks to the Lua that listens on `socket`. `fallback` is the certificate where a Configuration has no default
    /// one.
    pub fn new(socket: PathBuf, fallback: Arc<Certificate>) -> Self {
        Self { socket, fallback, has: Mutex::new(None) }
    }

    /// Nginx was started anew: it has nothing.
    pub async fn forget(&self) {
        *self.has.lock().await = None;
    }

    /// Nginx gets what `next` adds and changes; what it has besides stays. Before a reload: the old workers still need
    /// what the new ones will not. `resolved` has the endpoints of upstreams that stand for a name.
    pub async fn extend(
        &self,
        next: &Configuration,
        resolved: &BTreeMap<UpstreamId, Arc<Endpoints>>,
        general: General,
    ) -> Result<u64, PushError> {
        self.push(next, resolved, general, Surplus::Stays).await
    }

    /// Nginx gets what `next` says and has nothing else. After a reload, or if there is none.
    pub async fn settle(
        &self,
        next: &Configuration,
        resolved: &BTreeMap<UpstreamId, Arc<Endpoints>>,
        general: General,
    ) -> Result<u64, PushError> {
        self.push(next, resolved, general, Surplus::Goes).await
    }

    async fn push(
        &self,
        next: &Configuration,
        resolved: &BTreeMap<UpstreamId, Arc<Endpoints>>,
        general: General,
        surplus: Surplus,
    ) -> Result<u64, PushError> {
        let wanted = Wanted {
            backends: backends::of(next, resolved),
            servers: servers::of(next, &self.fallback),
            general,
        };
        let mut has = self.has.lock().await;
        let has = &mut *has;
        let pauses = ExponentialBuilder::new()
            .with_min_delay(PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_factor(1.5)
            .without_max_times()
            .with_total_delay(Some(PATIENCE))
            .with_jitter();
        let mut pauses = pauses.build();
        loop {
            let error = match self.attempt(has, &wanted, surplus).await {
                Ok(generation) => return Ok(generation),
                Err(error) => error,
            };
            if error.is_final() {
                return Err(error);
            }
            // Whatever went wrong, what nginx has is no longer known for sure.
            *has = None;
            let Some(pause) = pauses.next() else { return Err(error) };
            if !error.is_conflict() {
                tracing::debug!(%error, ?pause, "a push to nginx is tried again");
            }
            #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        has: &mut Option<Has>,
        wanted: &Wanted,
        surplus: Surplus,
    ) -> Result<u64, PushError> {
        let mut known = match has.take() {
            Some(known) => known,
            None => self.begin(wanted).await?,
        };
        let outcome = self.differences(&mut known, wanted, surplus).await;
        let generation = known.generation;
        // A refusal changes nothing, so what came before it is still known.
        *has = Some(known);
        outcome.map(|()| generation)
    }

    /// A fresh nginx has nothing; one that has something unknown gets all at once.
    async fn begin(&self, wanted: &Wanted) -> Result<Has, PushError> {
        let generation = send(&self.socket, Method::GET, GENERAL, None, Vec::new()).await?;
        let mut has = Has { generation, ..Has::default() };
        if generation == 0 {
            return Ok(has);
        }
        let certificates = wanted.servers.certificates.iter();
        let posted = Posted {
            certificates: certificates
                .map(|(uid, it)| (uid.as_str(), servers::in_pem(it)))
                .collect(),
            servers: hosts(&wanted.servers),
        };
        self.tell(&mut has, Method::PUT, SERVERS, &posted).await?;
        has.servers = wanted.servers.clone();
        let all: Vec<_> = wanted.backends.values().collect();
        self.tell(&mut has, Method::POST, BACKENDS, &all).await?;
        has.backends = wanted.backends.clone();
        Ok(has)
    }

    async fn differences(
        &self,
        has: &mut Has,
        wanted: &Wanted,
        surplus: Surplus,
    ) -> Result<(), PushError> {
        if has.general.as_ref() != Some(&wanted.general) {
            self.tell(has, Method::POST, GENERAL, &wanted.general).await?;
            has.general = Some(wanted.general.clone());
        }
        self.add_servers(has, &wanted.servers).await?;
        self.add_backends(has, &wanted.backends).await?;
        if surplus == Surplus::Goes {
            self.remove_backends(has, &wanted.backends).await?;
            self.remove_servers(has, &wanted.servers).await?;
        }
        Ok(())
    }

    /// Certificates before the hosts that have them.
    async fn add_servers(&self, has: &mut Has, wanted: &Servers) -> Result<(), PushError> {
        let new: Vec<_> = wanted
            .certificates
            .iter()
            .filter(|(uid, _)| !has.servers.certificates.contains_key(*uid))
            .collect();
        for piece in new.chunks(PIECE) {
            let certificates =
                piece.iter().map(|(uid, it)| (uid.as_str(), servers::in_pem(it))).collect();
            let posted = Posted { certificates, ..Posted::default() };
            self.tell(has, Method::POST, SERVERS, &posted).await?;
            let taken = piece.iter().map(|(uid, it)| ((*uid).clone(), (*it).clone()));
            has.servers.certificates.extend(taken);
        }
        let changed: Vec<_> = wanted
            .hosts
            .iter()
            .filter(|(host, uid)| has.servers.hosts.get(*host) != Some(uid))
            .collect();
        for piece in changed.chunks(PIECE) {
            let servers = piece.iter().map(|(host, uid)| (host.as_str(), uid.as_str())).collect();
            let posted = Posted { servers, ..Posted::default() };
            self.tell(has, Method::POST, SERVERS, &posted).await?;
            let taken = piece.iter().map(|(host, uid)| ((*host).clone(), (*uid).clone()));
            has.servers.hosts.extend(taken);
        }
        Ok(())
    }

    async fn add_backends(&self, has: &mut Has, wanted: &Backends) -> Result<(), PushError> {
        let changed: Vec<_> =
            wanted.iter().filter(|(id, backend)| has.backends.get(*id) != Some(backend)).collect();
        for piece in changed.chunks(PIECE) {
            let list: Vec<_> = piece.iter().map(|(_, backend)| backend).collect();
            self.tell(has, Method::PATCH, BACKENDS, &list).await?;
            let taken = piece.iter().map(|(id, backend)| ((*id).clone(), (*backend).clone()));
            has.backends.extend(taken);
        }
        Ok(())
    }

    async fn remove_backends(&self, has: &mut Has, wanted: &Backends) -> Result<(), PushError> {
        let mut gone: Vec<UpstreamId> = has.backends.keys().cloned().collect();
        gone.retain(|id| !wanted.contains_key(id));
        if gone.is_empty() {
            return Ok(());
        }
        let list: Vec<_> = gone.iter().map(Gone::new).collect();
        self.tell(has, Method::PATCH, BACKENDS, &list).await?;
        has.backends.retain(|id, _| wanted.contains_key(id));
        Ok(())
    }

    async fn remove_servers(&self, has: &mut Has, wanted: &Servers) -> Result<(), PushError> {
        let Servers { mut hosts, mut certificates } = has.servers.clone();
        hosts.retain(|host, _| !wanted.hosts.contains_key(host));
        certificates.retain(|uid, _| !wanted.certificates.contains_key(uid));
        if hosts.is_empty() && certificates.is_empty() {
            return Ok(());
        }
        let posted = Posted {
            certificates: certificates.keys().map(|uid| (uid.as_str(), String::new())).collect(),
            servers: hosts.keys().map(|host| (host.as_str(), "-1")).collect(),
        };
        self.tell(has, Method::POST, SERVERS, &posted).await?;
        has.servers.hosts.retain(|host, _| wanted.hosts.contains_key(host));
        has.servers.certificates.retain(|uid, _| wanted.certificates.contains_key(uid));
        Ok(())
    }

    async fn tell(
        &self,
        has: &mut Has,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<(), PushError> {
        let body = serde_json::to_vec(body).expect("texts, numbers and lists are JSON");
        has.generation = send(&self.socket, method, path, Some(has.generation), body).await?;
        Ok(())
    }
}

fn hosts(servers: &Servers) -> BTreeMap<&str, &str> {
    servers.hosts.iter().map(|(host, uid)| (host.as_str(), uid.as_str())).collect()
}
