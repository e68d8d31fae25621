//! The native engine: compiles, swaps one pointer, and ends politely.

use crate::compile::Compiler;
use crate::crowds::Crowds;
use crate::endpoints::AtEndpoints;
use crate::generation::Generation;
use crate::geoip::{GeoFiles, GeoIp};
use crate::listen::{BindError, Followed, Listen, Listening, Sockets, Wanted, bind};
use crate::load::{Pressure, Shed};
use crate::log::{AccessLog, Writer};
use crate::pulse::{Pulse, Running};
use crate::shadow::Shadowed;
use crate::telemetry::{OtlpEnvironment, Spans};
use crate::thread;
use crate::trace::Sample;
use crate::worker::{Shared, Stage};
use engine::{Applied, Engine, Rejected};
use model::{Changes, Configuration, Global, LogTarget, PathKind};
use parking_lot::Mutex;
use request_metrics::{Metrics, Settings};
use rustix::io::Errno;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::{Places, Resolver};
use system::threads;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Instant;
use wire::Scratch;

/// How long the last lines of a log may take to be written.
const SETTLING: Duration = Duration::from_secs(1);
/// Part of the open files that bodies of requests may be.
const BODIES: u64 = 8;
/// Percent of the open files that connections towards upstreams may be: as many as those of clients.
const UPSTREAMS: u64 = 45;
/// How long the last spans may take to be sent.
const LAST_SPANS: Duration = Duration::from_secs(3);
/// How long threads, logs and spans may take to end once the time for draining is over: more than each may take itself.
const LAST_THREADS: Duration = Duration::from_secs(15);

/// Serves HTTP in this process.
#[derive(Debug)]
pub struct Native {
    shared: Arc<Shared>,
    compiler: Compiler,
    stage: watch::Sender<Stage>,
    threads: Mutex<Threads>,
    listen: Listen,
    /// Client connections at most, over all threads.
    connections: usize,
    /// Whether a flag says how many threads there are.
    fixed_threads: bool,
    access_log: Writer,
    error_log: Writer,
    global: watch::Sender<Arc<Global>>,
}

/// What the engine is told once, before it starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen.
    pub listen: Listen,
    /// Threads that carry traffic.
    pub threads: usize,
    /// Whether `worker-processes` leaves their number as it is, since a flag says it.
    pub fixed_threads: bool,
    /// Client connections at most, each thread.
    pub connections: usize,
    /// Connections that are carried on by the name in their ClientHello, at most.
    pub carried: usize,
    /// Sockets of all threads at most, for the ports that Gateways and snippets ask for.
    pub sockets: usize,
    /// How many files the process may have open, if there is a bound: some of them are kept for other things than
    /// traffic.
    pub descriptors: Option<u64>,
    /// How requests and connections are counted; none counts nothing.
    pub metrics: Option<Settings>,
    /// Where the databases about addresses are.
    pub geoip: GeoFiles,
    /// What the environment knows about collectors of spans.
    pub collector: OtlpEnvironment,
    /// Requests are copies: they are thought through and counted, and nothing is sent to anybody.
    pub shadow: bool,
}

impl Options {
    /// One thread that counts nothing and knows no files.
    pub fn new(listen: Listen) -> Self {
        Self {
            listen,
            threads: 1,
            fixed_threads: false,
            connections: 1000,
            carried: usize::MAX,
            sockets: usize::MAX,
            descriptors: None,
            metrics: None,
            geoip: GeoFiles::default(),
            collector: OtlpEnvironment::default(),
            shadow: false,
        }
    }
}

/// What to do where the system has no thread to give.
fn remedy(error: &io::Error) -> &'static str {
    let files = [Errno::MFILE, Errno::NFILE].map(|full| Some(full.raw_os_error()));
    if error.kind() == io::ErrorKind::WouldBlock {
        ": look at the limit of processes (pids) of the container"
    } else if files.contains(&error.raw_os_error()) {
        ": raise the limit of open files"
    } else {
        ""
    }
}

