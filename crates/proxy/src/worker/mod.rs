//! One thread of traffic: its listeners, its connections, its pools. Nothing of it is shared with the others.

mod places;

use self::places::Holder;
pub(crate) use self::places::{Admission, Entry, Expected};
use crate::authenticator::Answers;
use crate::connection::{Connection, Guest, Working};
use crate::credentials::{Digests, Remembered, Verifier};
use crate::crowds::{Crowd, Crowds, Threads};
use crate::endpoints::{Counts, Watched};
use crate::generation::Generation;
use crate::geoip::GeoIp;
use crate::listen::{Listening, Openings};
use crate::load::{Load, Pressure, Witness};
use crate::log::AccessLog;
use crate::mirrors::{IN_FLIGHT, Mirrors};
use crate::numbers::Numbers;
use crate::pulse::Pulse;
use crate::recorder::Recorder;
use crate::retry_budgets::RetryBudgets;
use crate::told::{About, Told};
use crate::trace::Sampled;
use crate::under_way::{Stream, UnderWay};
use crate::young::Youth;
use arc_swap::{ArcSwap, Cache};
use model::UpstreamKeepAlive;
use request_metrics::{Connections, Metrics, Tallies, Tally};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use stream::{Places, Resolver};
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval};
use upstream::{Addresses, Names, Pool, Try};
use wire::{Clock, Control, Request, Room, Scratch, backlog, owed};

/// How often log lines are pushed out and idle connections are looked after.
const TICK: Duration = Duration::from_millis(100);
/// Connections of a thread that are served under any pressure.
const FEW: usize = 8;
/// Ticks between two looks at idle upstream connections.
const PRUNE: u32 = 10;
/// The part of its connections of clients that a thread keeps of those towards upstreams, while they wait.
const IDLE_PART: usize = 4;
/// Quarters of the connections towards upstreams that one namespace may have: most clusters' requests go to a few.
const UPSTREAM_QUARTERS: u64 = 3;
/// Ticks between two looks at what clients leave lying.
const LOOK: u32 = 5;
/// Looks for which a head may be on its way under pressure: about 3 s, as long as a handshake may take then.
const SLOW: u8 = 6;
/// How long connections may take leave once the time for draining is over.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long they may take to write what is left to be written of requests that are cut off.
const LAST_LINES: Duration = Duration::from_millis(200);
/// Rests of authenticators' answers that are read past at a time, by all threads together.
const DRAINS: u64 = 256;
/// How long a drain waits for handshakes that have begun.
const HANDSHAKES: Duration = Duration::from_secs(5);

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The Configuration in force.
    pub current: Arc<ArcSwap<Generation>>,
    /// What is known about the listeners.
    pub listening: Listening,
    /// Connections of clients at most, each thread.
    pub connections: AtomicUsize,
    /// Places for connections that are carried on by the name in their ClientHello.
    pub(crate) carried: Places,
    /// What there is left for sockets of ports that Gateways and snippets ask for.
    pub(crate) sockets: Arc<Semaphore>,
    /// Which ports of Gateways are open.
    pub openings: Openings,
    serial: AtomicU64,
    verifier: Verifier,
    digests: Digests,
    answers: Answers,
    names: Names,
    /// Databases about addresses.
    pub geoip: Arc<GeoIp>,
    /// Where bodies are kept that are too large for memory.
    pub scratch: Scratch,
    /// The places of connections towards upstreams.
    pub(crate) upstreams: Arc<Room>,
    /// Places for rests of authenticators' answers that are read past.
    drains: Room,
    /// How hard the process is pressed.
    pub(crate) load: Arc<Load>,
    /// What requests under way hold.
    pub(crate) under_way: Arc<UnderWay>,
    /// What the error log says of requests.
    pub(crate) told: Told,
    /// Where requests are counted, if they are.
    pub metrics: Option<Arc<Metrics>>,
    /// Where connections are counted where requests are not, and snippets ask for their number.
    tallies: Tallies,
    /// What threads count of what is full.
    pub(crate) crowds: Threads,
    /// How it goes at each endpoint.
    pub(crate) watched: Watched,
    /// Which endpoints there are.
    pub(crate) addresses: Arc<Addresses>,
    /// Requests that somebody waits for.
    pub(crate) sampled: Sampled,
}

