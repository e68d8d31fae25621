//! What is known about a client's connection, whatever it speaks.

use crate::backlog::Backlog;
use crate::owed::Owed;
use crate::own::{self, Turns};
use crate::tls::Peer;
use bytes::Bytes;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;
use stream::proxy_protocol::Announced;
use tokio::time::Instant;

/// How long a client may take between connecting and sending, if we would rather close.
pub const FRESH: Duration = Duration::from_secs(1);

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number in this process.
    pub serial: u64,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The peer's IP address as text.
    pub peer_text: Bytes,
    /// The address it came to.
    pub local: SocketAddr,
    /// What its PROXY protocol header says.
    pub announced: Option<Announced>,
    /// Its TLS session.
    pub tls: Option<TlsSession>,
    /// When it was accepted.
    pub since: Instant,
    /// Requests so far.
    pub requests: Cell<u64>,
    /// Requests that it is busy with, where somebody counts.
    pub busy: Cell<u32>,
    /// How long it may be idle after the answer at hand, where a snippet says so.
    pub idle: Cell<Option<Duration>>,
    /// It was let in under full pressure.
    pub guest: Option<Guest>,
    closing: Cell<bool>,
    over: Cell<bool>,
    cut: Cell<bool>,
    /// What it holds of answers.
    pub backlog: Backlog,
    /// What it waits for of requests.
    pub owed: Owed,
    /// It comes from this machine's own address.
    hairpin: bool,
    turns: OnceCell<Option<Turns>>,
    waker: RefCell<Option<Waker>>,
}

/// Who was let in under full pressure: one of a few, for one request.
#[derive(Debug)]
pub struct Guest {
    asked: Cell<bool>,
    _place: Rc<()>,
}

impl Guest {
    /// One more of them all.
    pub fn new(all: &Rc<()>) -> Self {
        Self { asked: Cell::new(false), _place: all.clone() }
    }

    /// Whether it may ask: once.
    pub fn asks(&self) -> bool {
        !self.asked.replace(true)
    }
}

/// A TLS session with a client.
#[derive(Clone, Debug, Default)]
pub struct TlsSession {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite's name as OpenSSL spells it.
    pub cipher: String,
    /// The name asked for.
    pub server_name: Option<String>,
    /// The certificate that the client has shown.
    pub client: Option<Peer>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

/// A connection is busy with a request until this is dropped.
#[derive(Debug)]
pub struct Working(Rc<Connection>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(
        serial: u64,
        peer: SocketAddr,
        local: SocketAddr,
        announced: Option<Announced>,
        tls: Option<TlsSession>,
    ) -> Self {
        Self {
            serial,
            peer_text: canonical(peer).ip().to_string().into(),
            peer: canonical(peer),
            local: canonical(local),
            announced,
            tls,
            since: Instant::now(),
            requests: Cell::new(0),
            busy: Cell::new(0),
            idle: Cell::new(None),
            guest: None,
            closing: Cell::new(false),
            over: Cell::new(false),
            cut: Cell::new(false),
            backlog: Backlog::default(),
            owed: Owed::default(),
            hairpin: canonical(peer).ip() == canonical(local).ip(),
            turns: OnceCell::new(),
            waker: RefCell::new(None),
        }
    }

    /// It is at work.
    pub fn work(self: &Rc<Self>) -> Working {
        self.busy.set(self.busy.get() + 1);
        Working(self.clone())
    }

    /// How often its request has come back to this process: zero unless this process sent it. Known once there is a
    /// request.
    pub fn turns(&self) -> u8 {
        if !self.hairpin {
            return 0;
        }
        let turns = self.turns.get_or_init(|| own::turns_of(self.peer));
        turns.as_ref().map_or(0, |turns| turns.load(Ordering::Relaxed))
    }

    /// Asks the connection to end: at once if idle, else after the request it is busy with.
    pub fn close_when_idle(&self) {
        self.closing.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Whether it was asked to end.
    pub fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Says that there is no more time: whoever can take leave in a word does so now.
    pub fn end(&self) {
        self.over.set(true);
        self.close_when_idle();
    }

    /// Ends it at once, whatever it is busy with.
    pub fn cut(&self) {
        self.cut.set(true);
        self.close_when_idle();
    }

    /// Whether it is so young that its first request may still be on its way.
    pub fn is_fresh(&self) -> bool {
        self.requests.get() == 0 && self.since.elapsed() < FRESH
    }

    /// Whether it was asked to end; the task is woken when it is.
    pub fn poll_closing(&self, cx: &Context<'_>) -> bool {
        self.poll_set(&self.closing, cx)
    }

    /// Whether there is no more time; the task is woken when that is so.
    pub fn poll_over(&self, cx: &Context<'_>) -> bool {
        self.poll_set(&self.over, cx)
    }

    /// Whether it must end at once; the task is woken when that is so.
    pub fn poll_cut(&self, cx: &Context<'_>) -> bool {
        self.poll_set(&self.cut, cx)
    }

    fn poll_set(&self, flag: &Cell<bool>, cx: &Context<'_>) -> bool {
        if flag.get() {
            return true;
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        false
    }
}

/// IPv4 addresses that arrive on an IPv6 socket as what they are.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(ip) => SocketAddr::new(ip.to_canonical(), address.port()),
        IpAddr::V4(_) => address,
    }
}
