//! Idle connections of one thread, the most recently used first.

use super::Addresses;
use super::connect::{Connection, Key, Target};
use super::http2::Session;
use foldhash::fast::RandomState;
use model::UpstreamKeepAlive;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wire::{Loan, Room, Wear};

/// The connections of one thread that wait for their next request.
#[derive(Debug)]
pub struct Pool {
    /// The places of all connections towards upstreams, those of all threads together.
    room: Arc<Room>,
    /// What heads that are not whole may hold, on all threads together.
    heads: Arc<Room>,
    idle: RefCell<HashMap<Key, Rc<Waiting>, RandomState>>,
    count: Cell<usize>,
    sessions: RefCell<Sessions>,
    limits: Cell<Option<UpstreamKeepAlive>>,
    /// When the log was last told of a flood.
    told: Cell<Option<Instant>>,
}

/// Sessions of HTTP/2, by where they lead.
type Sessions = HashMap<Key, Vec<Session>, RandomState>;

/// How often the log is told of floods of upstreams.
const TOLD: Duration = Duration::from_secs(60);

/// Connections that wait and may be exchanged for one another, the one last used at the end.
#[derive(Debug, Default)]
pub(super) struct Waiting(RefCell<VecDeque<Idle>>);

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

/// How much of requests and of age a connection takes.
pub(super) fn wear(limits: &UpstreamKeepAlive) -> Wear {
    Wear { requests: limits.requests, age: limits.age }
}

impl Pool {
    /// Keeps nothing yet; connections have their places there.
    pub fn new(room: Arc<Room>) -> Self {
        Self {
            room,
            heads: Arc::new(Room::new(u64::MAX)),
            idle: RefCell::default(),
            count: Cell::default(),
            sessions: RefCell::default(),
            limits: Cell::default(),
            told: Cell::default(),
        }
    }

    /// The same, whose heads that are not whole have this room.
    pub fn with_heads(self, heads: Arc<Room>) -> Self {
        Self { heads, ..self }
    }

    pub(super) fn heads(&self) -> &Arc<Room> {
        &self.heads
    }

    /// A place for one more connection of this namespace. Where there is none, a connection that waits gives way: one
    /// of its own, or of a namespace that has more; first those of HTTP/1, then sessions, the oldest of them.
    pub(super) fn place(&self, whose: &Arc<str>) -> Option<Loan> {
        let loan = self.room.lend(whose);
        let has_one =
            loan.grow(1).is_some() || (self.gives_way(&loan) && loan.grow_in_place(1).is_some());
        has_one.then_some(loan)
    }

    fn gives_way(&self, newcomer: &Loan) -> bool {
        let has = newcomer.of_namespace();
        let may_go = |place: &Loan| place.is_of_same(newcomer) || place.of_namespace() > has;
        self.drop_oldest(may_go) || self.drop_session(may_go)
    }

    /// A connection that waits, unless the endpoint has closed it meanwhile. For requests that may not be sent twice
    /// the system itself is asked, since the event loop may not have heard of the end yet; and just after an answer
    /// without a body, since some send one all the same. Its place is that of whoever uses it, if they may have one
    /// more.
    pub(super) fn take(
        &self,
        target: &Target,
        whose: Option<&Arc<str>>,
        once: bool,
    ) -> Option<Box<Connection>> {
        let idle = self.idle.borrow();
        let mut waiting = idle.get(&target.key())?.0.borrow_mut();
        while let Some(mut entry) = waiting.pop_back() {
            self.count.set(self.count.get() - 1);
            let Connection { io, bodiless, .. } = &mut *entry.connection;
            let asks = once || bodiless.is_some_and(|wake| wake == wire::wake());
            let over = io.is_stale() || (asks && io.is_closed());
            if over {
                continue;
            }
            let Some(whose) = whose.filter(|whose| !entry.connection.place.is_of(whose)) else {
                return Some(entry.connection);
            };
            if self.room.hand_on(&mut entry.connection.place, whose) {
                return Some(entry.connection);
            }
            waiting.push_back(entry);
            self.count.set(self.count.get() + 1);
            return None;
        }
        None
    }

    /// Keeps a connection for later, unless it is worn out or there are enough.
    pub(super) fn put(&self, mut connection: Box<Connection>) {
        let Some(limits) = self.limits.get() else { return };
        let is_worn = wear(&limits).is_reached(connection.requests, connection.since);
        if is_worn || !connection.buffer.is_empty() || limits.connections == 0 {
            return;
        }
        if self.count.get() >= limits.connections {
            self.drop_oldest(|_| true);
        }
        connection.buffer = bytes::BytesMut::new();
        // Where it waited before, mostly, without looking for that.
        let home = connection.home.upgrade().unwrap_or_else(|| {
            let home = self.idle.borrow_mut().entry(connection.key.clone()).or_default().clone();
            connection.home = Rc::downgrade(&home);
            home
        });
        home.0.borrow_mut().push_back(Idle { since: wire::now(), connection });
        self.count.set(self.count.get() + 1);
    }

