//! The engine: tests, compares, swaps, reloads, and pushes what needs no reload.

mod acceptable;
mod again;
mod judge;
mod reload;
mod state;

use crate::blame;
use crate::conf::{self, Environment, Written};
use crate::directory::{Directory, DirectoryError};
use crate::leaving::Leaving;
use crate::names::{Known, Names};
use crate::passthrough;
use crate::plan::{Plan, plan};
use crate::process::{self, Worker};
use crate::pulse::{Care, Pulse};
use crate::push::{Control, General, Metrics, Pusher, Told, Wish};
use crate::requests::Requests;
use crate::start_error::StartError;
use crate::{fallback, lookups, measurements, pem, push, stub_status, trial};
use acceptable::Accepted;
use engine::{Applied, Engine, Rejected};
use model::{Certificate, Changes, Configuration, Listeners};
use request_metrics::Connections;
use rustix::process::Signal;
use state::State;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use stream::{Places, Resolver};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Notify, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long new workers may take to start: twice as long as a test, so that what a busy machine takes in a test has
/// them in time.
const PATIENCE: Duration = Duration::from_secs(120);
/// One in so many file descriptors is a connection in front of nginx: each takes two.
const FRONT_SHARE: u64 = 4;
/// One in so many of them passes nginx by.
const CARRIED_SHARE: usize = 4;
/// How often it is looked whether workers have left, and when nginx is told again of what it was not to be told of.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest and the longest pause before those are tried again for whom there was no time.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Serves HTTP in a supervised nginx.
#[derive(Debug)]
pub struct Nginx {
    inner: Arc<Inner>,
}

/// What the engine is given at start.
#[derive(Debug)]
pub struct Options {
    /// nginx.
    pub program: PathBuf,
    /// Where it runs.
    pub environment: Environment,
    /// Looks the names of ExternalName Services up.
    pub resolver: Arc<Resolver>,
    /// Where requests are counted, if they are.
    pub requests: Option<Requests>,
    /// The time from one reload to the next at least (`--sync-rate-limit`): workers that leave do not pile up.
    pub pace: Duration,
    /// How long a test of nginx.conf may take.
    pub patience: Duration,
    /// When an nginx that does not answer ails.
    pub care: Care,
}

#[derive(Debug)]
struct Inner {
    program: PathBuf,
    environment: Environment,
    directory: Directory,
    pusher: Pusher,
    names: Arc<Names>,
    state: Mutex<State>,
    serving: watch::Sender<Configuration>,
    /// What is counted, if anything is.
    requests: Option<Arc<Requests>>,
    /// The certificate of hosts without one (DER).
    own_certificate: Vec<u8>,
    generation: AtomicU64,
    /// The process id of the master while there is one, else 0; for those who must not wait for `state`.
    master: watch::Sender<i32>,
    starts: AtomicU64,
    reloads: AtomicU64,
    stopping: AtomicBool,
    /// When whoever asks for a Configuration is to do so again, though nothing changes.
    again: watch::Sender<Option<Instant>>,
    /// Wakes who waits for the turn of a reload that will not come any more.
    ending: Notify,
    stopped: Notify,
    pulse: Arc<Pulse>,
    pace: Duration,
    patience: Duration,
}

/// What an apply may come to grief of; it becomes a [`Rejected`].
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("nginx does not take it: {reason}")]
    Refused { reason: String },
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("cannot start nginx: {0}")]
    Spawn(io::Error),
    #[error("cannot test nginx.conf: {0}")]
    Trial(io::Error),
    #[error("nginx takes longer than {0:?} to read it")]
    Slow(Duration),
    #[error(transparent)]
    Push(#[from] push::PushError),
    #[error("nginx took it in a test and does not run with it: {reason}")]
    Unread { reason: String },
    #[error("nginx has started no new workers within {PATIENCE:?}: its error log says why")]
    NoWorkers,
    #[error("nginx has ended; it is being started again")]
    Ended,
    #[error("nginx is meant to end")]
    Stopping,
}

