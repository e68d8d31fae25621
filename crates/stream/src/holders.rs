//! Who holds places, and who has to give one up: the quietest of whoever holds most, by namespace, then by port, then
//! by the address of the client. Where memory is short, whoever holds bytes that nobody takes.

use model::StreamPort;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use system::sockets;
use tokio::sync::Notify;

/// Milliseconds for which whoever's client has said nothing yet counts as quiet longer than it is. Those that are
/// quiet for longer go first all the same: who has just come may still be about to speak.
const SAID: u64 = 60_000;

/// Nothing waits to be taken.
const FLOWS: u64 = u64::MAX;

/// Who is to take bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// The client, what its endpoint says.
    Client,
    /// The endpoint, what its client says.
    Endpoint,
}

/// Whose a place is.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) namespace: Arc<str>,
    pub(crate) port: StreamPort,
    pub(crate) client: IpAddr,
}

impl Holder {
    /// That of a client of a port.
    pub(crate) fn new(namespace: &Arc<str>, port: StreamPort, client: IpAddr) -> Self {
        Self { namespace: namespace.clone(), port, client: sockets::party(client) }
    }
}

/// When something moved last, in milliseconds, and a number that nobody else has.
type Stamp = (u64, u64);

/// What is known of whoever has a place.
#[derive(Debug)]
pub(crate) struct Seat {
    number: u64,
    came: u64,
    moved: AtomicU64,
    /// The move by which it stands in the list: later ones are noted there once it is its turn to go.
    listed: AtomicU64,
    /// Since when bytes wait that the client does not take, and that the endpoint does not take; [`FLOWS`]: none do.
    stalled: [AtomicU64; 2],
    /// Told once somebody else has the place.
    pub(crate) lost: Notify,
}

impl Seat {
    pub(crate) fn new(number: u64, now: u64) -> Arc<Self> {
        let (moved, listed) = (AtomicU64::new(now), AtomicU64::new(now));
        let stalled = [AtomicU64::new(FLOWS), AtomicU64::new(FLOWS)];
        Arc::new(Self { number, came: now, moved, listed, stalled, lost: Notify::new() })
    }

    /// Something came from the client.
    pub(crate) fn heard(&self, now: u64) {
        self.moved.store(now + SAID, Ordering::Relaxed);
    }

    /// Something went to the client, which counts once that has spoken.
    pub(crate) fn told(&self, now: u64) {
        if self.moved.load(Ordering::Relaxed) != self.came {
            self.heard(now);
        }
    }

    /// Bytes wait that one side does not take now.
    pub(crate) fn stalls(&self, side: Side, now: u64) {
        let since = &self.stalled[side as usize];
        if since.load(Ordering::Relaxed) == FLOWS {
            since.store(now, Ordering::Relaxed);
        }
    }

    /// That side took some.
    pub(crate) fn flows(&self, side: Side) {
        let since = &self.stalled[side as usize];
        if since.load(Ordering::Relaxed) != FLOWS {
            since.store(FLOWS, Ordering::Relaxed);
        }
    }

    /// Since when a side has taken nothing of what waits for it.
    fn stalled_since(&self) -> u64 {
        let [client, endpoint] = &self.stalled;
        client.load(Ordering::Relaxed).min(endpoint.load(Ordering::Relaxed))
    }

    /// The stamp that it should stand by.
    fn stamp(&self) -> Stamp {
        (self.moved.load(Ordering::Relaxed), self.number)
    }
}

/// Who has to give way to a newcomer.
#[derive(Debug)]
pub(crate) struct Loser {
    pub(crate) whose: Holder,
    pub(crate) seat: Arc<Seat>,
    /// The newcomer will hold as much as whoever loses one.
    pub(crate) equal: bool,
    moved: u64,
}

impl Loser {
    /// Whether it has spoken, and moved within so many milliseconds.
    pub(crate) fn is_busy(&self, now: u64, within: u64) -> bool {
        self.moved + within > now + SAID
    }
}

/// All places that are taken.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    taken: usize,
    namespaces: HashMap<Arc<str>, Share>,
}

#[derive(Debug, Default)]
struct Share {
    taken: usize,
    ports: HashMap<StreamPort, Clients>,
}

/// The clients of one port.
#[derive(Debug, Default)]
struct Clients {
    taken: usize,
    seats: HashMap<IpAddr, BTreeMap<Stamp, Arc<Seat>>>,
    /// Each of them, by how much it holds and by the first of its stamps.
    order: BTreeSet<(Reverse<usize>, Stamp, IpAddr)>,
}

impl Shares {
    /// How many there are.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Those of a namespace.
    pub(crate) fn of(&self, namespace: &Arc<str>) -> usize {
        self.namespaces.get(namespace).map_or(0, |share| share.taken)
    }

    /// Notes one more.
    pub(crate) fn enter(&mut self, whose: &Holder, seat: Arc<Seat>) {
        let share = self.namespaces.entry(whose.namespace.clone()).or_default();
        let clients = share.ports.entry(whose.port).or_default();
        clients.change(whose.client, |seats| list(seats, seat));
        share.taken += 1;
        self.taken += 1;
    }