    /// How many HTTP/1 connections wait.
    pub fn waiting(&self) -> usize {
        self.count.get()
    }

    /// Whether connections are kept at all.
    pub fn keeps(&self) -> bool {
        self.limits.get().is_some_and(|limits| limits.connections > 0)
    }

    /// What keeps connections; none before the first generation.
    pub(super) fn limits(&self) -> Option<UpstreamKeepAlive> {
        self.limits.get()
    }

    pub(super) fn sessions(&self) -> &RefCell<Sessions> {
        &self.sessions
    }

    /// Whether it is time to tell the log of a flood.
    pub(super) fn may_tell_of_flood(&self) -> bool {
        let is_time = self.told.get().is_none_or(|told| told.elapsed() >= TOLD);
        if is_time {
            self.told.set(Some(Instant::now()));
        }
        is_time
    }

    /// Takes the limits of a generation.
    pub fn follow(&self, limits: UpstreamKeepAlive) {
        self.limits.set(Some(limits));
    }

    /// Ends connections that waited too long, that the endpoint closed, or whose endpoint no upstream has any more.
    pub fn prune(&self, wanted: &Addresses) {
        let Some(limits) = self.limits.get() else { return };
        let mut idle = self.idle.borrow_mut();
        idle.retain(|(address, _), waiting| {
            let mut waiting = waiting.0.borrow_mut();
            if !wanted.has(address) {
                waiting.clear();
            }
            waiting.retain_mut(|entry| {
                !wire::is_older(entry.since, limits.idle) && !entry.connection.io.is_stale()
            });
            !waiting.is_empty()
        });
        self.count.set(idle.values().map(|waiting| waiting.0.borrow().len()).sum());
        self.sessions.borrow_mut().retain(|(address, _), sessions| {
            let mut spare = 0;
            sessions.retain(|session| {
                spare += usize::from(!session.is_busy());
                !session.is_over(&limits) && (session.is_busy() || spare <= 1 || session.is_fresh())
            });
            !sessions.is_empty() && wanted.has(address)
        });
    }

    /// Ends all connections that wait.
    pub fn shrink(&self) {
        self.idle.borrow_mut().clear();
        self.count.set(0);
        self.sessions.borrow_mut().retain(|_, sessions| {
            sessions.retain(Session::is_busy);
            !sessions.is_empty()
        });
    }

    /// Ends the session without requests that was used longest ago, of those in such a place; whether there was one.
    fn drop_session(&self, of: impl Fn(&Loan) -> bool) -> bool {
        let mut sessions = self.sessions.borrow_mut();
        let idle = sessions.iter().flat_map(|(key, all)| {
            let all = all.iter().enumerate();
            let idle = all.filter(|(_, session)| !session.is_busy() && of(session.place()));
            idle.map(move |(number, session)| (session.used(), key, number))
        });
        let Some((_, key, number)) = idle.min_by_key(|(used, ..)| *used) else { return false };
        let key = key.clone();
        let Some(all) = sessions.get_mut(&key) else { return false };
        all.remove(number).end();
        true
    }