impl Nginx {
    /// Prepares everything; nginx itself starts with the first [`Engine::apply`].
    pub fn start(options: Options) -> Result<Self, StartError> {
        let Options { program, mut environment, resolver, requests, pace, patience, care } =
            options;
        let directory = Directory::take(&environment)?;
        let fallback = fallback::self_signed()?;
        environment.secret = secret()?;
        environment.password = secret()?;
        environment.measures = requests.is_some();
        environment.nobody = pem::certificates(fallback.chain.iter().map(Vec::as_slice));
        push::write_scripts(&environment.lua()).map_err(StartError::Scripts)?;
        let own_certificate = fallback.chain.first().cloned().unwrap_or_default();
        let control = Control::of(&environment);
        let pusher = Pusher::new(control.clone(), Arc::new(fallback));
        let requests = requests.map(Arc::new);
        if let Some(requests) = requests.clone() {
            count(&environment, requests)?;
        }
        look_up(&environment, resolver.clone())?;
        let pulse = Pulse::feel(control, care);
        let inner = Arc::new(Inner {
            program,
            environment,
            directory,
            pusher,
            names: Arc::new(Names::new(resolver)),
            state: Mutex::default(),
            serving: watch::Sender::default(),
            requests,
            own_certificate,
            generation: AtomicU64::new(0),
            master: watch::Sender::new(0),
            starts: AtomicU64::new(0),
            reloads: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            again: watch::Sender::default(),
            ending: Notify::new(),
            stopped: Notify::new(),
            pulse,
            pace,
            patience,
        });
        tokio::spawn(tend(Arc::downgrade(&inner), inner.names.changes()));
        inner.clone().stand_in_front()?;
        Ok(Self { inner })
    }

    /// Where nginx runs.
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// Who looks names up: all that ask share the questions that may be under way.
    pub fn resolver(&self) -> &Arc<Resolver> {
        self.inner.names.resolver()
    }

    /// What is being served, from one change to the next.
    pub fn serving(&self) -> watch::Receiver<Configuration> {
        self.inner.serving.subscribe()
    }

    /// The certificate that handshakes with this name get; none: the one that the process made for itself.
    pub fn certificate(&self, host: &str) -> Option<Arc<Certificate>> {
        let serving = self.inner.serving.borrow().clone();
        self.inner.pusher.certificate(&serving, host)
    }

    /// How often nginx was reloaded.
    pub fn reloads(&self) -> u64 {
        self.inner.reloads.load(Ordering::Relaxed)
    }

    /// How often nginx was started.
    pub fn starts(&self) -> u64 {
        self.inner.starts.load(Ordering::Relaxed)
    }

    /// What is counted of requests, if that was asked for.
    pub fn requests(&self) -> Option<&Arc<Requests>> {
        self.inner.requests.as_ref()
    }

    /// What connections are at; none while nginx does not say.
    pub async fn connections(&self) -> Option<Connections> {
        stub_status::ask(&self.inner.environment).await
    }

    /// The process id of the master, and the workers; none while nginx does not run.
    pub fn processes(&self) -> Option<(i32, Vec<Worker>)> {
        let master = *self.inner.master.borrow();
        (master != 0).then(|| (master, process::workers(master)))
    }

    /// Why nginx serves nobody.
    pub fn ailment(&self) -> Option<&'static str> {
        let is_meant_to_run = !self.inner.stopping.load(Ordering::Relaxed);
        (is_meant_to_run && self.inner.pulse.is_silent()).then_some("nginx does not answer")
    }

    /// The self-signed certificate of hosts without one (DER).
    pub fn own_certificate(&self) -> &[u8] {
        &self.inner.own_certificate
    }

    /// Opens the files of logs again, after somebody moved them away.
    pub async fn reopen_logs(&self) {
        if let Some(master) = self.inner.lock().await.master {
            drop(process::signal(master, Signal::USR1));
        }
    }
}

