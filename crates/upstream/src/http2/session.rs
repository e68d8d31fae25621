//! Sessions that requests share, and what each may take of one: what a request leaves lying, or breaks, must not be
//! what others need (RFC 9113 sections 5.2.2 and 10.5).

use super::heads::Heads;
use crate::connect::Key;
use crate::pool::wear;
use crate::{Connection, Pool, Target, TryError, Whom};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use model::UpstreamKeepAlive;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;
use stream::own::Own;
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::http2::{AllIncoming, Budget, Guarded, Incoming, LONGEST_HEAD, UpstreamFrames};
use wire::{Control, Loan};

/// Requests that share one session at most, whatever the upstream allows.
const STREAMS: u32 = 100;
/// How long a session may take to end that nobody uses any more.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long sessions stay beside another one that has room for all: a burst opens many at once.
const SPARE: Duration = Duration::from_secs(5);
/// Bytes of an answer that may come before its client takes any.
const WINDOW: u32 = 64 << 10;
/// Bytes of a body that may lie in a window that others need, too: a quarter of the smallest one (RFC 9113 section
/// 6.9.2).
pub(super) const SMALL: usize = 16 << 10;
/// Bytes of its window that a session takes at least that a request gets alone: servers give back what they have read
/// once it is half of the smallest one.
const PLENTY: usize = 32 << 10;
/// A session of which nothing was heard for so long, while a request waited that was given up, gets no other one.
const SILENCE: Duration = Duration::from_secs(1);
/// Requests that were broken off, after which a session gets no other one: servers end those that have more, with all
/// that is on them (Netty: 200 within 30 s).
const RESETS: u32 = 50;
/// Pieces of bodies without a byte, after which it gets no other one, either: the h2 crate ends a connection with more
/// than 100 of them, with all that is on it.
const EMPTY: u32 = 50;

/// Requests that a session has numbers for: 31 bits, and a client's are odd (RFC 9113 section 5.1.1).
const IDS: u64 = 1 << 30;

/// An HTTP/2 connection to an endpoint.
#[derive(Debug)]
pub(crate) struct Session {
    sender: SendRequest<Bytes>,
    since: Instant,
    used: Cell<Instant>,
    requests: Cell<u64>,
    /// One more than the requests in flight.
    load: Rc<Load>,
    shared: Rc<Shared>,
    /// It leads to this machine.
    own: Option<Own>,
    /// Its place among all connections towards upstreams.
    place: Rc<Loan>,
}

/// What all who use a session know of it.
#[derive(Debug)]
struct Shared {
    /// Whether it may get requests: not when its connection is gone, broken or silent.
    alive: Cell<bool>,
    /// Bytes of its window that are kept for requests.
    kept: Cell<usize>,
    /// Requests that were broken off.
    resets: Cell<u32>,
    /// What the upstream sends.
    frames: Rc<UpstreamFrames>,
    /// Answers that are coming in. Clients need not take theirs: the h2 crate ends a session with all that is on it
    /// where too many small pieces lie.
    answers: AllIncoming<Incoming>,
    /// The head or the trailers that are coming in.
    heads: Heads,
}

impl Shared {
    fn new(frames: Rc<UpstreamFrames>, heads: Heads) -> Self {
        Self {
            alive: Cell::new(true),
            kept: Cell::default(),
            resets: Cell::default(),
            frames,
            answers: AllIncoming::default(),
            heads,
        }
    }

