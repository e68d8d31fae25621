//! The loop: news of the watches in, Snapshots out; everything that is ready at once goes into one Snapshot.

use super::ClusterOptions;
use super::contents::Contents;
use super::watches::{Watched, Watches};
use crate::Error;
use crate::client::reason;
use crate::feed::Publisher;
use crate::watch::{Change, Guarded, News, WatchId, backoff};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client};
use objects::{Kind, Object, ObjectKey, Snapshot};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a Snapshot is held back for the data of a Secret that was just referred to: without them it would say
/// that a certificate is missing which is on its way. It seldom takes more than milliseconds, and when the API server
/// is too slow for that there are no other news either.
const HOLD: Duration = Duration::from_secs(1);

/// News that are taken into one Snapshot at most, so that an endless stream of them cannot keep it back.
const BATCH: usize = 16 * 1024;

/// What a watch has said so far.
enum State {
    Waiting {
        trouble: Option<String>,
    },
    Listed,
    /// Listing is forbidden, and that is no reason to wait.
    Forbidden,
}

/// The loop behind a cluster's Feed.
pub(super) struct Follower {
    /// Whether a person waits for one look.
    once: bool,
    client: Client,
    contents: Contents,
    watched: Vec<Watched>,
    states: Vec<State>,
    news: mpsc::Receiver<(WatchId, News)>,
    /// Data of Secrets that are being asked for.
    fetches: JoinSet<(ObjectKey, Option<Object>)>,
    fetching: HashSet<ObjectKey>,
    /// Until when the Snapshot is held back for them.
    hold: Option<Instant>,
    /// When the first of the news came that no Snapshot has yet.
    since: Option<Instant>,
}

impl Follower {
    pub(super) fn start(
        options: &ClusterOptions,
        streaming: bool,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (sender, wanted) = watch::channel(None);
        let Watches { watched, news } = Watches::start(options, streaming, &wanted, tasks);
        let has_selector = options.namespace_selector.is_some();
        let secrets_of = options.secrets_of.clone();
        Self {
            client: options.client.clone(),
            once: options.once,
            contents: Contents::new(&options.pinned, secrets_of, has_selector, sender),
            states: watched.iter().map(|_| State::Waiting { trouble: None }).collect(),
            watched,
            news,
            fetches: JoinSet::new(),
            fetching: HashSet::new(),
            hold: None,
            since: None,
        }
    }

    /// The first Snapshot, when every kind was listed.
    pub(super) async fn first(&mut self, patience: Instant) -> Result<Snapshot, Error> {
        while !self.is_complete(|_| true) || !self.fetching.is_empty() {
            match timeout_at(patience, self.turn()).await {
                Ok(turn) => turn?,
                Err(_) => return Err(self.incomplete(self.missing())),
            }
        }
        Ok(self.contents.publish().unwrap_or_default())
    }

    /// Publishes every change from then on.
    pub(super) async fn run(mut self, publisher: Publisher) {
        loop {
            let turned = match self.hold {
                Some(until) => timeout_at(until, self.turn()).await.unwrap_or(Ok(())),
                None => self.turn().await,
            };
            if let Err(error) = turned {
                // Refusals end a start, but not what runs: the watches keep trying.
                tracing::warn!(%error, "the last Snapshot stays");
            }
            if self.hold.is_some_and(|until| Instant::now() < until) {
                continue;
            }
            self.hold = None;
            let since = self.since.take().unwrap_or_else(Instant::now);
            if let Some(snapshot) = self.contents.publish() {
                publisher.publish(snapshot, since.into_std());
            }
        }
    }

    /// Waits for something to happen, and takes all that is ready then.
    async fn turn(&mut self) -> Result<(), Error> {
        tokio::select! {
            Some((watch, news)) = self.news.recv() => self.take(watch, news)?,
            Some(fetched) = self.fetches.join_next() => self.fetched(fetched),
            else => std::future::pending::<()>().await,
        }
        self.since.get_or_insert_with(Instant::now);
        for _ in 1..BATCH {
            let Ok((watch, news)) = self.news.try_recv() else { break };
            self.take(watch, news)?;
        }
        while let Some(fetched) = self.fetches.try_join_next() {
            self.fetched(fetched);
        }
        if self.is_complete(|kind| {
            matches!(
                kind,
                Kind::Ingress
                    | Kind::ConfigMap
                    | Kind::Namespace
                    | Kind::Gateway
                    | Kind::ListenerSet
            )
        }) {
            self.contents.know_wanted();
        }
        for secret in self.contents.settle() {
            self.fetch(secret);
        }
        if self.fetching.is_empty() {
            self.hold = None;
        }
        Ok(())
    }