impl Engine for Nginx {
    async fn apply(&self, next: &Configuration, _: &Changes) -> Result<Applied, Rejected> {
        let generation = self.inner.generation.load(Ordering::Relaxed) + 1;
        self.inner.names.follow(next).await;
        let mut state = self.inner.lock().await;
        let before = self.inner.serving.borrow().clone();
        let had = state.master;
        let applied = self.inner.unless_ended(had, self.inner.apply(&mut state, next)).await;
        self.inner.names.keep(&state.leaving.and(&state.asked));
        match applied {
            Ok(()) => {
                self.inner.sweep(&state);
                self.inner.generation.store(generation, Ordering::Relaxed);
                Ok(Applied { generation, left_out: state.problems() })
            }
            Err(failure) => {
                self.inner.serving.send_if_modified(|serving| {
                    let differs = *serving != before;
                    *serving = before;
                    differs
                });
                // Who fails halfway may need them: nginx may have read what names them.
                if matches!(failure, Failure::Refused { .. }) {
                    self.inner.sweep(&state);
                }
                Err(Rejected { generation, reason: failure.to_string() })
            }
        }
    }

    async fn due(&self) {
        let mut again = self.inner.again.subscribe();
        loop {
            let Some(at) = *again.borrow_and_update() else {
                // It changes as long as the engine lives.
                drop(again.changed().await);
                continue;
            };
            if timeout_at(at, again.changed()).await.is_err() {
                return;
            }
        }
    }

    async fn drain(self: Arc<Self>, deadline: Duration) {
        let inner = &self.inner;
        inner.stopping.store(true, Ordering::SeqCst);
        inner.ending.notify_one();
        let deadline = inner.pulse.end(deadline);
        let until = Instant::now() + deadline;
        if *inner.master.borrow() == 0 {
            // Whoever is starting it sees to its end, or it is known by then. Nobody else is waited for.
            drop(timeout_at(until, inner.state.lock()).await);
        }
        let master = *inner.master.borrow();
        if master == 0 {
            return;
        }
        let stopped = inner.stopped.notified();
        drop(process::signal(master, Signal::QUIT));
        if timeout_at(until, stopped).await.is_err() {
            tracing::warn!(?deadline, "nginx is ended, although requests are still running");
            process::end_group(master);
        }
    }
}

impl Inner {
    async fn apply(
        self: &Arc<Self>,
        state: &mut State,
        next: &Configuration,
    ) -> Result<(), Failure> {
        self.unless_stopping()?;
        if state.master.is_none() && state.has_run() {
            // It comes back with what ran, which takes no tests.
            return Err(Failure::Ended);
        }
        let crowded = blame::crowded(next);
        let next = &blame::without(next, &state.running, &crowded);
        let mut no_room = blame::without_room(next);
        let next = &blame::without(next, &state.running, &no_room);
        no_room.extend(crowded);
        let todo = match state.master {
            Some(_) => plan(&state.asked, next).max(state.owed),
            None => Plan::Reload,
        };
        // Others change all the time: for whom there was no time neither waits for that to end nor is tried with each.
        let is_due = self.again.borrow().is_some_and(|at| at <= Instant::now());
        match todo {
            Plan::Nothing if !is_due => self.stand_back(next),
            Plan::Push if !is_due => {
                self.stand_back(next);
                state.owed = todo;
                let accepted = blame::without(next, &state.running, &state.left_out);
                let accepted = blame::closed(accepted, &state.left_out);
                state.lacks = self.settle(state, &accepted).await?.problems;
                state.running = accepted;
            }
            Plan::Reload | Plan::Push | Plan::Nothing => {
                let accepted = self.acceptable(next, state).await?;
                self.stand_back(next);
                let accepted = self.put_into_force(state, next, accepted).await?;
                let Accepted { configuration, written, left_out } = accepted;
                state.verdicts.remember(next, &left_out);
                (state.running, state.written) = (configuration, written);
                state.knows = !blame::is_everything_closed(&left_out);
                state.left_out = left_out;
                self.ask_again(state);
            }
        }
        (state.owed, state.no_room) = (Plan::Nothing, no_room);
        state.asked = next.clone();
        if let Some(requests) = &self.requests {
            requests.follow(&state.running);
        }
        Ok(())
    }

