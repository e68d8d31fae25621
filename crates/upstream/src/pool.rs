//! Idle connections of one thread, the most recently used first.

use super::Addresses;
use super::connect::{Connection, Key, Target};
use super::http2::Session;
use foldhash::fast::RandomState;
use model::UpstreamKeepAlive;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// The connections of one thread that wait for their next request.
#[derive(Debug, Default)]
pub struct Pool {
    idle: RefCell<HashMap<Key, VecDeque<Idle>, RandomState>>,
    count: Cell<usize>,
    sessions: RefCell<HashMap<Key, Vec<Session>>>,
    limits: Cell<Option<UpstreamKeepAlive>>,
    /// When the log was last told of a flood.
    told: Cell<Option<Instant>>,
}

/// How often the log is told of floods of upstreams.
const TOLD: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

impl Pool {
    /// A connection that waits, unless the endpoint has closed it meanwhile. For requests that may not be sent twice
    /// the system itself is asked, since the event loop may not have heard of the end yet.
    pub(super) fn take(&self, target: &Target, once: bool) -> Option<Box<Connection>> {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(&target.key())?;
        while let Some(mut entry) = waiting.pop_back() {
            self.count.set(self.count.get() - 1);
            let Connection { io, .. } = &mut *entry.connection;
            let over = io.is_stale() || (once && io.is_closed());
            if !over {
                return Some(entry.connection);
            }
        }
        None
    }

    /// Keeps a connection for later, unless it is worn out or there are enough.
    pub(super) fn put(&self, mut connection: Box<Connection>) {
        let Some(limits) = self.limits.get() else { return };
        let worn =
            connection.requests >= limits.requests || wire::since(connection.since) >= limits.age;
        if worn || !connection.buffer.is_empty() || limits.connections == 0 {
            return;
        }
        if self.count.get() >= limits.connections {
            self.drop_oldest();
        }
        connection.buffer = bytes::BytesMut::new();
        let entry = Idle { since: wire::now(), connection };
        self.idle.borrow_mut().entry(entry.connection.key.clone()).or_default().push_back(entry);
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

    pub(super) fn sessions(&self) -> &RefCell<HashMap<Key, Vec<Session>>> {
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
            if !wanted.has(address) {
                waiting.clear();
            }
            waiting.retain_mut(|entry| {
                wire::since(entry.since) < limits.idle && !entry.connection.io.is_stale()
            });
            !waiting.is_empty()
        });
        self.count.set(idle.values().map(VecDeque::len).sum());
        self.sessions.borrow_mut().retain(|(address, _), sessions| {
            sessions.retain(|session| !session.is_over(&limits));
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

    fn drop_oldest(&self) {
        let mut idle = self.idle.borrow_mut();
        let oldest = idle
            .values_mut()
            .filter(|waiting| !waiting.is_empty())
            .min_by_key(|waiting| waiting[0].since);
        if let Some(waiting) = oldest {
            waiting.pop_front();
            self.count.set(self.count.get() - 1);
        }
    }
}
