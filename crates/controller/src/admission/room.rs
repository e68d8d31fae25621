//! Room for large reviews, from before they come in until they are judged: so many bytes in all, half of them for one
//! address, which waits beyond that. Where others need room, the address that holds most loses the review that has been
//! coming in for longest: whoever announces much and sends nothing keeps nobody else out.

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use system::sockets::party;
use tokio::sync::Notify;

/// All of it.
#[derive(Debug)]
pub(super) struct Room {
    all: usize,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    /// Shares that were given so far.
    given: u64,
    shares: HashMap<u64, Given>,
}

#[derive(Debug)]
struct Given {
    address: IpAddr,
    bytes: usize,
    stage: Stage,
    lost: Arc<Notify>,
}

/// How far a review is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Not all of it is there.
    Coming,
    /// It waits for its turn.
    Whole,
    /// That cannot be stopped: its room is not lost any more.
    Judged,
}

/// Room that is held until this is dropped, or others need it.
#[derive(Debug)]
pub(super) struct Share {
    room: Arc<Room>,
    number: u64,
    lost: Arc<Notify>,
}

impl Room {
    /// So many bytes.
    pub(super) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self { all, held: Mutex::default(), freed: Notify::new() })
    }

    /// Waits for room for a review, at most half of it.
    pub(super) async fn share(self: &Arc<Self>, address: IpAddr, bytes: usize) -> Share {
        let address = party(address);
        loop {
            // What is freed from here on is heard of.
            let freed = self.freed.notified();
            if let Some(share) = self.try_share(address, bytes) {
                return share;
            }
            freed.await;
        }
    }

    fn try_share(self: &Arc<Self>, address: IpAddr, bytes: usize) -> Option<Share> {
        let mut held = self.held.lock();
        let own = held.of(address) + bytes;
        if own > self.all / 2 {
            return None;
        }
        let mut taken: usize = held.shares.values().map(|one| one.bytes).sum();
        // Nobody loses anything before it is known to be enough.
        let mut going = HashSet::new();
        while taken + bytes > self.all {
            let (number, frees) = held.dispensable(own, &going)?;
            going.insert(number);
            taken -= frees;
        }
        for number in going {
            held.shares.remove(&number)?.lost.notify_one();
        }
        held.given += 1;
        let (number, lost) = (held.given, Arc::new(Notify::new()));
        let given = Given { address, bytes, stage: Stage::Coming, lost: Arc::clone(&lost) };
        held.shares.insert(number, given);
        Some(Share { room: Arc::clone(self), number, lost })
    }
}

impl Held {
    fn of(&self, address: IpAddr) -> usize {
        let own = self.shares.values().filter(|one| one.address == address);
        own.map(|one| one.bytes).sum()
    }

    /// The review that has to go, besides those that are going, for somebody whose address holds so much with what it
    /// asks for, and the bytes that it holds.
    fn dispensable(&self, own: usize, going: &HashSet<u64>) -> Option<(u64, usize)> {
        let staying = || self.shares.iter().filter(|(number, _)| !going.contains(number));
        let mut sums: HashMap<IpAddr, usize> = HashMap::new();
        for (_, one) in staying() {
            *sums.entry(one.address).or_default() += one.bytes;
        }
        let may_go = staying().filter(|(_, one)| one.stage < Stage::Judged);
        let of_more =
            may_go.map(|(number, one)| (sums[&one.address], Reverse((one.stage, *number))));
        let most = of_more.filter(|(sum, _)| *sum > own).max()?;
        let (_, Reverse((_, number))) = most;
        Some((number, self.shares[&number].bytes))
    }
}

impl Share {
    /// Returns once others have the room.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// The review has come so far; false if its room is lost.
    pub(super) fn reach(&self, stage: Stage) -> bool {
        let mut held = self.room.held.lock();
        let given = held.shares.get_mut(&self.number);
        given.map(|given| given.stage = stage).is_some()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.held.lock().shares.remove(&self.number);
        self.room.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::{Room, Share, Stage};
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use tokio::time::{Duration, timeout};

    fn of(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    async fn share(room: &Arc<Room>, last: u8, bytes: usize) -> Option<Share> {
        timeout(Duration::ZERO, room.share(of(last), bytes)).await.ok()
    }

    async fn is_lost(share: &Share) -> bool {
        timeout(Duration::ZERO, share.lost()).await.is_ok()
    }

    #[tokio::test]
    async fn an_address_has_half_and_waits_for_more_of_it() {
        let room = Room::new(8);
        let first = share(&room, 1, 3).await.expect("there is room");
        assert!(share(&room, 1, 2).await.is_none(), "more than half");
        let waits = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.share(of(1), 4).await }
        });
        let other = share(&room, 2, 4).await.expect("the other half is for others");
        drop(first);
        drop((waits.await.expect("it gets what was freed"), other));
        assert!(room.held.lock().shares.is_empty());
    }

    #[tokio::test]
    async fn nobody_loses_room_that_would_not_be_enough() {
        let room = Room::new(8);
        let taken = async |last, bytes| share(&room, last, bytes).await.expect("there is room");
        let all = [taken(1, 1).await, taken(1, 3).await, taken(2, 3).await, taken(3, 1).await];
        assert!(
            share(&room, 4, 3).await.is_none(),
            "without its first one the first address holds no more"
        );
        for one in &all {
            assert!(!is_lost(one).await && one.reach(Stage::Whole));
        }
    }

    #[tokio::test]
    async fn who_holds_most_loses_what_has_been_coming_in_for_longest() {
        let room = Room::new(8);
        let taken = async |last, bytes| share(&room, last, bytes).await.expect("there is room");
        let (judged, whole) = (taken(1, 1).await, taken(1, 1).await);
        let (old, young, few) = (taken(1, 1).await, taken(1, 1).await, taken(2, 3).await);
        assert!(judged.reach(Stage::Whole) && judged.reach(Stage::Judged));
        assert!(whole.reach(Stage::Whole));
        let third = taken(3, 2).await;
        assert!(is_lost(&old).await && !is_lost(&young).await && !is_lost(&few).await);
        assert!(!old.reach(Stage::Whole), "it is over");
        // Now two addresses hold three each.
        let fourth = taken(4, 2).await;
        assert!(is_lost(&young).await && is_lost(&few).await);
        assert!(!is_lost(&judged).await && !is_lost(&whole).await && !is_lost(&third).await);
        assert!(share(&room, 5, 4).await.is_none(), "nobody holds more than that");
        drop((judged, whole, old, young, few, third, fourth));
        assert!(room.held.lock().shares.is_empty());
    }
}