    /// Where there was no time for somebody who may be innocent, he is tried again by and by.
    fn ask_again(&self, state: &mut State) {
        let pause = state.pause.map_or(AGAIN.0, |pause| (pause * 2).min(AGAIN.1));
        state.pause = blame::is_unfinished(&state.left_out).then_some(pause);
        self.again.send_replace(state.pause.map(|pause| Instant::now() + pause));
    }

    /// What stands in front of nginx has to know first who passes it by; but not before nginx takes the rest.
    fn stand_back(&self, next: &Configuration) {
        self.serving.send_replace(next.clone());
    }

    /// Removes the files that were there for tests alone, or for workers that have left.
    fn sweep(&self, state: &State) {
        let State { written, leaving, .. } = state;
        self.directory.sweep(|file| written.files.contains_key(file) || leaving.reads(file));
        self.directory
            .sweep_remembered(|it| written.remembered.contains(it) || leaving.remembers(it));
    }

    async fn test(
        &self,
        written: &Written,
        patience: Duration,
    ) -> Result<Result<(), trial::Fault>, Failure> {
        self.unless_stopping()?;
        let conf = self.directory.try_out(written)?;
        let tested = trial::test(&self.program, &self.environment, &conf, patience).await;
        tested.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Failure::Slow(patience),
            _ => Failure::Trial(error),
        })
    }

    /// Nothing is started once nginx is meant to end: nobody would see to it.
    fn unless_stopping(&self) -> Result<(), Failure> {
        if self.stopping.load(Ordering::SeqCst) { Err(Failure::Stopping) } else { Ok(()) }
    }

    /// Starts nginx: first without traffic, so that nobody comes before the endpoints are there.
    async fn boot(
        self: &Arc<Self>,
        state: &mut State,
        accepted: &Configuration,
        written: &Written,
    ) -> Result<(), Failure> {
        self.unless_stopping()?;
        process::end_left_behind(&self.environment).await;
        self.directory.clear_temporary()?;
        let refused =
            |unwritable: conf::Unwritable| Failure::Refused { reason: unwritable.to_string() };
        let idle = conf::idle(&self.environment).map_err(refused)?;
        self.directory.install(&idle)?;
        // A socket that a crash left behind would be taken for one that somebody listens on.
        for socket in [self.environment.control(), self.environment.inner()] {
            drop(std::fs::remove_file(socket));
        }
        self.pulse.serves(false);
        let child = process::spawn(&self.program, &self.environment).map_err(Failure::Spawn)?;
        let master = child.id().and_then(|id| i32::try_from(id).ok()).ok_or(Failure::Ended)?;
        state.master = Some(master);
        state.leaving = Leaving::default();
        self.master.send_replace(master);
        self.starts.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(self.clone().watch(child, master));
        // Whoever was asked to end it meanwhile may have found none.
        self.unless_stopping()?;
        self.pusher.forget().await;
        state.lacks = self.settle(state, accepted).await?.problems;
        self.swap(master, written).await?;
        state.counts_at_socket = push::text_of_http(accepted).cloned();
        Ok(())
    }

    /// Lua gets what a Configuration says, and what workers that leave still need.
    async fn settle(
        &self,
        state: &State,
        accepted: &Configuration,
    ) -> Result<Told, push::PushError> {
        let both = (!state.leaving.is_empty()).then(|| state.leaving.and(accepted));
        let all = both.as_ref().unwrap_or(accepted);
        let resolved = self.names.resolved(all);
        self.pusher
            .settle(Wish { now: accepted, all, resolved: &resolved }, self.general(accepted))
            .await
    }

    /// The settings that are pushed.
    fn general(&self, configuration: &Configuration) -> General {
        let global = &configuration.global;
        let socket = || self.environment.measurements().display().to_string();
        General {
            http_redirect_code: global.redirect_status,
            enable_ocsp: global.tls.ocsp,
            metrics: self
                .requests
                .as_ref()
                .map(|requests| Metrics { socket: socket(), batch: requests.batch }),
        }
    }

    /// Takes TLS connections, where some of them pass nginx by.
    fn stand_in_front(self: Arc<Self>) -> Result<(), StartError> {
        let environment = &self.environment;
        if !environment.passthrough {
            return Ok(());
        }
        let addresses = environment.listens_on(&Listeners::default());
        let addresses: Vec<SocketAddr> =
            addresses.into_iter().map(|ip| SocketAddr::new(ip, environment.https_port)).collect();
        let most = usize::try_from(environment.open_files / FRONT_SHARE).unwrap_or(usize::MAX);
        let carried = most / CARRIED_SHARE;
        let front = passthrough::Common {
            serving: self.serving.subscribe(),
            names: self.names.clone(),
            inner: environment.inner(),
            places: Arc::new(Semaphore::new((most - carried).clamp(1, Semaphore::MAX_PERMITS))),
            carried: Places::new(carried),
            told: Arc::default(),
        };
        let failed = |error| StartError::Bind(environment.https_port, error);
        for listener in passthrough::bind(&addresses).map_err(failed)? {
            let listener = TcpListener::from_std(listener).map_err(failed)?;
            tokio::spawn(front.clone().accept(listener));
        }
        Ok(())
    }
}