/// What the process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Serving.
    Serving,
    /// Connections are still taken, but none is kept: the process is about to end.
    Leaving,
    /// No new connections; what runs may finish until then.
    Draining(Instant),
}

impl Shared {
    /// The state of a process that serves `generation`.
    pub(crate) fn new(
        generation: Arc<Generation>,
        listening: Listening,
        connections: usize,
        resolver: Arc<Resolver>,
    ) -> Self {
        Self {
            current: Arc::new(ArcSwap::new(generation)),
            listening,
            connections: AtomicUsize::new(connections),
            carried: Places::new(usize::MAX),
            sockets: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            openings: Openings::default(),
            serial: AtomicU64::new(1),
            verifier: Verifier::default(),
            digests: Digests::default(),
            answers: Answers::default(),
            names: Names::new(resolver),
            geoip: Arc::default(),
            scratch: Scratch::default(),
            upstreams: Arc::new(Room::leaving_some(u64::MAX, UPSTREAM_QUARTERS)),
            drains: Room::leaving_some(DRAINS, 2),
            load: Arc::default(),
            under_way: Arc::default(),
            told: Told::default(),
            metrics: None,
            tallies: Tallies::default(),
            crowds: Threads::default(),
            watched: Watched::default(),
            addresses: Arc::default(),
            sampled: Sampled::default(),
        }
    }

    /// How full is what requests come to.
    pub(crate) fn crowds(&self) -> Crowds {
        let (copies, tries) = self.crowds.sum(IN_FLIGHT);
        let (now, most, refused) = self.names.kept_hosts();
        let generation = self.current.load();
        let (waiting, room, full) = generation.front.waiting_for_ocsp();
        let (places, all, lost) = self.carried.in_use();
        Crowds {
            copies,
            passwords: self.verifier.crowd(),
            answers: self.answers.crowd(),
            hosts: Crowd { now, most, refused },
            digests: self.digests.crowd(),
            ocsp: Crowd { now: waiting, most: room, refused: full },
            carried: Crowd { now: places as u64, most: all as u64, refused: lost },
            // The zones are those of whoever makes generations.
            zones: Crowd::default(),
            tries,
            handshakes: generation.certificates.refused_handshakes(),
            lines: self.told.left_out(),
        }
    }
}