    /// Ends the connection that has waited longest, of those in such a place; whether there was one.
    fn drop_oldest(&self, of: impl Fn(&Loan) -> bool) -> bool {
        let idle = self.idle.borrow();
        let is_one = |entry: &Idle| of(&entry.connection.place);
        let firsts = idle.values().filter_map(|waiting| {
            let all = waiting.0.borrow();
            let number = all.iter().position(is_one)?;
            Some((all[number].since, waiting, number))
        });
        let Some((_, waiting, number)) = firsts.min_by_key(|(since, ..)| *since) else {
            return false;
        };
        waiting.0.borrow_mut().remove(number);
        self.count.set(self.count.get() - 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, Pool, Room, Target};
    use crate::{TryError, Whom};
    use model::{Global, UpstreamKeepAlive};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::net::TcpListener;

    /// Opens connections for namespaces, of which there may be four.
    struct Fixture {
        pool: Pool,
        target: Target,
        listener: TcpListener,
    }

    impl Fixture {
        async fn new() -> Self {
            let pool = Pool::new(Arc::new(Room::new(4)));
            pool.follow(Global::default().upstream_keep_alive);
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            Self { pool, target: Target { address, tls: None }, listener }
        }

        async fn open(&self, whose: &str) -> Result<Box<Connection>, TryError> {
            let whose: Arc<str> = whose.into();
            let whom = Whom::of(&whose);
            Connection::open(&self.pool, &self.target, whom, Duration::from_secs(5)).await
        }
    }

    #[tokio::test]
    async fn a_namespace_has_half_of_the_places_and_its_idle_connections_give_way() {
        let fixture = Fixture::new().await;
        let first = fixture.open("a").await.expect("half of four are two");
        let _second = fixture.open("a").await.expect("half of four are two");
        let error = fixture.open("a").await.expect_err("there are no more");
        assert!(matches!(error, TryError::Places) && error.is_shortage(), "{error}");
        fixture.pool.put(first);
        let third = fixture.open("a").await.expect("the one that waits gives way");
        assert_eq!(fixture.pool.waiting(), 0);
        fixture.pool.put(third);
        let other = fixture.open("b").await.expect("it has its own half");
        let _another = fixture.open("b").await.expect("it has its own half");
        fixture.open("b").await.expect_err("what others keep is not for who has all that it may");
        assert_eq!(fixture.pool.waiting(), 1);
        fixture.open("c").await.expect("all are taken: the oldest that waits gives way");
        assert_eq!(fixture.pool.waiting(), 0);
        drop(other);
        fixture.open("b").await.expect("who ends one gets another");
    }

    #[tokio::test]
    async fn nothing_is_asked_where_something_lies_behind_an_answer_without_a_body() {
        let fixture = Fixture::new().await;
        for (method, status, reused) in
            [("HEAD", "200", false), ("GET", "304", false), ("GET", "200", true)]
        {
            let mut connection = fixture.open("a").await.expect("there is room");
            let (peer, _) = fixture.listener.accept().await.expect("it is asked");
            peer.writable().await.expect("it takes bytes");
            connection.answered(method == "HEAD" || status == "304");
            fixture.pool.put(connection);
            peer.try_write(b"HTTP/1.1 200 OK\r\n\r\n").expect("the system holds it");
            let taken = fixture.pool.take(&fixture.target, None, false);
            assert_eq!(taken.is_some(), reused, "{method} {status}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_waits_is_from_then_on_that_of_whoever_takes_it() {
        let fixture = Fixture::new().await;
        let names: [Arc<str>; 2] = ["a".into(), "b".into()];
        let take = |whose| fixture.pool.take(&fixture.target, Some(whose), false);
        fixture.pool.put(fixture.open("a").await.expect("there is room"));
        let taken = take(&names[1]).expect("it waits");
        assert!(taken.place.is_of(&names[1]));
        let _second = fixture.open("b").await.expect("half of four are two");
        fixture.pool.put(fixture.open("a").await.expect("it has its own half"));
        assert!(take(&names[1]).is_none(), "who has all that it may takes none of others");
        assert_eq!(fixture.pool.waiting(), 1);
        assert!(take(&names[0]).is_some());
    }

    #[tokio::test]
    async fn sessions_without_requests_give_way_and_their_places_are_free_at_once() {
        let local = tokio::task::LocalSet::new();
        let test = async {
            let Fixture { pool, target, listener: _listener } = Fixture::new().await;
            let (pool, whose) = (std::rc::Rc::new(pool), Arc::<str>::from("a"));
            let open = || crate::http2::open_one(&pool, &target, Whom::of(&whose), false);
            let first = open().await.expect("half of four are two");
            let second = open().await.expect("half of four are two");
            assert!(matches!(open().await, Err(TryError::Places)), "both have a request");
            drop((first, second));
            let third = open().await.expect("the one that waited longest gives way");
            assert_eq!(pool.sessions().borrow().values().map(Vec::len).sum::<usize>(), 2);
            drop(third);
            pool.shrink();
            while pool.room.now().0 > 0 {
                tokio::task::yield_now().await;
            }
        };
        local.run_until(test).await;
    }

    #[tokio::test]
    async fn a_session_that_one_request_had_alone_is_kept_where_connections_are() {
        let local = tokio::task::LocalSet::new();
        let test = async {
            for (connections, kept) in [(320, 1), (0, 0)] {
                let Fixture { pool, target, listener: _listener } = Fixture::new().await;
                let keep_alive = Global::default().upstream_keep_alive;
                pool.follow(UpstreamKeepAlive { connections, ..keep_alive });
                let (pool, whose) = (std::rc::Rc::new(pool), Arc::<str>::from("a"));
                let lease = crate::http2::open_one(&pool, &target, Whom::of(&whose), true).await;
                let all = || pool.sessions().borrow().values().map(Vec::len).sum::<usize>();
                assert_eq!(all(), 0, "nobody else gets it meanwhile");
                drop(lease.expect("there is room"));
                assert_eq!(all(), kept, "of {connections}");
            }
        };
        local.run_until(test).await;
    }
}