#[derive(Debug)]
struct Threads {
    /// The sockets of threads that have not started yet.
    waiting: Vec<Sockets>,
    running: Vec<Running>,
    /// What they were bound for.
    bound: Wanted,
    /// What the ConfigMap asked for last.
    asked: Wanted,
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
    /// Binds the listeners. Connections are accepted from the first [`Engine::apply`] on.
    pub fn start(options: Options) -> Result<Self, StartError> {
        let Options { listen, threads, fixed_threads, connections, .. } = options;
        if let Some(descriptors) = options.descriptors {
            wire::descriptors::bound(descriptors);
        }
        let (waiting, mut listening) = bind(&listen, threads)?;
        if options.shadow {
            listening.followed = Some(Followed::Copies(Arc::default()));
        }
        let metrics = options.metrics.map(|settings| Arc::new(Metrics::new(settings)));
        let compiler = Compiler::new(listen.outside.clone(), metrics.clone(), options.collector);
        let own = tls::self_signed().map_err(StartError::Certificate)?;
        let nothing =
            compiler.nothing(own).map_err(|error| StartError::Certificate(error.into()))?;
        let bound = Wanted { addresses: listen.addresses.clone(), threads };
        let mut shared =
            Shared::new(Arc::new(nothing), listening, connections, compiler.resolver.clone());
        shared.metrics = metrics;
        shared.carried = Places::new(options.carried);
        if let Some(descriptors) = options.descriptors {
            shared.scratch.bound_number(descriptors / BODIES);
            shared.upstreams.set(descriptors.saturating_mul(UPSTREAMS) / 100);
        }
        shared.sockets = Arc::new(Semaphore::new(options.sockets.min(Semaphore::MAX_PERMITS)));
        shared.addresses = compiler.addresses.clone();
        shared.geoip = Arc::new(GeoIp::new(options.geoip));
        Ok(Self {
            shared: Arc::new(shared),
            compiler,
            stage: watch::Sender::new(Stage::Serving),
            threads: Mutex::new(Threads {
                waiting,
                running: Vec::new(),
                asked: bound.clone(),
                bound,
            }),
            listen,
            connections: connections.saturating_mul(threads),
            fixed_threads,
            access_log: Writer::start("access-log", LogTarget::Stdout)
                .map_err(StartError::Thread)?,
            error_log: Writer::start("error-log", LogTarget::Stderr).map_err(StartError::Thread)?,
            global: watch::Sender::default(),
        })
    }

    /// What is counted, if that was asked for.
    pub fn metrics(&self) -> Option<&Arc<Metrics>> {
        self.shared.metrics.as_ref()
    }

    /// Lines of the access log and of the error log that were dropped since what takes them is too slow, or full.
    pub fn dropped_lines(&self) -> [(&'static str, u64); 2] {
        [("access", self.access_log.dropped()), ("error", self.error_log.dropped())]
    }

    /// Who looks names up: all that ask share the questions that may be under way.
    pub fn resolver(&self) -> &Arc<Resolver> {
        &self.compiler.resolver
    }

    /// The ports, as bound.
    pub fn listening(&self) -> &Listening {
        &self.shared.listening
    }

    /// Connections towards upstreams, how many there may be, and how often there was no place: for one namespace or for
    /// all.
    pub fn upstream_connections(&self) -> (u64, u64, u64) {
        self.shared.upstreams.now()
    }

    /// Where bodies are kept that are too large for memory.
    pub fn scratch(&self) -> &Scratch {
        &self.shared.scratch
    }

    /// Why the process cannot serve any more, which only a new one mends: a thread that has ended, or hangs.
    pub fn ailment(&self) -> Option<&'static str> {
        let now = std::time::Instant::now();
        self.threads.lock().running.iter().find_map(|running| running.ailment(now))
    }

    /// What became of spans since the process started.
    pub fn spans(&self) -> Spans {
        self.compiler.spans()
    }

    /// The generation in force.
    pub fn current(&self) -> Arc<Generation> {
        self.shared.current.load_full()
    }

    /// Says how hard the process is pressed, since memory is scarce: what is turned away follows within a tenth of a
    /// second, and who ends for others within half of one.
    pub fn press(&self, pressure: Pressure) {
        self.shared.load.press(pressure, true);
    }

    /// The same where file descriptors are scarce: nobody ends for the memory that it holds.
    pub fn press_for_files(&self, pressure: Pressure) {
        self.shared.load.press(pressure, false);
    }

    /// The process may use so much memory: requests under way have their parts of it.
    pub fn bound_memory(&self, bytes: u64) {
        self.shared.under_way.bound(bytes);
        self.compiler.zones().bound(bytes);
    }

    /// Forgets clients of limits that were away for long; asked for now and then.
    pub fn forget_clients(&self) {
        self.compiler.zones().sweep();
    }

    /// What requests under way hold, over HTTP/2, of encoders and of programs of snippets: bytes in use, bytes at most,
    /// refusals.
    pub fn under_way(&self) -> [(u64, u64, u64); 3] {
        let all = &self.shared.under_way;
        [all.streams.now(), all.encoders.now(), all.programs.now()]
    }

