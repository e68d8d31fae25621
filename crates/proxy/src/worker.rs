//! One thread of traffic: its listeners, its connections, its pools. Nothing of it is shared with the others.

use crate::authenticator::Answers;
use crate::connection::Connection;
use crate::credentials::{Digests, Remembered, Verifier};
use crate::generation::Generation;
use crate::geoip::GeoIp;
use crate::http::Clock;
use crate::listen::{self, Listening, Sockets};
use crate::log::AccessLog;
use crate::phases::mirror::Mirrors;
use crate::pulse::Pulse;
use crate::upstream::{Names, Pool};
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often log lines are pushed out and idle connections are looked after.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between two looks at idle upstream connections.
const PRUNE: u32 = 10;

/// What all threads share.
#[derive(Debug)]
pub struct Shared {
    /// The Configuration in force.
    pub current: ArcSwap<Generation>,
    /// What is known about the listeners.
    pub listening: Listening,
    /// Connections of clients at most, each thread.
    pub connections: AtomicUsize,
    serial: AtomicU64,
    verifier: Verifier,
    digests: Digests,
    answers: Answers,
    names: Names,
    /// Databases about addresses.
    pub geoip: Arc<GeoIp>,
}

/// What the process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Serving.
    Serving,
    /// No new connections; what runs may finish until then.
    Draining(Instant),
}

impl Shared {
    /// The state of a process that serves `generation`.
    pub fn new(generation: Arc<Generation>, listening: Listening, connections: usize) -> Self {
        Self {
            current: ArcSwap::new(generation),
            listening,
            connections: AtomicUsize::new(connections),
            serial: AtomicU64::new(1),
            verifier: Verifier::default(),
            digests: Digests::default(),
            answers: Answers::default(),
            names: Names::default(),
            geoip: Arc::default(),
        }
    }
}

/// One thread of traffic.
pub struct Worker {
    shared: Arc<Shared>,
    /// What is known about the listeners.
    pub listen: Listening,
    /// Connections to upstreams.
    pub pool: Rc<Pool>,
    /// Copies of requests in flight.
    pub mirrors: Rc<Mirrors>,
    /// The time of day.
    pub clock: Clock,
    /// The access log.
    pub log: AccessLog,
    /// Passwords that were found right.
    pub(crate) remembered: Remembered,
    connections: RefCell<HashMap<u64, Rc<Connection>>>,
    draining: Cell<bool>,
    random: RefCell<fastrand::Rng>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("connections", &self.connections.borrow().len())
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A thread that serves `shared`, with this access log.
    pub fn new(shared: Arc<Shared>, log: AccessLog) -> Self {
        let pool = Rc::new(Pool::default());
        pool.follow(shared.current.load().global().upstream_keep_alive);
        Self {
            listen: shared.listening.clone(),
            shared,
            pool,
            mirrors: Rc::default(),
            clock: Clock::default(),
            log,
            remembered: Remembered::default(),
            connections: RefCell::default(),
            draining: Cell::new(false),
            random: RefCell::new(fastrand::Rng::new()),
        }
    }

    /// Serves until the process ends. Blocks the thread.
    pub fn run(
        shared: Arc<Shared>,
        sockets: Sockets,
        log: AccessLog,
        mut stage: watch::Receiver<Stage>,
        pulse: &Pulse,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else {
            tracing::error!("a traffic thread could not start its event loop");
            return;
        };
        let pulse = pulse.clone();
        LocalSet::new().block_on(&runtime, async move {
            let worker = Rc::new(Self::new(shared, log));
            let accepting = listen::accept(&worker, sockets);
            tokio::task::spawn_local(worker.clone().tick(pulse));
            let draining = stage.wait_for(|stage| *stage != Stage::Serving).await;
            let until = match draining.as_deref() {
                Ok(Stage::Draining(until)) => *until,
                _ => Instant::now(),
            };
            worker.draining.set(true);
            accepting.stop().await;
            worker.drain(until).await;
            worker.log.flush();
        });
    }

    /// Waits until all connections have ended, or there is no more time.
    async fn drain(&self, until: Instant) {
        let mut ticks = interval(Duration::from_millis(20));
        while !self.connections.borrow().is_empty() && Instant::now() < until {
            self.close_idle();
            ticks.tick().await;
        }
    }

    async fn tick(self: Rc<Self>, pulse: Pulse) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0u32.. {
            ticks.tick().await;
            pulse.beat();
            self.log.flush();
            if number % PRUNE == 0 {
                let generation = self.generation();
                self.pool.follow(generation.global().upstream_keep_alive);
                self.pool.prune(&generation);
            }
        }
    }

    /// The Configuration in force.
    pub fn generation(&self) -> Arc<Generation> {
        self.shared.current.load_full()
    }

    /// Verifies passwords.
    pub(crate) fn verifier(&self) -> &Verifier {
        &self.shared.verifier
    }

    /// What is known for digest authentication.
    pub(crate) fn digests(&self) -> &Digests {
        &self.shared.digests
    }

    /// What authenticators said.
    pub(crate) fn answers(&self) -> &Answers {
        &self.shared.answers
    }

    /// Hosts that are known only once a request is there.
    pub fn names(&self) -> &Names {
        &self.shared.names
    }

    /// Databases about addresses.
    pub fn geoip(&self) -> &GeoIp {
        &self.shared.geoip
    }

    /// Whether the process is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// The number for the next connection.
    pub fn next_serial(&self) -> u64 {
        self.shared.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether there are as many connections as there may be.
    pub fn is_full(&self) -> bool {
        self.connections.borrow().len() >= self.shared.connections.load(Ordering::Relaxed)
    }

    /// Asks connections without a request to end.
    pub fn close_idle(&self) {
        let connections: Vec<_> = self.connections.borrow().values().cloned().collect();
        connections.iter().for_each(|connection| connection.close_when_idle());
    }

    /// Keeps a connection in the books until the guard is dropped.
    pub fn enter(self: &Rc<Self>, connection: &Rc<Connection>) -> Entry {
        self.connections.borrow_mut().insert(connection.serial, connection.clone());
        if self.draining.get() {
            connection.close_when_idle();
        }
        Entry { worker: self.clone(), serial: connection.serial }
    }

    /// 32 random hexadecimal digits, as nginx's `$request_id`: a label, not a secret.
    pub fn random_id(&self) -> Bytes {
        let mut id = vec![0; 32];
        let mut random = self.random.borrow_mut().u128(..);
        for digit in &mut id {
            *digit = HEX[(random & 15) as usize];
            random >>= 4;
        }
        id.into()
    }

    /// A random number below `bound`, 0 for an empty range.
    pub fn below(&self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.random.borrow_mut().usize(..bound) }
    }

    /// A number in decimal.
    pub fn decimal(&self, number: u16) -> Bytes {
        match number {
            80 => Bytes::from_static(b"80"),
            443 => Bytes::from_static(b"443"),
            other => other.to_string().into(),
        }
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A connection's place in the books.
#[derive(Debug)]
pub struct Entry {
    worker: Rc<Worker>,
    serial: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.worker.connections.borrow_mut().remove(&self.serial);
    }
}