/// Tells nginx of names whose addresses have changed, and takes away what only workers needed that have left.
async fn tend(engine: Weak<Inner>, mut names: watch::Receiver<Known>) {
    loop {
        let renamed = match timeout(LOOK, names.changed()).await {
            Ok(Ok(())) => true,
            Ok(Err(_)) => return,
            Err(_) => false,
        };
        let Some(inner) = engine.upgrade() else { return };
        let mut state = inner.lock().await;
        // One that does not run is told everything when it starts; one that ends needs nothing more.
        let (Some(master), Ok(())) = (state.master, inner.unless_stopping()) else { continue };
        let left = !state.leaving.is_empty() && state.leaving.forget(&process::workers(master));
        if left {
            inner.sweep(&state);
            inner.names.keep(&state.leaving.and(&state.asked));
        }
        if !left && !renamed {
            continue;
        }
        let telling = async { Ok(inner.settle(&state, &state.running).await?) };
        let settled = inner.unless_ended(Some(master), telling).await;
        if let Err(error) = settled.map(|told| state.lacks = told.problems) {
            tracing::warn!(%error, "nginx was not told of new addresses");
            names.mark_changed();
            drop(state);
            #[expect(clippy::disallowed_methods, reason = "a pause between tries")]
            sleep(LOOK).await;
        }
    }
}

/// What nobody can guess: once for each process, so that nginx.conf stays the same while nothing changes.
fn secret() -> Result<String, StartError> {
    let mut bytes = [0; 12];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| StartError::Random)?;
    Ok(hex::encode(bytes) + "-")
}

/// Counts what workers measure from now on.
fn count(environment: &Environment, requests: Arc<Requests>) -> Result<(), StartError> {
    let socket = environment.measurements();
    let take = move |batch: Vec<_>| requests.count(&batch);
    let receiving = measurements::receive(&socket, take);
    tokio::spawn(receiving.map_err(|source| StartError::Socket { socket, source })?);
    Ok(())
}

/// Tells workers from now on where hosts lead that only a request names.
fn look_up(environment: &Environment, resolver: Arc<Resolver>) -> Result<(), StartError> {
    let socket = environment.names();
    let answering = lookups::answer(&socket, resolver);
    tokio::spawn(answering.map_err(|source| StartError::Socket { socket, source })?);
    Ok(())
}