/// One thread of traffic.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    /// The Configuration that was in force when somebody last asked, and where the next one will be.
    current: RefCell<Cache<Arc<ArcSwap<Generation>>, Arc<Generation>>>,
    /// What is known about the listeners.
    pub listen: Listening,
    /// Connections to upstreams.
    pub pool: Rc<Pool>,
    /// Copies of requests in flight.
    pub mirrors: Rc<Mirrors>,
    /// How often requests may be tried again where routes say so.
    pub(crate) retries: RetryBudgets,
    /// The time of day.
    pub clock: Clock,
    /// The access log.
    pub log: AccessLog,
    /// Where requests are counted, if they are.
    pub recorder: Option<Recorder>,
    /// Where connections are counted if they are not.
    tally: Arc<Tally>,
    /// Passwords that were found right.
    pub(crate) remembered: Remembered,
    connections: RefCell<HashMap<u64, Rc<Connection>>>,
    /// Connections that were accepted and are not in the books yet.
    young: RefCell<Youth>,
    /// When idle connections were let go for want of room.
    relieved: Cell<Option<Instant>>,
    /// Who held most places then.
    holder: RefCell<Option<Holder>>,
    /// One more than the newcomers that were taken under full pressure.
    guests: Rc<()>,
    /// Connections that the last tick ended, and that nobody took the place of.
    freed: Cell<usize>,
    /// Streams for which there was no room up to the last look.
    no_room: Cell<u64>,
    leaving: Cell<bool>,
    /// Where tries at endpoints are counted, and whether somebody looks.
    counts: Arc<Counts>,
    pub(crate) looked: Cell<bool>,
    /// Numbers for requests.
    pub(crate) numbers: Numbers,
    /// The last try, whose memory serves again once nobody has it any more.
    pub(crate) spare: Cell<Option<Rc<Try>>>,
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
    pub(crate) fn new(shared: Arc<Shared>, log: AccessLog) -> Self {
        let pool = Pool::new(shared.upstreams.clone());
        let pool = Rc::new(pool.with_heads(shared.under_way.heads.clone()));
        pool.follow(keep_alive(&shared));
        let crowds = shared.crowds.join();
        Self {
            listen: shared.listening.clone(),
            recorder: shared.metrics.clone().map(Recorder::new),
            tally: shared.tallies.join().1,
            counts: shared.watched.join(),
            looked: Cell::new(false),
            current: RefCell::new(Cache::new(shared.current.clone())),
            shared,
            pool,
            mirrors: Mirrors::new(crowds.clone()),
            retries: RetryBudgets::new(crowds),
            clock: Clock::default(),
            log,
            remembered: Remembered::default(),
            connections: RefCell::default(),
            young: RefCell::default(),
            relieved: Cell::new(None),
            holder: RefCell::default(),
            guests: Rc::default(),
            freed: Cell::new(0),
            no_room: Cell::new(0),
            leaving: Cell::new(false),
            numbers: Numbers::default(),
            spare: Cell::default(),
        }
    }

    /// Waits until all connections have ended, or there is no more time.
    pub(crate) async fn drain(&self, until: Instant) {
        let mut ticks = interval(Duration::from_millis(20));
        let handshakes = Instant::now() + HANDSHAKES;
        while self.is_busy(handshakes) && Instant::now() < until {
            self.close_idle(Control::close_when_idle);
            ticks.tick().await;
        }
        self.overdue();
        let last = Instant::now() + FAREWELL + LAST_LINES;
        self.all().iter().for_each(|connection| connection.control.end());
        while !self.connections.borrow().is_empty() && Instant::now() < last {
            ticks.tick().await;
        }
    }

    /// The time for draining is over. Who is left takes leave, and is cut off then: each request has its line in the
    /// access log like others.
    // Apart from what a thread always does, whose profile it would change.
    #[inline(never)]
    fn overdue(&self) {
        let left = self.all();
        if !left.is_empty() {
            tracing::warn!(
                connections = left.len(),
                "worker-shutdown-timeout is over: WebSockets are told to end, requests that still run are cut off"
            );
            tokio::task::spawn_local(async move {
                #[expect(clippy::disallowed_methods, reason = "the time is what is waited for")]
                tokio::time::sleep(FAREWELL).await;
                left.iter().for_each(|connection| connection.control.cut());
            });
        }
    }

    fn is_busy(&self, handshakes: Instant) -> bool {
        let young = self.young.borrow().len() > 0 && Instant::now() < handshakes;
        young || !self.connections.borrow().is_empty()
    }

    fn all(&self) -> Vec<Rc<Connection>> {
        self.connections.borrow().values().cloned().collect()
    }

    /// No more requests are waited for than those on their way.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
    }

    /// Looks after connections and log until it is dropped, and calls `each` every time.
    pub(crate) async fn tick(self: Rc<Self>, pulse: Pulse, each: impl Fn()) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0u32.. {
            ticks.tick().await;
            // Whatever the thread is busy with.
            wire::time_passes();
            pulse.beat();
            self.log.flush();
            let mut ended = 0;
            if self.pressure() != Pressure::Normal {
                self.close_idle(Control::make_way);
                ended = self.end_unread();
                self.pool.shrink();
            }
            if number % LOOK == 0 {
                ended += self.look();
            }
            self.freed.set(ended);
            let scarce = self.taken().saturating_mul(4) >= self.places().saturating_mul(3);
            if scarce || self.pressure() != Pressure::Normal {
                self.young.borrow().hurry();
            }
            each();
            self.heed();
            if number % PRUNE == 0 {
                self.pool.follow(keep_alive(&self.shared));
                self.pool.prune(&self.shared.addresses);
                self.tell();
            }
        }
    }

    /// Looks at what connections hold and owe, and ends those that hold most where there is no more; how many.
    fn look(&self) -> usize {
        for one in self.connections.borrow().values() {
            one.control.backlog.look();
            one.control.owed.look();
            one.control.under_way.look();
            one.control.look_at_head();
            one.guest().into_iter().for_each(Guest::make_way);
        }
        let is_short = self.shared.load.is_out_of_memory();
        let all = self.connections.borrow();
        let of_all = all.values().cloned();
        let heaviest = self.shared.under_way.heaviest(of_all, is_short, &self.no_room);
        let is_slow = |one: &&Rc<Connection>| {
            one.control.unfinished.get() > SLOW
                && !heaviest.iter().any(|heavy| Rc::ptr_eq(heavy, one))
        };
        let hurried = self.pressure() != Pressure::Normal;
        let slow: Vec<_> = all.values().filter(|_| hurried).filter(is_slow).cloned().collect();
        self.end(&heaviest) + self.end(&slow)
    }

    /// Counts what comes of tries from now on if somebody looks, and no more if nobody does.
    fn heed(&self) {
        let looked = self.shared.watched.is_looked_at();
        if self.looked.replace(looked) && !looked {
            self.counts.forget();
        }
    }

    /// Where tries at endpoints are counted while somebody looks.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Says what its connections are at, where somebody counts.
    fn tell(&self) {
        self.recorder.iter().for_each(Recorder::prune);
        let generation = self.generation();
        let Some(tally) = self.tally(&generation) else { return };
        let (connections, young) = (self.connections.borrow(), self.young.borrow().len());
        let each = connections.values().map(|one| (u64::from(one.requests.get()), one.busy.get()));
        tally.look(each.chain(std::iter::repeat_n((0, 0), young)), self.pool.waiting());
    }

    /// Where this thread counts connections, if somebody asks for their number: `--enable-metrics`, or a snippet.
    pub(crate) fn tally(&self, generation: &Generation) -> Option<&Tally> {
        match &self.recorder {
            Some(recorder) => Some(recorder.tally()),
            None => generation.counts.then_some(&*self.tally),
        }
    }

    /// A connection begins to work on a request.
    pub(crate) fn works(
        &self,
        generation: &Generation,
        connection: &Rc<Connection>,
    ) -> Option<Working> {
        self.tally(generation)?.request();
        Some(connection.work())
    }

    /// Connections and requests of all threads, where somebody counts.
    pub(crate) fn connections(&self) -> Connections {
        let metrics = self.shared.metrics.as_ref();
        metrics.map_or_else(|| self.shared.tallies.connections(), |all| all.connections())
    }

    /// The Configuration in force.
    pub(crate) fn generation(&self) -> Arc<Generation> {
        self.current.borrow_mut().load().clone()
    }

    /// The same for a look at it, which does not outlive another one's coming into force.
    pub(crate) fn with_generation<T>(&self, look: impl FnOnce(&Generation) -> T) -> T {
        look(self.current.borrow_mut().load())
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
    pub(crate) fn names(&self) -> &Names {
        &self.shared.names
    }

    /// Where bodies are kept that are too large for memory.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.shared.scratch
    }

    /// Places for rests of authenticators' answers that are read past.
    pub(crate) fn drains(&self) -> &Room {
        &self.shared.drains
    }

    /// What requests under way hold.
    pub(crate) fn under_way(&self) -> &UnderWay {
        &self.shared.under_way
    }

    /// Databases about addresses.
    pub(crate) fn geoip(&self) -> &GeoIp {
        &self.shared.geoip
    }

    /// Whether connections are kept for further requests: not while the process ends, nor under pressure.
    pub(crate) fn keeps_connections(&self) -> bool {
        !self.leaving.get() && self.pressure() == Pressure::Normal
    }

    /// How hard the process is pressed.
    pub(crate) fn pressure(&self) -> Pressure {
        self.shared.load.pressure()
    }

    /// Whether nothing new is taken on. Whoever has next to nothing to do takes a little, whatever is scarce: the
    /// allocator gives memory back while it is used, and nobody else would ever use it again.
    fn is_overloaded(&self) -> bool {
        self.pressure() == Pressure::Full && self.connections.borrow().len() >= FEW
    }

    /// Whether a request of this connection is turned away; then one more was. Who was let in under full pressure has
    /// one request.
    pub(crate) fn refuses_request(&self, connection: &Connection) -> bool {
        let refuses = self.is_overloaded() && !connection.guest().is_some_and(Guest::asks);
        if refuses {
            self.refused_request(connection);
        }
        refuses
    }

    /// Whether a request of this connection that an upstream sends on is turned away; then one more was. Who was let in
    /// under full pressure may go on.
    #[cold]
    pub(crate) fn refuses_to_go_on(&self, connection: &Connection) -> bool {
        let refuses = self.is_overloaded() && connection.guest().is_none();
        if refuses {
            self.refused_request(connection);
        }
        refuses
    }

    /// Room for a stream of HTTP/2 with this request; none if it is turned away, and then one more was.
    pub(crate) fn takes_up(
        &self,
        connection: &Rc<Connection>,
        request: &Request,
    ) -> Option<Stream> {
        if self.refuses_request(connection) {
            return None;
        }
        let stream = Stream::begin(&self.shared.under_way, connection, Some(request));
        if stream.is_none() {
            self.refused_request(connection);
        }
        stream
    }

    /// Counts a request that is turned away, and tells of it now and then.
    fn refused_request(&self, connection: &Connection) {
        self.shared.load.refused_request();
        if let Some(line) = self.shared.told.line(None, About::Pressure) {
            tracing::warn!(
                client = %connection.peer, before = line.left_out,
                "requests are answered 503: memory or file descriptors are used up, or those under way over HTTP/2 \
                 hold as much as they may, see docs/overload.md (told once a minute; \
                 fairway_requests_refused_total counts)"
            );
        }
    }

    /// Notes a panic of the connection, if there is one before the result is dropped.
    pub(crate) fn witness(&self, peer: SocketAddr, serial: u64) -> Witness {
        Witness { load: self.shared.load.clone(), peer, serial }
    }

    /// The number for the next connection.
    pub(crate) fn next_serial(&self) -> u64 {
        self.shared.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends connections whose clients leave lying what was made for them, or send nothing of what they announced, the
    /// worst ones first; how many.
    fn end_unread(&self) -> usize {
        let mut worst = backlog::worst(self.all().into_iter(), |one| &one.control.backlog);
        worst.extend(owed::worst(self.all().into_iter(), |one| &one.control.owed));
        self.end(&worst)
    }

    /// Ends connections that hold what others need; how many.
    fn end(&self, connections: &[Rc<Connection>]) -> usize {
        connections.iter().for_each(|connection| connection.control.reset());
        self.shared.load.ended_unread(connections.len());
        connections.len()
    }
}

/// Which connections towards upstreams a thread keeps: no more wait than a quarter of what it may have of clients', for
/// those that wait take files from the others.
fn keep_alive(shared: &Shared) -> UpstreamKeepAlive {
    let wanted = shared.current.load().global().upstream_keep_alive;
    let most = (shared.connections.load(Ordering::Relaxed) / IDLE_PART).max(1);
    UpstreamKeepAlive { connections: wanted.connections.min(most), ..wanted }
}