    /// Somebody looks at endpoints: from now on it is counted for a minute how it goes at each.
    pub fn look_at_endpoints(&self) {
        self.shared.watched.look();
    }

    /// How it goes at each endpoint, as far as it was counted.
    pub fn endpoints(&self) -> AtEndpoints {
        self.shared.watched.of(&self.shared.addresses)
    }

    /// When and why a request of a route failed last, as far as the error log told.
    pub fn route_failure(
        &self,
        host: &str,
        kind: PathKind,
        path: &str,
    ) -> Option<(std::time::SystemTime, String)> {
        self.shared.watched.of_route(host, kind, path)
    }

    /// What became of the request with this `X-Request-ID`; from the first question on it is waited for.
    pub fn sample(&self, id: &str) -> Sample {
        self.shared.sampled.ask(id)
    }

    /// What was decided about copies so far, if they are all that comes.
    pub fn shadowed(&self) -> Option<Shadowed> {
        self.shared.listening.shadow().map(|shadow| shadow.seen_so_far())
    }

    /// Connections of clients, and how many there may be, over all threads.
    pub fn most_connections(&self) -> usize {
        let threads = self.threads.lock().running.len();
        self.shared.connections.load(Ordering::Relaxed).saturating_mul(threads)
    }

    /// How full is what requests come to.
    pub fn crowds(&self) -> Crowds {
        Crowds { zones: self.compiler.fullest_zone(), ..self.shared.crowds() }
    }

    /// What was turned away since the start.
    pub fn shed(&self) -> Shed {
        self.shared.load.shed()
    }

    /// From now on connections are taken as before, but each ends with its next answer: so they move elsewhere before
    /// [`Engine::drain`].
    pub fn leave(&self) {
        self.stage.send_if_modified(|stage| {
            let serving = *stage == Stage::Serving;
            if serving {
                *stage = Stage::Leaving;
            }
            serving
        });
    }

    /// The settings of the process as a whole, as they change.
    pub fn global(&self) -> watch::Receiver<Arc<Global>> {
        self.global.subscribe()
    }

    /// Hands a line to the place that `error-log-path` or `enable-syslog` names, with its syslog severity. Never
    /// blocks; a line too many is dropped.
    pub fn log_error(&self, severity: u8, line: String) {
        let _ = self.error_log.write(Some(severity), line.into_bytes());
    }

    /// Opens the files of logs again, after somebody moved them away.
    pub fn reopen_logs(&self) {
        self.access_log.reopen();
        self.error_log.reopen();
    }

    /// Lets logs and whoever waits for it follow the settings of the process.
    fn follow(&self, global: &Arc<Global>) {
        let is_shadow = self.shared.listening.shadow().is_some();
        // What only thinks through copies of requests sends nothing to anybody.
        let stays = |target: &LogTarget| !(is_shadow && matches!(target, LogTarget::Syslog(_)));
        let target = |asked: &LogTarget, own| if stays(asked) { asked.clone() } else { own };
        self.access_log.follow(&target(&global.logs.access, LogTarget::Stdout));
        self.error_log.follow(&target(&global.logs.error, LogTarget::Stderr));
        self.global.send_if_modified(|current| {
            let changed = *current != *global;
            current.clone_from(global);
            changed
        });
    }

    /// Exchanges the sockets, which take no connections yet, for those that the ConfigMap asks for; the ports stay.
    /// What cannot be had is not followed.
    fn bind_again(&self, threads: &mut Threads, wanted: Wanted) -> io::Result<()> {
        let ports = &self.shared.listening;
        let listen = |addresses: &[IpAddr]| Listen {
            addresses: addresses.to_vec(),
            http_port: ports.http_port,
            https_port: ports.https_port,
            ..self.listen.clone()
        };
        threads.waiting.clear();
        threads.asked = wanted.clone();
        match bind(&listen(&wanted.addresses), wanted.threads) {
            Ok((sockets, _)) => (threads.waiting, threads.bound) = (sockets, wanted),
            Err(error) => {
                tracing::error!(%error, "bind-address of the ConfigMap is not followed");
                let before = &threads.bound;
                let again = bind(&listen(&before.addresses), before.threads);
                threads.waiting = again.map_err(io::Error::other)?.0;
            }
        }
        Ok(())
    }

