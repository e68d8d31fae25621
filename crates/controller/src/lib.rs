//! The loop: a Snapshot comes, becomes a Configuration, and the engine follows it. What went wrong is told once.

pub mod admission;
mod answer;
mod budget;
mod clock;
pub mod events;
mod fingerprint;
pub mod lease;
mod metrics;
mod pod;
mod report;
pub mod status;
mod task;
mod timings;
pub mod webhook_certificate;

pub use metrics::{Metrics, Progress};
pub use pod::OwnPod;
pub use timings::{BOUNDS, Timings};

use admission::Known;
use engine::Engine;
use fingerprint::Fingerprint;
use kubernetes::Feed;
use model::{Changes, Configuration, Problem};
use report::Reporter;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use translate::{Options, Problems, Translation, Translator};

/// Makes an engine follow the objects of a feed.
#[derive(Debug)]
pub struct Controller<E> {
    engine: Arc<E>,
    translator: Translator,
    /// What the engine serves; it lags behind the translator only where the engine refused something.
    applied: Configuration,
    /// What the engine did not take of it.
    left_out: Vec<Problem>,
    fingerprint: Fingerprint,
    metrics: Arc<Metrics>,
    reporter: Reporter,
    known: watch::Sender<Arc<Known>>,
    outcome: watch::Sender<Applied>,
}

/// What the engine made of changes so far.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// How many of them touched more than endpoints and certificates: ingress-nginx would have reloaded.
    pub routes: u64,
    /// Why the latest ones were refused.
    pub refused: Option<Arc<str>>,
}

/// The feed ended, which it never does while the process lives.
#[derive(Debug, thiserror::Error)]
#[error("the source of objects has stopped; what is served stays as it is")]
pub struct FeedEnded;

impl<E: Engine> Controller<E> {
    /// A controller for an engine that serves nothing yet.
    pub fn new(engine: Arc<E>, options: Options) -> Self {
        Self {
            engine,
            translator: Translator::new(options),
            applied: Configuration::default(),
            left_out: Vec::new(),
            fingerprint: Fingerprint::default(),
            metrics: Arc::default(),
            reporter: Reporter::default(),
            known: watch::Sender::default(),
            outcome: watch::Sender::default(),
        }
    }

    /// The objects and what they mean, from one change to the next.
    pub fn known(&self) -> watch::Receiver<Arc<Known>> {
        self.known.subscribe()
    }

    /// What the engine made of changes, as it goes.
    pub fn applied(&self) -> watch::Receiver<Applied> {
        self.outcome.subscribe()
    }

    /// What the loop says of itself.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// What the engine left out is a problem of its owner like any other.
    fn tell(&mut self, translated: &Problems, left_out: Vec<Problem>) {
        if left_out == self.left_out {
            return;
        }
        let problems = translated.with(&left_out);
        self.left_out = left_out;
        self.reporter.report(&problems);
        self.known.send_modify(|known| {
            *known = Arc::new(Known { problems, ..Known::clone(known) });
        });
    }

    /// Takes the latest Snapshot. When it returns, everything in it is served.
    pub async fn follow(&mut self, feed: &mut Feed) {
        let (snapshot, seen) = feed.take();
        let began = Instant::now();
        let Translation { configuration, problems, served, changes: _ } =
            self.translator.update(&snapshot);
        let found = problems;
        let problems = found.with(&self.left_out);
        self.reporter.report(&problems);
        let references = self.translator.references().clone();
        let known =
            Known { snapshot, configuration: configuration.clone(), problems, served, references };
        self.known.send_replace(Arc::new(known));
        let changes = Changes::between(&self.applied, &configuration);
        if changes.is_empty() && !self.applied.servers.is_empty() {
            return;
        }
        let translated = began.elapsed();
        match self.engine.apply(&configuration, &changes).await {
            Ok(applied) => {
                let took = began.elapsed() - translated;
                report::served(applied.generation, &changes, translated, took);
                self.fingerprint = self.fingerprint.after(&self.applied, &configuration, &changes);
                self.metrics.applied(applied.generation, self.fingerprint, took);
                if let Some(seen) = seen {
                    self.metrics.propagation.add(seen.elapsed());
                }
                self.tell(&found, applied.left_out);
                self.applied = configuration;
                let reloads = u64::from(changes.global || !changes.servers.is_empty());
                self.outcome.send_modify(|applied| {
                    *applied = Applied { routes: applied.routes + reloads, refused: None };
                });
            }
            Err(rejected) => {
                tracing::error!(%rejected, "the engine refused changes; what was served stays");
                let refused = Some(rejected.to_string().into());
                self.outcome.send_modify(|applied| applied.refused = refused);
                self.metrics.refused();
            }
        }
    }

    /// Follows every change until the feed ends.
    pub async fn run(&mut self, feed: &mut Feed) -> FeedEnded {
        while feed.snapshots.changed().await.is_ok() {
            self.follow(feed).await;
        }
        FeedEnded
    }
}
