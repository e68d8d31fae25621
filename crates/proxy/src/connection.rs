//! What is known about a client's connection, whatever it speaks.

use crate::known::Known;
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
use upstream::Cause;
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
    rare: Option<Box<Rare>>,
    /// Its peer is believed about where it comes from.
    pub is_believed: bool,
    /// Its TLS session.
    pub tls: Option<Box<TlsSession>>,
    /// When it was accepted.
    pub since: Instant,
    /// Requests so far.
    pub requests: Cell<u32>,
    /// Requests that it is busy with, where somebody counts.
    pub busy: Cell<u32>,
    /// Milliseconds that it may be idle after the answer at hand, where a snippet says so.
    idle: Cell<Option<u32>>,
    /// How it is told to end, and what it holds and waits for.
    pub control: Rc<Control>,
    /// The port it came to as the system has it, if it may come from this machine.
    hairpin: Option<u16>,
    hops: OnceCell<Option<Hops>>,
    /// The lane of the host that its last request was for.
    pub(crate) lane: Cell<Lane>,
    /// What its last request named.
    known: RefCell<Option<Rc<Known>>>,
}

/// What few connections have: room for it would be in all of them.
#[derive(Debug, Default)]
struct Rare {
    announced: Option<Announced>,
    door: Option<SocketAddr>,
    guest: Option<Guest>,
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
        if !self.has_turn() {
            self.place.take();
        }
    }

    /// Whether it still has its turn.
    pub(crate) fn has_turn(&self) -> bool {
        self.since.elapsed() < TURN
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
            rare: announced
                .map(|announced| Box::new(Rare { announced: Some(announced), ..Rare::default() })),
            is_believed: false,
            tls: tls.map(Box::new),
            since: Instant::now(),
            requests: Cell::new(0),
            busy: Cell::new(0),
            idle: Cell::new(None),
            control,
            hairpin: own::may_be_one_machine(peer, local).then_some(local.port()),
            hops: OnceCell::new(),
            lane: Cell::default(),
            known: RefCell::default(),
        }
    }

    /// What its PROXY protocol header says.
    pub(crate) fn announced(&self) -> Option<Announced> {
        self.rare.as_ref()?.announced
    }

    /// Where it comes from: as announced, else the peer.
    pub(crate) fn source(&self) -> SocketAddr {
        self.announced().map_or(self.peer, |announced| announced.source)
    }

    /// The address of a Gateway that it came in at: whatever changes, nobody else has its requests.
    pub(crate) fn door(&self) -> Option<SocketAddr> {
        self.rare.as_ref()?.door
    }

    /// Who it is of those that were let in under full pressure.
    pub(crate) fn guest(&self) -> Option<&Guest> {
        self.rare.as_ref()?.guest.as_ref()
    }

    /// Lets it in under full pressure.
    pub(crate) fn let_in(&mut self, guest: Guest) {
        self.rare.get_or_insert_default().guest = Some(guest);
    }

    /// A copy came in where this address of a Gateway is.
    pub(crate) fn came_to(&mut self, door: SocketAddr) {
        self.rare.get_or_insert_default().door = Some(door);
    }

    /// Keeps it so long while it is idle after the answer at hand.
    pub(crate) fn keep_idle_for(&self, idle: Option<Duration>) {
        self.idle.set(idle.map(|idle| idle.as_millis().try_into().unwrap_or(u32::MAX)));
    }

    /// What was said last about that.
    pub(crate) fn take_idle(&self) -> Option<Duration> {
        self.idle.take().map(|idle| Duration::from_millis(idle.into()))
    }

    /// Whose connection it is, where these are counted by addresses: as announced by peers that are believed about it.
    /// Of others nobody knows but the peer: it would choose whose places it takes.
    pub(crate) fn counted_as(&self) -> IpAddr {
        if self.is_believed { self.source().ip() } else { self.peer.ip() }
    }

    /// It came in where listeners of a Gateway are, which clients know by this port; or elsewhere.
    pub(crate) fn enter(&mut self, gateway: Option<(SocketAddr, u16)>) {
        let Some((door, port)) = gateway else { return };
        self.came_to(door);
        self.local.set_port(port);
    }

    /// It is at work.
    pub(crate) fn work(self: &Rc<Self>) -> Working {
        self.busy.set(self.busy.get() + 1);
        Working(self.clone())
    }

    /// How often its request has come back to this process: zero unless this process sent it. Known once there is a
    /// request.
    pub(crate) fn hops(&self) -> u8 {
        let Some(port) = self.hairpin else { return 0 };
        let mut local = self.local;
        local.set_port(port);
        let hops = self.hops.get_or_init(|| own::hops_of(self.peer, local));
        hops.as_ref().map_or(0, |hops| hops.load(Ordering::Relaxed))
    }

    /// Its request, as what is sent for it knows it.
    pub(crate) fn cause(&self) -> Cause<'_> {
        Cause { hops: self.hops(), book: Some(&self.control) }
    }

    /// What `read` makes of the authority of the last request that named a host; none: empty.
    pub(crate) fn with_known_authority<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let known = self.known.borrow();
        read(known.as_ref().map_or(b"", |known| known.authority()))
    }

    /// What is known of an authority by the Configuration of this number.
    #[inline]
    pub(crate) fn known(&self, authority: &[u8], generation: u64) -> Rc<Known> {
        if let Some(known) = &*self.known.borrow()
            && known.is_of(generation)
            && known.authority() == authority
        {
            return known.clone();
        }
        self.learns(authority, generation)
    }

    #[inline(never)]
    fn learns(&self, authority: &[u8], generation: u64) -> Rc<Known> {
        let known = Rc::new(Known::new(authority, host_of(authority).into(), generation));
        if !known.host.is_empty() && authority.len() <= LONGEST_NAME {
            *self.known.borrow_mut() = Some(known.clone());
        }
        known
    }

    /// Keeps nothing of its last request: it is idle.
    pub(crate) fn forget(&self) {
        self.known.take();
    }

    /// Whether it is so young that its first request may still be on its way.
    pub(crate) fn is_fresh(&self) -> bool {
        self.requests.get() == 0 && self.since.elapsed() < FRESH
    }
}

