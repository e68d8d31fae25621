//! The native engine: compiles, swaps one pointer, and ends politely.

use crate::compile::Compiler;
use crate::generation::Generation;
use crate::geoip::GeoFiles;
use crate::listen::{BindError, Listen, Listening, Sockets, bind};
use crate::log::{self, AccessLog};
use crate::worker::{Shared, Stage, Worker};
use engine::{Applied, Engine, Rejected};
use model::policy::Policy;
use model::{Changes, Configuration};
use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Serves HTTP in this process.
#[derive(Debug)]
pub struct Native {
    shared: Arc<Shared>,
    compiler: Compiler,
    stage: watch::Sender<Stage>,
    threads: Mutex<Threads>,
}

#[derive(Debug)]
struct Threads {
    /// The sockets of threads that have not started yet.
    waiting: Vec<Sockets>,
    running: Vec<JoinHandle<()>>,
    log: SyncSender<String>,
}

/// Why the engine cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is not to be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system refuses a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The self-signed certificate could not be made.
    #[error("cannot make the default certificate: {0}")]
    Certificate(Box<dyn std::error::Error + Send + Sync>),
}

impl Native {
    /// Binds the listeners. Connections are accepted from the first [`Engine::apply`] on, by `threads` threads with at
    /// most `connections` each.
    pub fn start(listen: &Listen, threads: usize, connections: usize) -> Result<Self, StartError> {
        let (waiting, listening) = bind(listen, threads)?;
        let compiler = Compiler::default();
        let nothing = compiler.nothing().map_err(StartError::Certificate)?;
        let log = log::start().map_err(StartError::Thread)?;
        Ok(Self {
            shared: Arc::new(Shared::new(Arc::new(nothing), listening, connections)),
            compiler,
            stage: watch::Sender::new(Stage::Serving),
            threads: Mutex::new(Threads { waiting, running: Vec::new(), log }),
        })
    }

    /// The ports, as bound.
    pub fn listening(&self) -> &Listening {
        &self.shared.listening
    }

    /// Says where the databases about addresses are; before the first [`Engine::apply`].
    pub fn locate_geoip(&self, files: GeoFiles) {
        self.shared.geoip.locate(files);
    }

    /// The generation in force.
    pub fn current(&self) -> Arc<Generation> {
        self.shared.current.load_full()
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the threads that have not started yet.
    fn accept(&self) -> io::Result<()> {
        let mut threads = self.threads();
        let waiting = std::mem::take(&mut threads.waiting);
        waiting.iter().try_for_each(Sockets::open)?;
        for sockets in waiting {
            let (shared, stage) = (self.shared.clone(), self.stage.subscribe());
            let log = AccessLog::new(threads.log.clone());
            let thread = std::thread::Builder::new().name("traffic".to_owned());
            let running = thread.spawn(move || Worker::run(shared, sockets, log, stage))?;
            threads.running.push(running);
        }
        Ok(())
    }
}

impl Engine for Native {
    async fn apply(&self, next: &Configuration, changes: &Changes) -> Result<Applied, Rejected> {
        let before = self.shared.current.load_full();
        let number = before.number + 1;
        let rejected = |reason: String| Rejected { generation: number, reason, culprit: None };
        let generation = self
            .compiler
            .next(&before, next, changes)
            .map_err(|error| rejected(error.to_string()))?;
        self.shared.geoip.follow(next.global.geoip2).await;
        self.shared.current.store(Arc::new(generation));
        self.accept().map_err(|error| rejected(format!("cannot start a thread: {error}")))?;
        Ok(Applied { generation: number })
    }

    async fn check(&self, next: &Configuration) -> Result<(), Rejected> {
        let before = self.shared.current.load_full();
        let changes = Changes::between(&before.configuration, next);
        // Compiling moves the endpoints of living groups; a trial gets groups of its own.
        let trial = Compiler::default();
        let rejected =
            |reason: String| Rejected { generation: before.number + 1, reason, culprit: None };
        let nothing = trial.nothing().map_err(|error| rejected(error.to_string()))?;
        trial.next(&nothing, next, &changes).map_err(|error| rejected(error.to_string()))?;
        Ok(())
    }

    fn unsupported(&self, policy: &Policy) -> Vec<&'static str> {
        let Policy {
            protocol: _,
            http_version: _,
            fastcgi: _,
            upstream_tls: _,
            timeouts: _,
            retries: _,
            body: _,
            tls_redirect: _,
            // Both are a matter of the server.
            client_certificate: _,
            ciphers: _,
            redirect: _,
            relative_redirects: _,
            upstream_host: _,
            rewrite: _,
            auth_basic: _,
            auth_external: _,
            access: _,
            cors: _,
            answer_rewrites: _,
            connection_header: _,
            balance: _,
        } = policy;
        Vec::new()
    }

    async fn drain(self: Arc<Self>, deadline: Duration) {
        self.stage.send_replace(Stage::Draining(Instant::now() + deadline));
        let running = std::mem::take(&mut self.threads().running);
        let joined = tokio::task::spawn_blocking(move || {
            running.into_iter().for_each(|thread| drop(thread.join()))
        });
        if joined.await.is_err() {
            tracing::error!("a traffic thread ended badly");
        }
    }
}
