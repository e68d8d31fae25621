//! Connections of this process to its own machine. What comes over one of them was sent by this process: it goes round,
//! and not for ever.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;

/// Times that something may come back: to an authenticator behind the same address, and to one of that.
pub(crate) const MOST: u8 = 5;

/// How often what comes over a connection has come back, as whoever sent it says.
pub type Hops = Arc<AtomicU8>;

/// Both ends of a connection: a port that leads to one address may lead to another one from elsewhere at the same time.
/// Of UDP the near end alone, which no other socket has.
type Ends = (SocketAddr, Option<SocketAddr>);

type Known = HashMap<Ends, Hops>;

/// Of the process as a whole: a connection leaves on one thread and comes in on another.
static OWN: Mutex<Option<Known>> = Mutex::new(None);

/// Whether there are listeners at addresses of their own: then both ends of a connection to this machine need not have
/// the same address.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// A connection to this machine, or a socket of a UDP session, as long as it stands.
#[derive(Debug)]
pub struct Own {
    ends: Ends,
    hops: Hops,
}

impl Own {
    /// Notes a connection if it may lead to this machine.
    pub fn of(tcp: &TcpStream) -> Option<Self> {
        Self::after(1, tcp)
    }

    /// The same of what has come back so often with it.
    fn after(hops: u8, tcp: &TcpStream) -> Option<Self> {
        let (from, to) = (tcp.local_addr().ok()?, tcp.peer_addr().ok()?);
        may_be_one_machine(from, to)
            .then(|| Self::noted((canonical(from), Some(canonical(to))), hops))
    }

    /// The same of a socket of UDP, by its own address and the one that it leads to.
    pub(crate) fn of_datagrams(from: SocketAddr, to: SocketAddr) -> Option<Self> {
        may_be_one_machine(from, to).then(|| Self::noted((canonical(from), None), 1))
    }

    fn noted(ends: Ends, hops: u8) -> Self {
        let hops = Hops::new(AtomicU8::new(hops));
        all().get_or_insert_default().insert(ends, hops.clone());
        Self { ends, hops }
    }

    /// Whether what has come back so often may go over it; then the other end knows of one hop more.
    pub fn carries(&self, hops: u8) -> bool {
        let carries = hops < MOST;
        if carries {
            self.hops.store(hops + 1, Ordering::Relaxed);
        }
        carries
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(all) = all().as_mut() {
            all.remove(&self.ends);
        }
    }
}

/// How often what comes over a connection from `peer` to `local` has come back, if this process made it. It is in the
/// books before it sends.
pub fn hops_of(peer: SocketAddr, local: SocketAddr) -> Option<Hops> {
    known((canonical(peer), Some(canonical(local))))
}

/// The same now, of what a client has begun to send.
pub fn hops(peer: SocketAddr, local: SocketAddr) -> u8 {
    count(hops_of(peer, local))
}

/// The same of datagrams from a client.
pub(crate) fn hops_of_datagrams(client: SocketAddr) -> u8 {
    count(known((canonical(client), None)))
}

fn count(hops: Option<Hops>) -> u8 {
    hops.map_or(0, |hops| hops.load(Ordering::Relaxed))
}

fn known(ends: Ends) -> Option<Hops> {
    all().as_ref().and_then(|all| all.get(&ends).cloned())
}

/// Whether both ends of a connection may be on this machine.
pub fn may_be_one_machine(one: SocketAddr, other: SocketAddr) -> bool {
    canonical(one).ip() == canonical(other).ip() || ELSEWHERE.load(Ordering::Relaxed)
}

/// TCP connections that are being made, whose own addresses are not known yet.
static UNDER_WAY: Mutex<Ways> = Mutex::new(Ways { all: BTreeMap::new(), to: BTreeMap::new() });

/// How often it is looked, at most, whether those stand that somebody may be: mostly they do in a turn of the event
/// loop.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
struct Ways {
    /// Where each leads.
    all: BTreeMap<u64, SocketAddr>,
    /// How often what each will carry has come back, by where it leads.
    to: BTreeMap<SocketAddr, BTreeMap<u64, u8>>,
}

impl Ways {
    fn put(&mut self, number: u64, to: SocketAddr, hops: u8) {
        self.remove(number);
        self.all.insert(number, to);
        self.to.entry(to).or_default().insert(number, hops);
    }

    fn remove(&mut self, number: u64) {
        let Some(to) = self.all.remove(&number) else { return };
        if let Some(there) = self.to.get_mut(&to) {
            there.remove(&number);
            if there.is_empty() {
                self.to.remove(&to);
            }
        }
    }

    /// Of those that lead there, and are no younger than that: the most that one has come back, and the youngest of
    /// them.
    fn coming(&self, to: SocketAddr, until: u64) -> Option<(u8, u64)> {
        let there = || Some(self.to.get(&to)?.range(..=until));
        let most = there()?.map(|(_, hops)| *hops).max()?;
        let (youngest, _) = there()?.next_back()?;
        Some((most, *youngest))
    }
}

/// A connection that is being made. Whoever it reaches may be this process, and sooner than we hear of it.
#[derive(Debug)]
pub(crate) struct UnderWay {
    number: u64,
    hops: u8,
}