    fn take(&mut self, watch: WatchId, news: News) -> Result<(), Error> {
        let Watched { kind, optional } = self.watched[watch];
        match news {
            News::Changed(change) => self.contents.apply(change),
            News::Listed(changes) => {
                self.states[watch] = State::Listed;
                if kind == Kind::IngressClass {
                    self.contents.set_classes_known(true);
                }
                for change in changes {
                    self.contents.apply(change);
                }
            }
            News::Trouble { code, reason } => {
                let State::Waiting { trouble } = &mut self.states[watch] else { return Ok(()) };
                match code {
                    Some(403) if optional => {
                        self.states[watch] = State::Forbidden;
                        if kind == Kind::IngressClass {
                            self.contents.set_classes_known(false);
                        }
                    }
                    Some(400 | 422) => {
                        return Err(Error::Refused { what: kind.name().to_owned(), reason });
                    }
                    Some(401) => return Err(Error::Unauthorized { reason }),
                    // Rights do not come by waiting for them.
                    Some(403) if self.once => {
                        return Err(self.incomplete(format!("{kind} ({reason})")));
                    }
                    _ => *trouble = Some(reason),
                }
            }
        }
        Ok(())
    }

    /// Whether all watches of some kinds have said what there is.
    fn is_complete(&self, of: impl Fn(Kind) -> bool) -> bool {
        let mut watches = self.watched.iter().zip(&self.states);
        watches.all(|(watched, state)| !of(watched.kind) || !matches!(state, State::Waiting { .. }))
    }

    fn incomplete(&self, missing: String) -> Error {
        Error::Incomplete { missing, rights: if self.once { "list" } else { "list and watch" } }
    }

    /// What was not listed, and why.
    fn missing(&self) -> String {
        let mut missing = Vec::new();
        for (watched, state) in self.watched.iter().zip(&self.states) {
            if let State::Waiting { trouble } = state {
                let why = trouble.as_deref();
                // Secrets wait for the others; that alone is no news.
                if watched.kind != Kind::Secret || why.is_some() || missing.is_empty() {
                    let why = why.unwrap_or("no answer in time");
                    missing.push(format!("{} ({why})", watched.kind));
                }
            }
        }
        missing.dedup();
        if missing.is_empty() {
            missing.push("the data of Secrets (no answer in time)".to_owned());
        }
        missing.join(", ")
    }

    fn fetch(&mut self, key: ObjectKey) {
        if self.fetching.insert(key.clone()) {
            self.hold.get_or_insert_with(|| Instant::now() + HOLD);
            self.fetches.spawn(fetch(self.client.clone(), key));
        }
    }

    fn fetched(&mut self, fetched: Result<(ObjectKey, Option<Object>), tokio::task::JoinError>) {
        let (key, object) =
            fetched.expect("asking for a Secret neither panics nor is it cancelled");
        self.fetching.remove(&key);
        if let Some(object) = object {
            self.contents.apply(Change::Put(object));
            if self.contents.lacks_data(&key) {
                // The watch told of a later version in the meantime.
                self.fetch(key);
            }
        }
    }
}

/// Asks for one Secret until there is an answer. By a list, since that is what the watches may do anyway: reading a
/// Secret by its name is another permission.
async fn fetch(client: Client, key: ObjectKey) -> (ObjectKey, Option<Object>) {
    let secrets: Api<Guarded<Secret>> = Api::namespaced(client, &key.namespace);
    let named = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let mut told = false;
    for pause in backoff() {
        match secrets.list(&named).await {
            Ok(list) => {
                let found = list.items.into_iter().next();
                return (key, found.and_then(|found| found.into_object().ok()));
            }
            Err(error) if !std::mem::replace(&mut told, true) => {
                let (namespace, name, reason) = (&key.namespace, &key.name, reason(&error));
                tracing::warn!(%namespace, %name, reason, "cannot read a Secret; trying again");
            }
            Err(_) => {}
        }
        drop(timeout(pause, std::future::pending::<()>()).await);
    }
    (key, None)
}
