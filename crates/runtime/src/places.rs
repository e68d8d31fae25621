//! Places for the connections of a port that strangers reach. Whoever comes gets one; once all are taken, somebody
//! loses theirs: at the address that holds most of them, among those that do what most of its connections do (wait for
//! a request, or take an answer), the one that has done so for longest. So nobody keeps others out by taking places and
//! doing nothing with them, not even from an address that others share, and a probe always has its turn.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use system::sockets::party;
use tokio::sync::Notify;

/// How full a port is, for whoever asks; there is one of it in a process.
#[derive(Debug, Default)]
pub struct Count {
    all: AtomicUsize,
    taken: AtomicUsize,
    lost: AtomicU64,
}

/// All places.
#[derive(Debug)]
pub struct Places {
    all: usize,
    held: Mutex<Held>,
    count: &'static Count,
}

#[derive(Debug, Default)]
struct Held {
    /// The number of the next connection, and of the next change of what one does.
    next: u64,
    connections: HashMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    address: IpAddr,
    /// A request of it is being answered.
    answered: bool,
    /// Since which change that is so.
    since: u64,
    lost: Arc<Notify>,
}

/// A place that is taken until this is dropped, or somebody else gets it.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    number: u64,
    lost: Arc<Notify>,
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Answering {
    places: Arc<Places>,
    number: u64,
}

impl Count {
    /// That of a port at which nothing listens yet.
    pub const fn new() -> Self {
        Self { all: AtomicUsize::new(0), taken: AtomicUsize::new(0), lost: AtomicU64::new(0) }
    }

    /// Places that are taken, all of them, and how often somebody lost one; none while nothing listens there.
    pub fn now(&self) -> Option<(usize, usize, u64)> {
        let all = Some(self.all.load(Ordering::Relaxed)).filter(|all| *all > 0)?;
        Some((self.taken.load(Ordering::Relaxed), all, self.lost.load(Ordering::Relaxed)))
    }
}

impl Places {
    /// So many, which are counted there.
    pub fn new(all: usize, count: &'static Count) -> Arc<Self> {
        count.all.store(all, Ordering::Relaxed);
        Arc::new(Self { all, held: Mutex::default(), count })
    }

    /// A place for a connection from an address.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Place {
        let (address, lost) = (party(address), Arc::new(Notify::new()));
        let mut held = self.held.lock();
        while held.connections.len() >= self.all {
            match held.dispensable(address).and_then(|number| held.connections.remove(&number)) {
                Some(connection) => {
                    self.count.lost.fetch_add(1, Ordering::Relaxed);
                    connection.lost.notify_one();
                }
                None => break,
            }
        }
        let number = held.turn();
        let own = Connection { address, answered: false, since: number, lost: lost.clone() };
        held.connections.insert(number, own);
        self.count.taken.store(held.connections.len(), Ordering::Relaxed);
        Place { places: Arc::clone(self), number, lost }
    }

    fn set(&self, number: u64, answered: bool) {
        let mut held = self.held.lock();
        let since = held.turn();
        if let Some(connection) = held.connections.get_mut(&number) {
            (connection.answered, connection.since) = (answered, since);
        }
    }
}

impl Held {
    fn turn(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The connection that has to go for one from `newcomer`, which counts among those of its address.
    fn dispensable(&self, newcomer: IpAddr) -> Option<u64> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::from([(newcomer, 1)]);
        self.connections.values().for_each(|one| *counts.entry(one.address).or_default() += 1);
        let most = self.connections.values().map(|one| counts[&one.address]).max()?;
        let theirs = || self.connections.iter().filter(|(_, one)| counts[&one.address] == most);
        let answered = theirs().filter(|(_, one)| one.answered).count();
        let kind = answered * 2 > theirs().count();
        let of_kind = theirs().filter(|(_, one)| one.answered == kind);
        of_kind.min_by_key(|(_, one)| one.since).map(|(number, _)| *number)
    }
}

impl Place {
    /// Returns once somebody else has the place: the connection is to be closed.
    pub async fn lost(&self) {
        self.lost.notified().await;
    }

    /// A whole head is there: until the result is dropped, the connection does not wait for a request.
    pub fn answer(&self) -> Answering {
        self.places.set(self.number, true);
        Answering { places: Arc::clone(&self.places), number: self.number }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held.lock();
        held.connections.remove(&self.number);
        self.places.count.taken.store(held.connections.len(), Ordering::Relaxed);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.places.set(self.number, false);
    }
}

#[cfg(test)]
mod tests {
    use super::{Count, Place, Places};
    use std::net::{IpAddr, Ipv4Addr};
    use tokio::time::{Duration, timeout};

    static COUNT: Count = Count::new();

    fn of(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    async fn is_lost(place: &Place) -> bool {
        timeout(Duration::ZERO, place.lost()).await.is_ok()
    }

    async fn lost(places: &[&Place]) -> Vec<usize> {
        let mut lost = Vec::new();
        for (number, place) in places.iter().enumerate() {
            if is_lost(place).await {
                lost.push(number);
            }
        }
        lost
    }

    #[tokio::test]
    async fn who_holds_most_loses_the_oldest_and_places_come_back() {
        let places = Places::new(3, &COUNT);
        let (few, first, second) = (places.take(of(1)), places.take(of(2)), places.take(of(2)));
        let third = places.take(of(3));
        assert_eq!(lost(&[&few, &first, &second, &third]).await, [1]);
        let mapped = places.take(IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped()));
        assert!(is_lost(&few).await, "with the newcomer, this address holds most");
        drop((mapped, third));
        let more = places.take(of(1));
        assert!(!is_lost(&second).await && !is_lost(&more).await, "there were free ones");
        drop((few, first, second, more));
        assert!(places.held.lock().connections.is_empty());
    }

    #[tokio::test]
    async fn among_those_of_one_address_the_more_numerous_kind_goes_first() {
        let places = Places::new(4, &COUNT);
        let [answered, older, newer, last] = [0; 4].map(|_| places.take(of(1)));
        let answering = answered.answer();
        let probe = places.take(of(1));
        assert_eq!(lost(&[&answered, &older, &newer, &last, &probe]).await, [1]);
        let (_second, _third) = (newer.answer(), last.answer());
        let next = places.take(of(1));
        assert_eq!(lost(&[&answered, &newer, &last, &probe, &next]).await, [0], "three of four");
        drop(answering);
        assert!(!is_lost(&probe).await && !is_lost(&next).await);
    }

    #[tokio::test]
    async fn who_has_just_been_answered_is_the_youngest_of_those_that_wait() {
        let places = Places::new(2, &COUNT);
        let (old, young) = (places.take(of(1)), places.take(of(1)));
        drop(old.answer());
        let third = places.take(of(1));
        assert_eq!(lost(&[&old, &young, &third]).await, [1]);
    }

    #[tokio::test]
    async fn what_is_taken_and_lost_is_counted() {
        static OWN: Count = Count::new();
        assert_eq!(OWN.now(), None, "nothing listens");
        let places = Places::new(2, &OWN);
        let held = [places.take(of(1)), places.take(of(1)), places.take(of(2))];
        assert_eq!(OWN.now(), Some((2, 2, 1)));
        drop(held);
        assert_eq!(OWN.now(), Some((0, 2, 1)));
    }
}