/// The host of an authority, as servers are named; empty where it has none.
pub(crate) fn host_of(authority: &[u8]) -> String {
    wire::host::parse(authority).map(|host| host.name.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Connection;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::rc::Rc;
    use std::time::Duration;

    fn connection() -> Connection {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Connection::new(1, at(50_000), at(80), None, None)
    }

    #[test]
    fn the_last_host_is_known_by_its_authority_as_it_came_and_by_the_configuration() {
        let connection = connection();
        let authority = || connection.with_known_authority(|known| known.to_vec());
        for (named, host) in [
            ("demo.test", "demo.test"),
            ("Demo.test:80", "demo.test"),
            ("other.test", "other.test"),
        ] {
            let known = connection.known(named.as_bytes(), 1);
            assert_eq!(&*known.host, host);
            assert_eq!(authority(), named.as_bytes());
            assert!(Rc::ptr_eq(&known, &connection.known(named.as_bytes(), 1)));
            assert!(!Rc::ptr_eq(&known, &connection.known(named.as_bytes(), 2)));
        }
        assert_eq!(&*connection.known(b"", 2).host, "", "nobody's");
        assert_eq!(authority(), b"other.test");
        connection.forget();
        assert_eq!(authority(), b"");
    }

    #[test]
    fn how_long_it_keep_idle_for_is_taken_once() {
        let connection = connection();
        assert_eq!(connection.take_idle(), None);
        for idle in [0, 1, 75_000] {
            connection.keep_idle_for(Some(Duration::from_millis(idle)));
            assert_eq!(connection.take_idle(), Some(Duration::from_millis(idle)));
            assert_eq!(connection.take_idle(), None);
        }
        connection.keep_idle_for(Some(Duration::MAX));
        assert!(connection.take_idle() > Some(Duration::from_secs(40 * 24 * 60 * 60)));
    }
}