    /// Drives its connection to the end, or until there is no room for what comes in.
    async fn drive(&self, connection: &mut (impl Future + Unpin)) {
        poll_fn(|cx| {
            let ended = Pin::new(&mut *connection).poll(cx);
            if self.frames.loose.is_scattered() {
                self.answers.gather();
                self.frames.loose.gathered();
            }
            if self.heads.have_room(&self.frames) { ended.map(drop) } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Drives one that nobody uses any more. Whoever is in the midst of a head has nothing to say that anybody waits
    /// for.
    async fn take_leave(&self, connection: &mut (impl Future + Unpin)) {
        if self.frames.head.stream().is_none() {
            let _ = tokio::time::timeout(FAREWELL, self.drive(connection)).await;
        }
    }
}

/// Says when nobody holds it any more: the pool has no such session, and no request is on it.
#[derive(Debug, Default)]
struct Load(Rc<Notify>);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// What a request may leave lying in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// So many bytes of its window, which are few.
    Bytes(usize),
    /// Nobody knows how much: it gets a session of its own.
    Any,
}

/// The part of a session that a request has.
#[derive(Debug)]
pub(super) struct Claim {
    shared: Rc<Shared>,
    _load: Rc<Load>,
    /// What it has alone.
    alone: Option<Alone>,
    /// Bytes of the window that are kept for it.
    kept: Cell<usize>,
    /// Whether the upstream has said its last word.
    is_over: Cell<bool>,
    since: Instant,
    /// Its stream, once it has one.
    stream: Cell<Option<u32>>,
}

/// A session that one request has alone: it is in no pool meanwhile, and goes back to its own.
#[derive(Debug)]
struct Alone {
    session: Session,
    pool: Weak<Pool>,
    key: Key,
}

impl Claim {
    /// That of a request among others, for which so many bytes of the window are kept.
    fn beside_others(session: &Session, bytes: usize) -> Rc<Self> {
        let Session { shared, load, .. } = session;
        shared.kept.set(shared.kept.get() + bytes);
        Self::new(shared.clone(), load.clone(), bytes, None)
    }

    /// That of a request that has all of it.
    fn alone(session: Session, pool: &Rc<Pool>, target: &Target) -> Rc<Self> {
        let (shared, load) = (session.shared.clone(), session.load.clone());
        let alone = Alone { session, pool: Rc::downgrade(pool), key: target.key() };
        Self::new(shared, load, 0, Some(alone))
    }

    fn new(shared: Rc<Shared>, load: Rc<Load>, kept: usize, alone: Option<Alone>) -> Rc<Self> {
        let (kept, is_over, since) = (Cell::new(kept), Cell::default(), wire::now());
        let stream = Cell::default();
        Rc::new(Self { shared, _load: load, alone, kept, is_over, since, stream })
    }

    /// The request goes out on this stream.
    pub(super) fn asked(&self, stream: h2::StreamId, book: Option<&Rc<Control>>) {
        let stream = stream.as_u32();
        self.stream.set(Some(stream));
        if let Some(book) = book {
            self.shared.heads.asked(stream, book);
        }
    }

    /// Whether the session ended since there was no room for a head.
    pub(super) fn has_no_room(&self) -> bool {
        self.shared.heads.are_refused()
    }

    /// Whether the upstream is in the midst of a head for it.
    fn is_being_told(&self) -> bool {
        let stream = self.shared.frames.head.stream();
        stream.is_some() && (self.alone.is_some() || stream == self.stream.get())
    }

    /// So many bytes of the body went to the session.
    pub(super) fn sent(&self, bytes: usize) {
        self.shared.frames.seen.gone(bytes);
        self.give_back(bytes);
    }

    fn give_back(&self, bytes: usize) {
        let bytes = bytes.min(self.kept.get());
        self.kept.set(self.kept.get() - bytes);
        self.shared.kept.set(self.shared.kept.get() - bytes);
    }

    /// An answer that is coming in.
    pub(super) fn incoming(&self, stream: RecvStream) -> Rc<Incoming> {
        let incoming = Rc::new(Incoming::new(stream));
        self.shared.answers.add(&incoming);
        incoming
    }

    /// What the upstream may send that is of no use.
    pub(super) fn budget(&self) -> &Budget {
        &self.shared.frames.budget
    }

    /// The upstream has said its last word: nothing is broken off.
    pub(super) fn over(&self) {
        self.is_over.set(true);
    }

    /// The session as a whole fails: it serves no other request.
    pub(super) fn broken(&self) {
        self.shared.alive.set(false);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_back(usize::MAX);
        // Of a request that waited for a stream the h2 crate sends the head all the same, and breaks it off then.
        if !self.is_over.get() {
            self.shared.resets.set(self.shared.resets.get().saturating_add(1));
            // Whoever's patience it was that ended: a session of which nothing at all is heard may be dead.
            if self.shared.frames.seen.heard() <= self.since && wire::since(self.since) >= SILENCE {
                self.broken();
            }
        }
        self.stream.get().into_iter().for_each(|stream| self.shared.heads.gone(stream));
        // What is there of it would lie in a session that waits for the next request.
        if self.is_being_told() {
            self.broken();
        }
        let Some(Alone { session, pool, key }) = self.alone.take() else { return };
        let is_kept = |pool: &Rc<Pool>| pool.keeps() && self.shared.alive.get();
        if let Some(pool) = pool.upgrade().filter(is_kept) {
            pool.sessions().borrow_mut().entry(key).or_default().push(session);
        }
    }
}

impl Session {
    /// Its place.
    pub(crate) fn place(&self) -> &Loan {
        &self.place
    }

    /// When it was used last.
    pub(crate) fn used(&self) -> Instant {
        self.used.get()
    }

    /// Whether it was used just now, so that it may be again.
    pub(crate) fn is_fresh(&self) -> bool {
        self.used.get().elapsed() < SPARE
    }

    /// Ends it for somebody who gets its place at once; what it still has to say goes out within a moment.
    pub(crate) fn end(self) {
        self.place.give_back();
    }

    /// Whether it may go: broken, worn out, or idle for too long.
    pub(crate) fn is_over(&self, limits: &UpstreamKeepAlive) -> bool {
        let is_kept = limits.connections > 0 && !wire::is_older(self.used.get(), limits.idle);
        let idle = !self.is_busy() && !is_kept;
        !self.shared.alive.get()
            || idle
            || self.is_stuck()
            || (self.is_worn(limits) && !self.is_busy())
    }

    /// Whether its upstream is in the midst of a head that nobody waits for.
    fn is_stuck(&self) -> bool {
        !self.is_busy() && self.shared.frames.head.stream().is_some()
    }

    /// Whether it gets no further requests, and goes once those on it are over.
    fn is_worn(&self, limits: &UpstreamKeepAlive) -> bool {
        wear(limits).is_reached(self.requests.get(), self.since)
            || self.shared.resets.get() >= RESETS
            || self.shared.frames.seen.empty() >= EMPTY
    }

    /// Whether requests are on their way.
    pub(crate) fn is_busy(&self) -> bool {
        Rc::strong_count(&self.load) > 1
    }

    fn has_room(&self, part: Part, limits: &UpstreamKeepAlive) -> bool {
        let Shared { alive, kept, frames, .. } = &*self.shared;
        let takes = |bytes| {
            i64::try_from(kept.get() + bytes).is_ok_and(|wanted| wanted <= frames.seen.window())
        };
        let fits = match part {
            // What requests before it left lying may not have been taken yet.
            Part::Any => !self.is_busy() && takes(PLENTY),
            Part::Bytes(0) => true,
            Part::Bytes(bytes) => takes(bytes),
        };
        fits && alive.get()
            && !self.is_stuck()
            && !self.is_worn(limits)
            && Rc::strong_count(&self.load)
                <= (STREAMS as usize).min(self.sender.current_max_send_streams())
            && self.requests.get() < IDS
    }
}

/// A place in a session.
pub(crate) struct Lease {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) claim: Rc<Claim>,
    /// It leads to this machine.
    pub(super) own: bool,
}

/// A place in a session that has room for this part, or in a new one; and whether it was there before.
pub(super) async fn lease(
    pool: &Rc<Pool>,
    target: &Target,
    whom: Whom<'_>,
    part: Part,
    limit: Duration,
) -> Result<(Lease, bool), TryError> {
    match shared(pool, target, part) {
        Some(lease) => Ok((lease, true)),
        None => Ok((open(pool, target, whom, part, limit).await?, false)),
    }
}

/// A place in a session that has room.
fn shared(pool: &Rc<Pool>, target: &Target, part: Part) -> Option<Lease> {
    let limits = pool.limits()?;
    let mut sessions = pool.sessions().borrow_mut();
    let all = sessions.get_mut(&target.key())?;
    let has_room = |session: &Session| session.has_room(part, &limits);
    // Those that are shared come first, those without requests last.
    let number = match part {
        Part::Bytes(_) => all.iter().position(has_room),
        Part::Any => all.iter().rposition(has_room),
    }?;
    let session = &all[number];
    session.requests.set(session.requests.get() + 1);
    session.used.set(wire::now());
    let (sender, own) = (session.sender.clone(), session.own.is_some());
    let claim = match part {
        Part::Bytes(bytes) => Claim::beside_others(session, bytes),
        Part::Any => Claim::alone(all.swap_remove(number), pool, target),
    };
    Some(Lease { sender, claim, own })
}

/// Makes a session; its connection is driven by a task of this thread.
async fn open(
    pool: &Rc<Pool>,
    target: &Target,
    whom: Whom<'_>,
    part: Part,
    limit: Duration,
) -> Result<Lease, TryError> {
    let Connection { io, own, place, .. } = *Connection::open(pool, target, whom, limit).await?;
    let (guarded, frames) = Guarded::upstream(io.into_io());
    let handshake = h2::client::Builder::new()
        .enable_push(false)
        .initial_window_size(WINDOW)
        // All answers together: clients that do not take theirs leave the others of the session what is theirs.
        .initial_connection_window_size(STREAMS * WINDOW)
        .max_header_list_size(LONGEST_HEAD)
        .handshake(guarded);
    let handshake = tokio::time::timeout(limit, handshake).await;
    let (sender, connection) =
        handshake.map_err(|_| TryError::Timeout("starting HTTP/2"))?.map_err(TryError::Http2)?;
    let heads = Heads::new(pool.heads().clone(), whom.namespace.cloned().unwrap_or_default());
    let shared = Rc::new(Shared::new(frames, heads));
    let (of_all, address, at) = (shared.clone(), target.address, Rc::downgrade(pool));
    let load = Rc::new(Load::default());
    let (gone, place) = (load.0.clone(), Rc::new(place));
    let held = place.clone();
    tokio::task::spawn_local(async move {
        let mut connection = pin!(connection);
        tokio::select! {
            () = of_all.drive(&mut connection) => {}
            // An upstream that reads nothing keeps no connection that nobody uses.
            () = gone.notified() => of_all.take_leave(&mut connection).await,
        }
        held.give_back();
        of_all.alive.set(false);
        if of_all.frames.budget.is_spent()
            && at.upgrade().is_some_and(|pool| pool.may_tell_of_flood())
        {
            tracing::warn!(%address, "an upstream sends frames of HTTP/2 that are of no use, and its session is ended: look at what runs at this address (told once a minute by each thread)");
        }
    });
    let (leads_back, now) = (own.is_some(), Instant::now());
    let session = Session {
        sender: sender.clone(),
        since: now,
        used: Cell::new(now),
        requests: Cell::new(1),
        load,
        shared,
        own,
        place,
    };
    let claim = match part {
        Part::Any => Claim::alone(session, pool, target),
        Part::Bytes(bytes) => {
            let claim = Claim::beside_others(&session, bytes);
            let mut sessions = pool.sessions().borrow_mut();
            sessions.entry(target.key()).or_default().insert(0, session);
            claim
        }
    };
    Ok(Lease { sender, claim, own: leads_back })
}

#[cfg(test)]
impl Claim {
    /// That of the only request of a session.
    pub(super) fn of_one(frames: Rc<UpstreamFrames>) -> Rc<Self> {
        use {std::sync::Arc, wire::Room};
        let heads = Heads::new(Arc::new(Room::new(u64::MAX)), Arc::default());
        Self::new(Rc::new(Shared::new(frames, heads)), Rc::default(), 0, None)
    }
}

/// Makes a session for a request without a body, or for one that gets it alone.
#[cfg(test)]
pub(crate) async fn open_one(
    pool: &Rc<Pool>,
    target: &Target,
    whom: Whom<'_>,
    alone: bool,
) -> Result<Lease, TryError> {
    let part = if alone { Part::Any } else { Part::Bytes(0) };
    open(pool, target, whom, part, Duration::from_secs(5)).await
}
