//! Where the page and its API have what they say, and how they are asked.

use crate::clock::seconds;
use crate::endpoints::{self, ENDPOINTS};
use crate::explained::Explain;
use crate::history::{History, Round};
use crate::now::{Identity, Now};
use crate::pace::Pace;
use crate::query::{Query, Refusal};
use crate::replicas::{self, AskReplicas, Beside};
use crate::sample::{Sample, Samples, Sessions, Taken};
use crate::served::Kept;
use crate::{events, page};
use controller::Known;
use exposition::Source;
use model::PathKind;
use parking_lot::Mutex;
use runtime::admin::{Admin, Page};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, watch};

/// Answers that are made at a time: each may look at ten thousand routes.
const AT_A_TIME: usize = 2;
/// How long what was worked out for people is kept after the last of them asked.
const FORGET: Duration = Duration::from_secs(60);

/// The page and its API.
pub struct Console {
    identity: Arc<Identity>,
    engine: Box<dyn Source>,
    follows: OnceLock<Follows>,
    leads: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    explain: OnceLock<Arc<dyn Explain>>,
    ask_replicas: OnceLock<Arc<AskReplicas>>,
    sessions: OnceLock<Sessions>,
    replicas: Arc<replicas::Kept>,
    history: Arc<Mutex<History>>,
    /// One more for each change that somebody could want to see.
    news: watch::Sender<u64>,
    samples: tokio::sync::Mutex<Samples>,
    served: Arc<Kept>,
    pace: Pace,
    turns: Semaphore,
    looked: Mutex<Option<SystemTime>>,
    looked_at_endpoints: Mutex<Option<SystemTime>>,
    forgetting: AtomicBool,
    /// Requests to the API that were refused.
    turned_away: AtomicU64,
}

/// What the loop tells.
struct Follows {
    loops: Arc<controller::Metrics>,
    known: watch::Receiver<Arc<Known>>,
}

impl Console {
    /// The console of an engine, which knows nothing before [`Console::follow`].
    pub fn new(engine: impl Source, identity: Identity) -> Arc<Self> {
        Arc::new(Self {
            identity: Arc::new(identity),
            engine: Box::new(engine),
            follows: OnceLock::new(),
            leads: OnceLock::new(),
            explain: OnceLock::new(),
            ask_replicas: OnceLock::new(),
            sessions: OnceLock::new(),
            replicas: Arc::default(),
            history: Arc::default(),
            news: watch::Sender::new(0),
            samples: tokio::sync::Mutex::default(),
            served: Arc::default(),
            pace: Pace::default(),
            turns: Semaphore::new(AT_A_TIME),
            looked: Mutex::default(),
            looked_at_endpoints: Mutex::default(),
            forgetting: AtomicBool::new(false),
            turned_away: AtomicU64::new(0),
        })
    }