impl UnderWay {
    /// One for what has come back so often.
    pub(crate) fn new(hops: u8) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self { number: NUMBERS.fetch_add(1, Ordering::Relaxed), hops }
    }

    /// Where it is tried next.
    pub(crate) fn leads_to(&self, to: SocketAddr) {
        under_way().put(self.number, canonical(to), self.hops.saturating_add(1));
    }

    /// It stands: whoever it has reached finds the same number in the books as before.
    pub(crate) fn stands(self, tcp: &TcpStream) -> Option<Own> {
        Own::after(self.hops.saturating_add(1), tcp)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        under_way().remove(self.number);
    }
}

/// How often what a client sends has come back, asked as soon as it is connected. It may be a connection of this
/// process that is not in the books yet: then it counts as any that are coming, unless it had to end for that. Nobody
/// ends for the circles of others, so those are waited for.
pub(crate) async fn hops_at_once(peer: SocketAddr, local: SocketAddr) -> u8 {
    if !may_be_one_machine(peer, local) {
        return 0;
    }
    let (mut looks, mut until) = (LOOKS, u64::MAX);
    loop {
        // Before the books: whoever was under way until now is in them.
        let coming = under_way().coming(canonical(local), until);
        let known = hops_of(peer, local).map(|hops| hops.load(Ordering::Relaxed));
        let Some((hops, youngest)) = coming.filter(|_| known.is_none()) else {
            return known.unwrap_or(0);
        };
        if hops < MOST || looks == 0 {
            return hops;
        }
        (looks, until) = (looks - 1, youngest);
        #[expect(clippy::disallowed_methods, reason = "looked again a few times")]
        tokio::time::sleep(PAUSE).await;
    }
}

fn under_way() -> MutexGuard<'static, Ways> {
    UNDER_WAY.lock()
}

/// Ports of UDP on which this process listens, and on how many sockets each.
static LISTENED: Mutex<BTreeMap<u16, usize>> = Mutex::new(BTreeMap::new());

/// A port of UDP, as long as a socket listens on it.
#[derive(Debug)]
pub(crate) struct Listened(u16);

impl Listened {
    /// One socket more.
    pub(crate) fn new(port: u16) -> Self {
        *listened().entry(port).or_default() += 1;
        Self(port)
    }
}

impl Drop for Listened {
    fn drop(&mut self) {
        let mut all = listened();
        if let Some(sockets) = all.get_mut(&self.0) {
            *sockets -= 1;
            if *sockets == 0 {
                all.remove(&self.0);
            }
        }
    }
}

fn listened() -> MutexGuard<'static, BTreeMap<u16, usize>> {
    LISTENED.lock()
}

/// Whether a socket of this process listens on a port of UDP.
pub(crate) fn is_listened(port: u16) -> bool {
    listened().contains_key(&port)
}

/// Says that there are listeners at addresses of their own, from now on.
pub fn listens_elsewhere() {
    ELSEWHERE.store(true, Ordering::Relaxed);
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn all() -> MutexGuard<'static, Option<Known>> {
    OWN.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stranger_may_have_the_port_of_an_own_connection_that_leads_elsewhere() {
        let address = |port| SocketAddr::from(([127, 0, 0, 9], port));
        let (port, backend, service) = (address(40_000), address(9_000), address(8_080));
        let own = Own::noted((port, Some(backend)), 1);
        assert!(hops_of(port, service).is_none(), "somebody else, by the same port");
        assert_eq!(hops_at_once(port, service).await, 0);
        assert!(hops_of(port, backend).is_some(), "this process");
        assert!(own.carries(2));
        assert_eq!(hops_at_once(port, backend).await, 3);
        drop(own);
        assert!(hops_of(port, backend).is_none());
    }

    #[expect(clippy::disallowed_methods, reason = "the clock is paused, and time is the matter")]
    #[tokio::test(start_paused = true)]
    async fn a_stranger_does_not_end_for_a_circle_that_is_being_closed_where_it_goes() {
        let to = SocketAddr::from(([127, 0, 0, 8], 8_080));
        let stranger = SocketAddr::from(([127, 0, 0, 8], 50_000));
        let circle = UnderWay::new(MOST - 1);
        circle.leads_to(to);
        let (hops, ()) = tokio::join!(hops_at_once(stranger, to), async {
            tokio::time::sleep(3 * PAUSE).await;
            // Others that begin meanwhile are not waited for.
            let later = UnderWay::new(MOST - 1);
            later.leads_to(to);
            drop(circle);
            tokio::time::sleep(LOOKS * PAUSE).await;
            drop(later);
        });
        assert_eq!(hops, 0);
        let circle = UnderWay::new(MOST - 1);
        circle.leads_to(SocketAddr::from(([127, 0, 0, 8], 1)));
        circle.leads_to(to);
        assert_eq!(hops_at_once(stranger, to).await, MOST, "it may be this one");
    }

    #[tokio::test]
    async fn a_connection_that_stands_has_come_back_as_often_as_while_it_was_made() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let to = listener.local_addr().expect("its address");
        let under_way = UnderWay::new(3);
        under_way.leads_to(to);
        let tcp = TcpStream::connect(to).await.expect("it listens");
        let from = tcp.local_addr().expect("its address");
        assert_eq!(hops_at_once(from, to).await, 4);
        let own = under_way.stands(&tcp);
        assert_eq!(hops_at_once(from, to).await, 4, "nobody has asked yet whether it carries");
        assert!(own.is_some_and(|own| own.carries(3)));
    }
}
