//! What is known about a client's connection, whatever it speaks.

use bytes::Bytes;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::own::{self, Hops};
use stream::proxy_protocol::Announced;
use tls::{Peer, TlsSession};
use tokio::time::Instant;
use wire::lane::Lane;
use wire::{Control, canonical};

/// How long a client may take between connecting and sending, if we would rather close.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// Bytes of an authority that is kept: a name of DNS, and a port.
const LONGEST_NAME: usize = 260;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Its number in this process.
    pub serial: u64,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The peer's IP address as text.
    pub peer_text: Bytes,
    /// The address it came to, with the port that clients know.
    pub local: SocketAddr,
    announced: Option<Box<Announced>>,
    /// Its peer is believed about where it comes from.
    pub is_believed: bool,
    /// Its TLS session.
    pub tls: Option<Box<TlsSession>>,
    /// When it was accepted.
    pub since: Instant,
    /// Requests so far.
    pub requests: Cell<u64>,
    /// Requests that it is busy with, where somebody counts.
    pub busy: Cell<u32>,
    /// How long it may be idle after the answer at hand, where a snippet says so.
    pub idle: Cell<Option<Duration>>,
    /// The address of a Gateway that it came in at: whatever changes, nobody else has its requests.
    pub door: Option<SocketAddr>,
    /// It was let in under full pressure.
    pub guest: Option<Box<Guest>>,
    /// How it is told to end, and what it holds and waits for.
    pub control: Rc<Control>,
    /// The port it came to as the system has it, if it may come from this machine.
    hairpin: Option<u16>,
    turns: OnceCell<Option<Hops>>,
    /// The lane of the host that its last request was for.
    pub(crate) lane: Cell<Lane>,
    /// The authority of its last request, and the host in it.
    named: RefCell<Option<(Bytes, Rc<str>)>>,
}

/// How long a guest has a place that others wait for.
const TURN: Duration = Duration::from_secs(5);

/// Who was let in under full pressure: one of a few, for one request.
#[derive(Debug)]
pub(crate) struct Guest {
    asked: Cell<bool>,
    since: Instant,
    place: RefCell<Option<Rc<()>>>,
}

impl Guest {
    /// One more of them all.
    pub(crate) fn new(all: &Rc<()>) -> Self {
        let place = RefCell::new(Some(all.clone()));
        Self { asked: Cell::new(false), since: Instant::now(), place }
    }

    /// Leaves its place to others once it has had its turn; what it asked for goes on.
    pub(crate) fn make_way(&self) {
        if self.since.elapsed() >= TURN {
            self.place.take();
        }
    }

    /// Whether it may ask: once.
    pub(crate) fn asks(&self) -> bool {
        !self.asked.replace(true)
    }
}

/// A connection is busy with a request until this is dropped.
#[derive(Debug)]
pub(crate) struct Working(Rc<Connection>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}

impl Connection {
    /// A connection that was just accepted.
    pub(crate) fn new(
        serial: u64,
        peer: SocketAddr,
        local: SocketAddr,
        announced: Option<Announced>,
        tls: Option<TlsSession>,
    ) -> Self {
        let control: Rc<Control> = Rc::default();
        let shown = tls.as_ref().and_then(|tls| tls.client.as_ref());
        control.certificates.set(shown.map_or(0, Peer::size));
        Self {
            serial,
            peer_text: canonical(peer).ip().to_string().into(),
            peer: canonical(peer),
            local: canonical(local),
            announced: announced.map(Box::new),
            is_believed: false,
            tls: tls.map(Box::new),
            since: Instant::now(),
            requests: Cell::new(0),
            busy: Cell::new(0),
            idle: Cell::new(None),
            door: None,
            guest: None,
            control,
            hairpin: own::may_be_one_machine(peer, local).then_some(local.port()),
            turns: OnceCell::new(),
            lane: Cell::default(),
            named: RefCell::default(),
        }
    }

    /// What its PROXY protocol header says.
    pub(crate) fn announced(&self) -> Option<Announced> {
        self.announced.as_deref().copied()
    }

    /// Where it comes from: as announced, else the peer.
    pub(crate) fn source(&self) -> SocketAddr {
        self.announced.as_ref().map_or(self.peer, |announced| announced.source)
    }

    /// Whose connection it is, where these are counted by addresses: as announced by peers that are believed about it.
    /// Of others nobody knows but the peer: it would choose whose places it takes.
    pub(crate) fn counted_as(&self) -> IpAddr {
        if self.is_believed { self.source().ip() } else { self.peer.ip() }
    }

    /// It came in where listeners of a Gateway are, which clients know by this port; or elsewhere.
    pub(crate) fn enter(&mut self, gateway: Option<(SocketAddr, u16)>) {
        let Some((door, port)) = gateway else { return };
        self.door = Some(door);
        self.local.set_port(port);
    }

    /// It is at work.
    pub(crate) fn work(self: &Rc<Self>) -> Working {
        self.busy.set(self.busy.get() + 1);
        Working(self.clone())
    }

    /// How often its request has come back to this process: zero unless this process sent it. Known once there is a
    /// request.
    pub(crate) fn turns(&self) -> u8 {
        let Some(port) = self.hairpin else { return 0 };
        let mut local = self.local;
        local.set_port(port);
        let turns = self.turns.get_or_init(|| own::hops_of(self.peer, local));
        turns.as_ref().map_or(0, |turns| turns.load(Ordering::Relaxed))
    }

    /// What `read` makes of the authority of the last request that named a host; none: empty.
    pub(crate) fn with_known_authority<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let named = self.named.borrow();
        read(named.as_ref().map_or(b"", |(authority, _)| authority))
    }

    /// The host of an authority, as servers are named. Most requests of a connection name the same one.
    pub(crate) fn host_of(&self, authority: &[u8]) -> Rc<str> {
        let mut named = self.named.borrow_mut();
        if let Some((known, host)) = &*named
            && known == authority
        {
            return host.clone();
        }
        let host = wire::host::parse(authority).map(|host| host.name).unwrap_or_default();
        let host: Rc<str> = host.into();
        if !host.is_empty() && authority.len() <= LONGEST_NAME {
            *named = Some((Bytes::copy_from_slice(authority), host.clone()));
        }
        host
    }

    /// Whether it is so young that its first request may still be on its way.
    pub(crate) fn is_fresh(&self) -> bool {
        self.requests.get() == 0 && self.since.elapsed() < FRESH
    }
}