    /// Takes one out; whether it was still there.
    pub(crate) fn leave(&mut self, whose: &Holder, seat: &Seat) -> bool {
        let Some(share) = self.namespaces.get_mut(&whose.namespace) else { return false };
        let Some(clients) = share.ports.get_mut(&whose.port) else { return false };
        let stamp = (seat.listed.load(Ordering::Relaxed), seat.number);
        let mut left = false;
        clients.change(whose.client, |seats| left = seats.remove(&stamp).is_some());
        if left {
            if clients.taken == 0 {
                share.ports.remove(&whose.port);
            }
            share.taken -= 1;
            if share.taken == 0 {
                self.namespaces.remove(&whose.namespace);
            }
            self.taken -= 1;
        }
        left
    }

    /// Those of whom a side has taken nothing since before `until`, though something waits for it: whoever waits for
    /// longest first.
    pub(crate) fn stalled(&self, until: u64) -> Vec<(Holder, Arc<Seat>)> {
        let mut all = Vec::new();
        for (namespace, share) in &self.namespaces {
            for (port, clients) in &share.ports {
                for (client, seats) in &clients.seats {
                    let stalled = seats.values().filter(|seat| seat.stalled_since() < until);
                    let whose =
                        || Holder { namespace: namespace.clone(), port: *port, client: *client };
                    all.extend(stalled.map(|seat| (whose(), seat.clone())));
                }
            }
        }
        all.sort_by_key(|(_, seat)| seat.stalled_since());
        all
    }

    /// Who goes for a newcomer, which counts among its own: they lose a place before others who hold as much. Where
    /// nobody comes, the quietest of whoever holds most.
    pub(crate) fn loser(&mut self, newcomer: Option<&Holder>) -> Option<Loser> {
        let all = self.namespaces.iter().map(|(namespace, share)| (namespace, share.taken));
        let (namespace, equal) = most(all, newcomer.map(|newcomer| &newcomer.namespace))?;
        let namespace = namespace.clone();
        let share = self.namespaces.get_mut(&namespace)?;
        let all = share.ports.iter().map(|(port, clients)| (port, clients.taken));
        let (port, equal) = most(all, newcomer.filter(|_| equal).map(|newcomer| &newcomer.port))?;
        let port = *port;
        let clients = share.ports.get_mut(&port)?;
        let (client, seat, moved, equal) =
            clients.quietest(newcomer.filter(|_| equal).map(|newcomer| newcomer.client))?;
        Some(Loser { whose: Holder { namespace, port, client }, seat, equal, moved })
    }
}

/// Who holds most once the newcomer is among its own, preferably these; and whether these hold as much then.
fn most<'a, K: PartialEq>(
    all: impl Iterator<Item = (&'a K, usize)>,
    own: Option<&K>,
) -> Option<(&'a K, bool)> {
    let with_newcomer = |(key, taken)| (taken + usize::from(own == Some(key)), own == Some(key));
    let (key, taken) = all.max_by_key(|one| with_newcomer(*one))?;
    let equal = own.is_some_and(|own| own == key || taken <= 1);
    Some((key, equal))
}

fn list(seats: &mut BTreeMap<Stamp, Arc<Seat>>, seat: Arc<Seat>) {
    let stamp = seat.stamp();
    seat.listed.store(stamp.0, Ordering::Relaxed);
    seats.insert(stamp, seat);
}

impl Clients {
    /// Changes the places of a client, and what follows from them.
    fn change(&mut self, client: IpAddr, change: impl FnOnce(&mut BTreeMap<Stamp, Arc<Seat>>)) {
        let first = |seats: &BTreeMap<Stamp, _>| seats.first_key_value().map(|(first, _)| *first);
        let seats = self.seats.entry(client).or_default();
        let before = seats.len();
        if let Some(first) = first(seats) {
            self.order.remove(&(Reverse(before), first, client));
        }
        change(seats);
        let after = seats.len();
        self.taken = self.taken - before + after;
        match first(seats) {
            Some(first) => {
                self.order.insert((Reverse(after), first, client));
            }
            None => {
                self.seats.remove(&client);
            }
        }
    }

    /// The place that was quiet for longest among those of whoever holds most, as in [`Shares::loser`]. Each look that
    /// finds another one follows a move, so that there are no more of them than moves.
    fn quietest(&mut self, own: Option<IpAddr>) -> Option<(IpAddr, Arc<Seat>, u64, bool)> {
        loop {
            let &(Reverse(most), _, first) = self.order.first()?;
            let held = own.and_then(|own| self.seats.get(&own)).map_or(0, BTreeMap::len);
            let equal = own.is_some() && held + 1 >= most;
            let client = own.filter(|_| equal && held > 0).unwrap_or(first);
            let (listed, seat) = self.seats.get(&client)?.first_key_value()?;
            let (listed, seat, stamp) = (*listed, seat.clone(), seat.stamp());
            if stamp <= listed {
                return Some((client, seat, stamp.0, equal));
            }
            self.change(client, |seats| {
                seats.remove(&listed);
                list(seats, seat);
            });
        }
    }
}
