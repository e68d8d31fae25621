//! Places for connections and sessions: bounded for the process, and half of them at most for one namespace. Where all
//! are taken a newcomer gets the place of somebody who holds more, or of one that is quiet. Where memory is short,
//! places are lost, too.

use crate::holders::{Holder, Seat, Shares, Side};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use system::sockets;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout_at};

/// How long a connection waits for a place where all who hold as much are busy.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections that wait at most, and fewer where there are few places: a quarter of them.
const WAITING: usize = 64;

/// How long a side may take nothing of what waits for it, where memory is short.
pub(crate) const STALLED: Duration = Duration::from_secs(10);
/// Where memory is all but gone, more than so many have no newcomer beside them: it takes somebody's place.
const FEW: usize = 8;
/// What a place is taken for where memory is all but gone: its buffers, and what the system keeps.
const ASSUMED: u64 = 64 << 10;
/// Nobody goes, whoever takes what waits for it, as long as all together hold less than this part of the memory.
const SPARED: u64 = 16;
/// The part of all places that goes each time.
const GO: usize = 32;

/// How short memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// There is enough.
    Enough,
    /// It becomes scarce.
    Short,
    /// It is all but gone, of so many bytes.
    Gone(u64),
}

/// Places for everybody, and half of them at most for one namespace.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    began: Instant,
    next: AtomicU64,
    refused: AtomicU64,
    shares: Mutex<Shares>,
    waiting: Semaphore,
    /// Memory is all but gone.
    is_pressed: AtomicBool,
    /// A place is free that was not.
    freed: Notify,
}

/// One place, until this is dropped or somebody else has it.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    whose: Holder,
    seat: Arc<Seat>,
}