    /// From now on the loop tells; what changes is noted.
    pub fn follow(
        self: &Arc<Self>,
        loops: Arc<controller::Metrics>,
        mut known: watch::Receiver<Arc<Known>>,
    ) {
        let follows = Follows { loops: loops.clone(), known: known.clone() };
        if self.follows.set(follows).is_err() {
            return;
        }
        let console = self.clone();
        tokio::spawn(async move {
            let mut before = Arc::<Known>::default();
            loop {
                let now = known.borrow_and_update().clone();
                let (generation, at) = (loops.progress().generation, seconds());
                // This thread answers probes. What comes meanwhile is compared with this one next.
                let compared = (before, now.clone());
                let round = move || Round::between(&compared.0, &compared.1);
                if let Ok(round) = tokio::task::spawn_blocking(round).await {
                    console.history.lock().note(round, generation, at);
                }
                console.news.send_modify(|news| *news += 1);
                before = now;
                if known.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    /// Whether this replica leads, where there is an election.
    pub fn follow_leader(&self, leads: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.leads.set(Box::new(leads));
    }

    /// What knows the replicas, where the API server can be asked.
    pub fn ask_replicas_with(&self, ask: AskReplicas) {
        let _ = self.ask_replicas.set(Arc::new(ask));
    }

    /// What counts the sessions of ports.
    pub fn count_sessions_with(&self, sessions: Sessions) {
        let _ = self.sessions.set(sessions);
    }

    /// What explains requests.
    pub fn explain_with(&self, explain: Arc<dyn Explain>) {
        let _ = self.explain.set(explain);
    }

    /// Adds the page and the API to the admin server. With a token, the page itself is for all: it says nothing before
    /// it is given the token.
    pub fn pages(self: &Arc<Self>, admin: Admin, with_token: bool) -> Admin {
        let mut admin = page::pages(admin, with_token);
        for endpoint in ENDPOINTS {
            let console = self.clone();
            admin = admin.near(endpoint.path, move |query| {
                let (console, query) = (console.clone(), query.to_owned());
                async move { console.answer(endpoint, &query).await }
            });
        }
        let console = self.clone();
        admin
            .near(events::PATH, move |_| {
                std::future::ready(events::page(console.history.clone(), console.news.subscribe()))
            })
            .near(endpoints::DESCRIPTION, |_| std::future::ready(Page::json(endpoints::OPENAPI)))
    }

    async fn answer(self: Arc<Self>, endpoint: &'static endpoints::Endpoint, query: &str) -> Page {
        match self.made(endpoint, query).await {
            Ok(json) => Page::json(json),
            Err(refusal) => refusal.page(),
        }
    }

    async fn made(
        self: Arc<Self>,
        endpoint: &'static endpoints::Endpoint,
        query: &str,
    ) -> Result<String, Refusal> {
        if let Err(refusal) = self.pace.pass() {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            return Err(refusal);
        }
        let query = Query::parse(query, endpoint.parameters)?;
        let known = self.follows.get().map(|follows| follows.known.borrow().clone());
        let known = known.filter(|known| known.is_serving()).ok_or(Refusal::Early)?;
        self.look();
        if endpoint.endpoints {
            self.engine.look_at_endpoints();
            *self.looked_at_endpoints.lock() = Some(SystemTime::now());
        }
        let sample = if endpoint.sampled { Some(self.sample().await) } else { None };
        let replicas = if endpoint.replicas { self.beside().await } else { Beside::default() };
        let _turn = self.turns.acquire().await;
        let now = Now {
            known,
            sample,
            kept: self.served.clone(),
            history: self.history.clone(),
            identity: self.identity.clone(),
            progress: self
                .follows
                .get()
                .map(|follows| follows.loops.progress())
                .unwrap_or_default(),
            leads: self.leads.get().map(|leads| leads()),
            explain: self.explain.get().cloned(),
            replicas: Mutex::new(replicas),
            failure: if endpoint.endpoints { self.failure(&query) } else { None },
            turned_away: self.turned_away.load(Ordering::Relaxed),
            sampled: query
                .get("id")
                .filter(|_| endpoint.path == endpoints::TRACE)
                .and_then(|id| self.engine.sample(id)),
            copies: endpoint.sampled.then(|| self.engine.copies()).flatten(),
        };
        let make = move || (endpoint.make)(&now, &query);
        tokio::task::spawn_blocking(make)
            .await
            .map_err(|error| Refusal::Broken(error.to_string()))?
    }

    /// When and why a request failed last of the route that is asked for.
    fn failure(&self, query: &Query) -> Option<(f64, String)> {
        let kind = match query.get("kind") {
            Some("Exact") => PathKind::Exact,
            _ => PathKind::Prefix,
        };
        self.engine.route_failure(query.get("host")?, kind, query.get("path")?)
    }

    /// The replicas, as far as they are known.
    async fn beside(&self) -> Beside {
        match self.ask_replicas.get() {
            Some(ask) => self.replicas.look(ask, &self.identity.pod).await,
            None => Beside {
                unknown: Some(
                    "this process is in no Pod of a cluster that it could ask".to_owned(),
                ),
                ..Beside::default()
            },
        }
    }

    /// How much traffic there is, read at most once in a while however many ask.
    async fn sample(&self) -> Arc<Sample> {
        let mut samples = self.samples.lock().await;
        if let Some(fresh) = samples.fresh() {
            return fresh;
        }
        let traffic = self.engine.traffic().await;
        let looked = self.looked_at_endpoints.lock().and_then(|at| at.elapsed().ok());
        let looks = looked.is_some_and(|since| since < FORGET);
        let endpoints = looks.then(|| self.engine.endpoints()).flatten();
        samples.take(Taken {
            requests: self.engine.requests(),
            traffic,
            within: self.engine.within(),
            endpoints,
            ports: self.sessions.get().map(|sessions| sessions()).unwrap_or_default(),
        })
    }

    /// Somebody looks; once nobody does any more, what was worked out for them goes.
    fn look(self: &Arc<Self>) {
        *self.looked.lock() = Some(SystemTime::now());
        if self.forgetting.swap(true, Ordering::Relaxed) {
            return;
        }
        let console = self.clone();
        tokio::spawn(async move {
            let looks = |console: &Self| {
                let since = console.looked.lock().and_then(|at| at.elapsed().ok());
                since.is_some_and(|since| since < FORGET)
            };
            while looks(&console) {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "what nobody looks at is forgotten by the clock"
                )]
                tokio::time::sleep(FORGET).await;
            }
            console.served.forget();
            if let Some(explain) = console.explain.get() {
                explain.forget();
            }
            console.replicas.forget();
            *console.samples.lock().await = Samples::default();
            console.forgetting.store(false, Ordering::Relaxed);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Console;
    use crate::difference::MADE;
    use crate::now::Identity;
    use controller::Known;
    use exposition::{Source, Traffic, Within};
    use model::{Configuration, Server, ServerName};
    use request_metrics::Metrics;
    use std::pin::Pin;
    use std::sync::Arc;
    use tokio::sync::watch;

    /// An engine that says nothing.
    struct Silent;

    impl Source for Silent {
        fn requests(&self) -> Option<&Arc<Metrics>> {
            None
        }

        fn own_certificate(&self) -> Option<Vec<u8>> {
            None
        }

        fn within(&self) -> Option<Within> {
            None
        }

        fn traffic(&self) -> Pin<Box<dyn Future<Output = Traffic> + Send + '_>> {
            Box::pin(std::future::ready(Traffic::default()))
        }
    }

    fn serving(regex: bool) -> Arc<Known> {
        let name = ServerName::new("shop.test");
        let server = Server { regex, ..Server::new(name.clone()) };
        let servers = [(name, Arc::new(server))].into_iter().collect();
        let serving = Configuration { servers, ..Configuration::default() };
        Arc::new(Known { serving, ..Known::default() })
    }

    #[tokio::test]
    async fn the_thread_of_probes_compares_nothing_and_each_change_is_noted() {
        let identity =
            Identity { version: String::new(), class: String::new(), pod: String::new() };
        let console = Console::new(Silent, identity);
        let (known, follower) = watch::channel(serving(false));
        let mut news = console.news.subscribe();
        console.follow(Arc::default(), follower);
        news.changed().await.expect("it is followed");
        known.send_replace(serving(true));
        news.changed().await.expect("it is followed");
        assert_eq!(MADE.get(), 0, "this thread has compared nothing");
        let history = console.history.lock();
        let newest = history.generations().front().expect("a generation");
        assert_eq!(newest.differences[0].setting.as_deref(), Some("regex"));
        assert_eq!(history.generations().len(), 2);
    }
}