    /// Starts the threads that have not started yet. Those that cannot be had are tried again with the next
    /// generation; it fails where there is none at all.
    fn accept(&self, global: &Global) -> io::Result<()> {
        let mut threads = self.threads.lock();
        let suggested = threads.bound.threads;
        let wanted = Wanted::of(&self.listen, &global.listeners, suggested, self.fixed_threads);
        if threads.waiting.is_empty() || !threads.running.is_empty() {
            if wanted != threads.asked {
                tracing::warn!(
                    "bind-address, disable-ipv6 or worker-processes changed: that counts from the next start on"
                );
            }
            threads.asked = wanted;
        } else if wanted != threads.bound {
            self.bind_again(&mut threads, wanted)?;
        } else {
            threads.asked = wanted;
        }
        let count = (threads.running.len() + threads.waiting.len()).max(1);
        let most = global.listeners.connections.unwrap_or(usize::MAX);
        let connections = (self.connections / count).clamp(1, most.max(1));
        self.shared.connections.store(connections, Ordering::Relaxed);
        self.shared.under_way.share(count);
        let mut waiting = std::mem::take(&mut threads.waiting).into_iter();
        while let Some(sockets) = waiting.next() {
            match self.start_thread(sockets) {
                Ok(running) => threads.running.push(running),
                Err((error, sockets)) => {
                    threads.waiting.push(sockets);
                    threads.waiting.extend(waiting);
                    if threads.running.is_empty() {
                        return Err(error);
                    }
                    let (running, missing) = (threads.running.len(), threads.waiting.len());
                    let remedy = remedy(&error);
                    tracing::error!(%error, running, missing, "fewer threads of traffic than wanted{remedy}");
                    break;
                }
            }
        }
        Ok(())
    }

    /// Starts a thread, which accepts what comes in at these sockets; they are given back where it cannot be had.
    fn start_thread(&self, sockets: Sockets) -> Result<Running, (io::Error, Sockets)> {
        let (shared, stage) = (self.shared.clone(), self.stage.subscribe());
        let log = AccessLog::new(self.access_log.clone());
        let pulse = Pulse::new();
        let own = pulse.clone();
        let (give, take) = oneshot::channel();
        let started = threads::with_loop("traffic", thread::event_loop, move |event_loop| {
            if let Ok(sockets) = take.blocking_recv() {
                thread::run(event_loop, shared, sockets, log, stage, &own);
            }
        });
        // Nothing comes in before somebody is there who takes it.
        match started.and_then(|handle| sockets.open().map(|()| handle)) {
            Ok(handle) => {
                give.send(sockets).map_err(|back| (io::ErrorKind::BrokenPipe.into(), back))?;
                Ok(Running { handle, pulse })
            }
            Err(error) => Err((error, sockets)),
        }
    }
}

impl Engine for Native {
    fn takes_portions(&self) -> bool {
        true
    }

    async fn apply(&self, next: &Configuration, changes: &Changes) -> Result<Applied, Rejected> {
        let before = self.shared.current.load_full();
        let number = before.number + 1;
        let rejected = |reason: String| Rejected { generation: number, reason };
        let generation = self
            .compiler
            .next(&before, next, changes)
            .map_err(|error| rejected(error.to_string()))?;
        let left_out = generation.problems().cloned().collect();
        self.shared.geoip.follow(next.global.geoip2).await;
        self.shared.current.store(Arc::new(generation));
        self.follow(&next.global);
        if let Err(error) = self.accept(&next.global) {
            self.shared.current.store(before);
            return Err(rejected(format!("cannot start a thread: {error}{}", remedy(&error))));
        }
        if let Some(metrics) = self.metrics() {
            drop(before);
            metrics.sweep();
        }
        if !changes.listeners.is_empty() {
            let threads = self.threads.lock().running.len();
            self.shared.openings.ask(number, threads).await;
        }
        Ok(Applied { generation: number, left_out })
    }

    async fn drain(self: Arc<Self>, deadline: Duration) {
        self.stage.send_replace(Stage::Draining(Instant::now() + deadline));
        let running = std::mem::take(&mut self.threads.lock().running);
        let logs = [self.access_log.clone(), self.error_log.clone()];
        let tracer = self.current().tracer.clone();
        let joined = tokio::task::spawn_blocking(move || {
            running.into_iter().for_each(|thread| drop(thread.handle.join()));
            logs.iter().for_each(|log| log.settle(SETTLING));
            tracer.settle(LAST_SPANS);
        });
        match tokio::time::timeout(deadline + LAST_THREADS, joined).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => tracing::error!("a traffic thread ended badly"),
            Err(_) => {
                tracing::error!("a traffic thread has not ended in time: nobody waits for it")
            }
        }
    }
}