impl Room {
    /// So many places.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            began: Instant::now(),
            next: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            shares: Mutex::default(),
            waiting: Semaphore::new((most / 4).clamp(1, WAITING)),
            is_pressed: AtomicBool::default(),
            freed: Notify::new(),
        })
    }

    /// A place for somebody, at once: a free one or somebody else's. For a datagram it is worth no waiting.
    pub(crate) fn now(self: &Arc<Self>, whose: &Holder) -> Option<Place> {
        self.noted(self.take(whose, Duration::ZERO))
    }

    /// The same, but nobody who holds no more and has just moved gives way; none if that is so for a while.
    pub(crate) async fn wait(self: &Arc<Self>, whose: &Holder) -> Option<Place> {
        let at_once = self.take(whose, PATIENCE);
        if at_once.is_some() {
            return at_once;
        }
        let Ok(_turn) = self.waiting.try_acquire() else { return self.noted(None) };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let freed = self.freed.notified();
            let place = self.take(whose, PATIENCE);
            if place.is_some() {
                return place;
            }
            if timeout_at(deadline, freed).await.is_err() {
                return self.noted(self.take(whose, PATIENCE));
            }
        }
    }

    fn noted(&self, place: Option<Place>) -> Option<Place> {
        if place.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    fn take(self: &Arc<Self>, whose: &Holder, spared: Duration) -> Option<Place> {
        let mut shares = self.shares.lock();
        let is_pressed = self.is_pressed.load(Ordering::Relaxed);
        let most = if is_pressed { self.most.min(FEW) } else { self.most };
        let half = (most / 2).max(1);
        if shares.taken() >= most || shares.of(&whose.namespace) >= half {
            let loser = shares.loser(Some(whose))?;
            if loser.equal && loser.is_busy(self.clock(), millis(spared)) {
                return None;
            }
            self.end(&mut shares, &loser.whose, &loser.seat);
        }
        let seat = Seat::new(self.next.fetch_add(1, Ordering::Relaxed), self.clock());
        shares.enter(whose, seat.clone());
        Some(Place { room: self.clone(), whose: whose.clone(), seat })
    }

    /// Takes the place of somebody.
    fn end(&self, shares: &mut Shares, whose: &Holder, seat: &Seat) {
        shares.leave(whose, seat);
        seat.lost.notify_one();
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Follows how short memory is; asked for each half second as long as it is. Where it is, whoever has taken nothing
    /// for long of what waits for it goes first, a quarter of them each time; where it is all but gone, others of
    /// whoever holds most, too.
    pub(crate) fn press(&self, memory: Memory) {
        self.is_pressed.store(matches!(memory, Memory::Gone(_)), Ordering::Relaxed);
        if memory == Memory::Enough {
            return;
        }
        let mut shares = self.shares.lock();
        let stalled = shares.stalled(self.clock().saturating_sub(millis(STALLED)));
        for (whose, seat) in stalled.iter().take(stalled.len().div_ceil(4)) {
            self.end(&mut shares, whose, seat);
        }
        if let Memory::Gone(bytes) = memory {
            for _ in 0..shares.taken().div_ceil(GO) {
                if shares.taken() as u64 * ASSUMED < bytes / SPARED {
                    break;
                }
                let Some(loser) = shares.loser(None) else { break };
                self.end(&mut shares, &loser.whose, &loser.seat);
            }
        }
        drop(shares);
        self.freed.notify_waiters();
    }

    /// Places that are taken, all of them, and how often somebody got none or lost one to somebody else.
    pub(crate) fn in_use(&self) -> (usize, usize, u64) {
        (self.shares.lock().taken(), self.most, self.refused.load(Ordering::Relaxed))
    }

    /// Waits until every place is free.
    pub(crate) async fn is_empty(&self) {
        loop {
            let freed = self.freed.notified();
            if self.shares.lock().taken() == 0 {
                return;
            }
            freed.await;
        }
    }

    /// Milliseconds since it began.
    fn clock(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Place {
    /// Something came from the client.
    pub(crate) fn heard(&self) {
        self.seat.heard(self.room.clock());
    }

    /// Something went to the client.
    pub(crate) fn told(&self) {
        self.seat.told(self.room.clock());
    }

    /// A side took some of what waits for it, or took nothing.
    pub(crate) fn took(&self, side: Side, some: bool) {
        if some {
            self.seat.flows(side);
        } else {
            self.seat.stalls(side, self.room.clock());
        }
    }

    /// It is that of another client, for whom the peer speaks.
    pub(crate) fn is_of(&mut self, client: IpAddr) {
        let mut shares = self.room.shares.lock();
        if shares.leave(&self.whose, &self.seat) {
            self.whose.client = sockets::party(client);
            shares.enter(&self.whose, self.seat.clone());
        }
    }

    /// Returns once somebody else has it: whoever had it is to be ended.
    pub(crate) fn lost(&self) -> impl Future<Output = ()> + use<> {
        let seat = self.seat.clone();
        async move { seat.lost.notified().await }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.room.shares.lock().leave(&self.whose, &self.seat) {
            self.room.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ASSUMED, FEW, Memory, PATIENCE, Place, Room, STALLED, WAITING};
    use crate::holders::{Holder, Side};
    use model::{StreamPort, Transport};
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::{Instant, advance, interval, timeout};

    fn of(namespace: &str, number: u16, client: u8) -> Holder {
        let port = StreamPort { transport: Transport::Tcp, number, address: None };
        Holder::new(&namespace.into(), port, IpAddr::V4(Ipv4Addr::new(192, 0, 2, client)))
    }

    fn places<const N: usize>(room: &Arc<Room>, whose: &Holder) -> [Place; N] {
        [(); N].map(|()| heard(room, whose))
    }

    fn heard(room: &Arc<Room>, whose: &Holder) -> Place {
        let place = room.now(whose).expect("somebody gives way");
        place.heard();
        place
    }

    async fn lost<'a>(places: impl IntoIterator<Item = &'a Place>) -> usize {
        let mut lost = 0;
        for place in places {
            lost += usize::from(timeout(Duration::ZERO, place.lost()).await.is_ok());
        }
        lost
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_has_half_of_the_places_and_those_that_hold_less_take_from_it() {
        let room = Room::new(8);
        let one: [Place; 5] = places(&room, &of("one", 1, 1));
        assert_eq!((room.in_use(), lost(&one).await), ((4, 8, 1), 1), "who lost it is counted");
        let two: [Place; 4] = places(&room, &of("two", 2, 1));
        assert_eq!(lost(&one).await + lost(&two).await, 0);
        let third = of("three", 3, 1);
        let three: [Place; 2] = places(&room, &third);
        assert_eq!((lost(&one).await, lost(&two).await, lost(&three).await), (1, 1, 0));
        let more: [Place; 2] = places(&room, &third);
        assert_eq!((lost(&one).await, lost(&two).await), (0, 0), "these would hold less then");
        assert_eq!((lost(&three).await, lost(&more).await), (2, 0), "it is its own that go");
        drop((one, two, three, more));
        assert_eq!(room.in_use().0, 0);
        assert_eq!(room.shares.lock().of(&"one".into()), 0);
        timeout(Duration::ZERO, room.is_empty()).await.expect("nobody is there");
    }

    #[tokio::test(start_paused = true)]
    async fn within_a_namespace_the_port_that_holds_most_gives_way_and_there_the_client() {
        let room = Room::new(16);
        let (quiet, many) = (heard(&room, &of("one", 1, 1)), of("one", 2, 2));
        advance(Duration::from_secs(1)).await;
        let few = heard(&room, &of("one", 2, 3));
        advance(Duration::from_secs(1)).await;
        let all: [Place; 6] = places(&room, &many);
        advance(Duration::from_secs(1)).await;
        all[0].told();
        let other = heard(&room, &of("one", 1, 4));
        assert_eq!(lost([&quiet, &few, &other]).await, 0, "they were quiet for longer");
        assert_eq!((lost([&all[1]]).await, lost(&all).await), (1, 0), "the quietest of them");
        let own = heard(&room, &many);
        assert_eq!((lost(&all).await, lost([&quiet, &few, &other, &own]).await), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_hold_one_each_go_by_how_long_they_were_quiet() {
        let room = Room::new(8);
        let mut all = Vec::new();
        for client in 1..=4 {
            all.push(heard(&room, &of("one", 1, client)));
            advance(Duration::from_secs(1)).await;
        }
        all[0].told();
        advance(Duration::from_secs(1)).await;
        all.push(heard(&room, &of("one", 1, 5)));
        assert_eq!((lost([&all[1]]).await, lost(&all).await), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn all_addresses_of_one_network_of_ipv6_are_one_client_and_a_proxy_tells_whose_it_is() {
        let room = Room::new(8);
        let from = |client: &str| {
            let client: IpAddr = client.parse().expect("an address");
            Holder::new(&"one".into(), of("one", 1, 1).port, client)
        };
        let alone = heard(&room, &from("2001:db8:0:2::1"));
        advance(Duration::from_secs(1)).await;
        let mut three = [1, 2, 3].map(|last| heard(&room, &from(&format!("2001:db8:0:1::{last}"))));
        let newcomer = heard(&room, &from("2001:db8:0:3::1"));
        assert_eq!((lost([&alone, &newcomer]).await, lost(&three).await), (0, 1));
        three[1].is_of(alone.whose.client);
        three[2].is_of("192.0.2.9".parse().expect("an address"));
        let next = heard(&room, &from("2001:db8:0:4::1"));
        assert_eq!((lost([&alone]).await, lost([&three[1], &three[2], &next]).await), (1, 0));
        drop((alone, three, newcomer, next));
        assert_eq!(room.in_use().0, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_said_nothing_goes_before_those_that_moved_within_a_minute() {
        let room = Room::new(8);
        let one = of("one", 1, 1);
        let idle = heard(&room, &one);
        advance(Duration::from_secs(61)).await;
        let spoken = heard(&room, &one);
        advance(Duration::from_secs(1)).await;
        let silent = [(); 2].map(|()| room.now(&one).expect("there is one"));
        silent.iter().for_each(Place::told);
        let next = heard(&room, &one);
        assert_eq!(lost([&idle]).await, 1, "more than a minute longer quiet than these");
        let last = heard(&room, &one);
        assert_eq!(
            (lost([&silent[0]]).await, lost([&spoken, &silent[1], &next, &last]).await),
            (1, 0)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn busy_ones_give_way_to_nobody_who_holds_as_much_but_to_others_at_once() {
        let room = Room::new(8);
        let (one, other) = (of("one", 1, 1), of("one", 1, 2));
        let mut all: Vec<Place> = places::<4>(&room, &one).into();
        let came = Instant::now();
        assert!(room.wait(&other).await.is_some() && came.elapsed().is_zero(), "it holds less");
        all.push(heard(&room, &one));
        let mut seconds = interval(Duration::from_secs(1));
        let keep_busy = async {
            loop {
                seconds.tick().await;
                all.iter().for_each(Place::told);
            }
        };
        tokio::select! {
            place = room.wait(&one) => assert!(place.is_none()),
            () = keep_busy => {}
        }
        assert!(came.elapsed() >= PATIENCE, "{:?}", came.elapsed());
        assert!(room.wait(&one).await.is_some(), "nobody moved for as long as it waited");
    }

    #[tokio::test(start_paused = true)]
    async fn where_memory_is_short_those_end_that_take_nothing_for_long() {
        let room = Room::new(64);
        let all: [Place; 8] = places(&room, &of("one", 1, 1));
        all[0].took(Side::Client, false);
        all[1].took(Side::Endpoint, false);
        advance(Duration::from_millis(1)).await;
        all[2].took(Side::Client, false);
        advance(STALLED).await;
        all[3].took(Side::Client, false);
        // What one side takes says nothing of the other.
        all[0].took(Side::Client, true);
        all[1].took(Side::Client, true);
        room.press(Memory::Enough);
        assert_eq!(lost(&all).await, 0);
        room.press(Memory::Short);
        assert_eq!((lost([&all[1]]).await, lost(&all).await), (1, 0), "it waited for longest");
        room.press(Memory::Short);
        assert_eq!(lost(&all).await, 0, "others wait for no longer than they may");
        advance(STALLED).await;
        room.press(Memory::Short);
        assert_eq!((lost([&all[2]]).await, lost(&all).await, room.in_use()), (1, 0, (6, 64, 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn where_memory_is_all_but_gone_newcomers_take_a_place_and_those_go_that_hold_most() {
        let room = Room::new(256);
        let (many, few) = (of("many", 1, 1), of("few", 1, 2));
        let of_many: [Place; 64] = places(&room, &many);
        let of_few: [Place; FEW] = places(&room, &few);
        let taken = of_many.len() + of_few.len();
        room.press(Memory::Gone(u64::MAX));
        assert_eq!((room.in_use().0, lost(&of_many).await), (taken, 0), "others hold the memory");
        room.press(Memory::Gone(16 * ASSUMED * taken as u64));
        assert_eq!((lost(&of_many).await, room.in_use().0), (1, taken - 1), "too little is left");
        room.press(Memory::Gone(ASSUMED));
        assert_eq!((lost(&of_many).await, room.in_use().0), (3, taken - 4));
        let newcomer = heard(&room, &of("new", 1, 3));
        assert_eq!((lost(&of_many).await, room.in_use().0), (1, taken - 4));
        assert_eq!(lost(&of_few).await + lost([&newcomer]).await, 0);
        room.press(Memory::Enough);
        let _free = heard(&room, &many);
        assert_eq!((lost(&of_many).await, room.in_use().0), (0, taken - 3), "it is as before");
    }

    #[tokio::test(start_paused = true)]
    async fn few_wait_and_the_first_free_place_is_theirs() {
        let room = Room::new(8);
        let one = of("one", 1, 1);
        let mut all: Vec<Place> = places::<4>(&room, &one).into();
        let waiting = [(); 2].map(|()| {
            let (room, one) = (room.clone(), one.clone());
            tokio::spawn(async move { room.wait(&one).await.map(|_| Instant::now()) })
        });
        tokio::task::yield_now().await;
        let came = Instant::now();
        assert!(room.wait(&one).await.is_none(), "two of eight places, or {WAITING}, may wait");
        assert!(came.elapsed().is_zero());
        all.pop();
        for one in waiting {
            assert_eq!(one.await.expect("no panic"), Some(came));
        }
    }
}
