//! Who goes first where more tasks are ready than a thread gets done: each namespace has its turns, and each host of it
//! has a lane. Whoever is asked seldom does not stand behind whoever is asked a lot, under however many names. Bodies
//! that move much wait besides for what `turn` has of a turn.

use pin_project_lite::pin_project;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::{AbortHandle, spawn_local, yield_now};
use tokio::time::Instant;

/// Tasks that go in one turn of the event loop whoever they are of, those first who wait; then one more of each owner.
const FEW: usize = 4;
/// A thread that has served one host alone for as long has nobody wait.
const LATELY: Duration = Duration::from_secs(1);
/// A turn in which tasks compute for longer has them wait all the same: whoever comes meanwhile is not seen.
const LONG: Duration = Duration::from_millis(20);
/// About as many tasks as the event loop lets go before it looks what came.
const ROUND: u32 = 64;

/// Whose hosts they are: owners take turns, and the hosts of each take its turns. Whoever has many hosts gets no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(u64);

impl Owner {
    /// Those who have not said yet what they want.
    const NEWCOMERS: Self = Self(0);
    /// Whatever is of no namespace.
    pub const NOBODY: Self = Self(1);
    /// Connections that are carried on untouched.
    pub const CARRIED: Self = Self(2);

    /// A namespace.
    pub fn named(namespace: &str) -> Self {
        Self(hash(namespace).max(3))
    }
}

/// Where a task waits: the lane of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    owner: Owner,
    host: u64,
}

impl Lane {
    /// That of a host; hosts of an owner are told apart by any number.
    pub fn of(owner: Owner, host: usize) -> Self {
        Self { owner, host: host as u64 }
    }

    /// Whose host it is.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// That of a client who has not said yet what it wants. Clients of one network take its turns: who may choose an
    /// address of IPv6 may mostly choose all of a /64.
    pub fn of_newcomer(address: IpAddr) -> Self {
        let host = match address.to_canonical() {
            IpAddr::V4(address) => hash(address.octets()),
            IpAddr::V6(address) => hash(&address.octets()[..8]),
        };
        Self { owner: Owner::NEWCOMERS, host }
    }
}

/// No client and no tenant knows which numbers are near each other.
fn hash(of: impl std::hash::Hash) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    STATE.hash_one(of)
}

/// What a thread knows of its tasks.
#[derive(Default)]
struct Road {
    /// The lane of the task that goes right now.
    here: Cell<Lane>,
    /// Tasks that went in this turn; no more are counted than `FEW`.
    went: Cell<usize>,
    /// The host that had a task last, and from when on it is the only one that had any lately.
    host: Cell<Lane>,
    alone_from: Cell<Option<Instant>>,
    /// From when on the turn is long, counted from its first few tasks or from the last so many of it; how many there
    /// were since, and whether it is long. Of a turn with few tasks nobody asks, and the clock is not read.
    long_from: Cell<Option<Instant>>,
    tasks: Cell<u32>,
    is_long: Cell<bool>,
    lanes: RefCell<Lanes>,
}

#[derive(Default)]
struct Lanes {
    /// Who waits, by owner. Where nobody does, one has gone in this turn.
    all: BTreeMap<Owner, Hosts>,
    /// The owners of whom nobody waited at some time of this turn.
    empty: Vec<Owner>,
    /// How many wait in all.
    waiting: usize,
    /// The owner that was called last.
    called: Owner,
    /// The task that counts turns while somebody waits.
    counting: Option<AbortHandle>,
}

/// Who waits of an owner, by host; somebody does in each.
#[derive(Default)]
struct Hosts {
    all: BTreeMap<u64, VecDeque<Rc<Waiting>>>,
    /// The host that was called last.
    called: u64,
}

/// Who waits: a task, which has this as well. Nobody else does once it is over.
struct Waiting {
    waker: Waker,
    is_called: Cell<bool>,
}

thread_local! {
    static ROAD: Road = Road::default();
}

pin_project! {
    /// A task that goes when it is its lane's turn.
    pub struct InTurn<F> {
        lane: Lane,
        waiting: Option<Rc<Waiting>>,
        #[pin]
        task: F,
    }
}

/// A local task that lets those of others go before it, each time that it has something to do. It begins in the lane of
/// whoever makes it.
pub fn in_turn<F: Future>(task: F) -> InTurn<F> {
    in_turn_of(ROAD.with(|road| road.here.get()), task)
}

/// The same, of a task that begins in this lane.
pub fn in_turn_of<F: Future>(lane: Lane, task: F) -> InTurn<F> {
    InTurn { lane, waiting: None, task }
}

/// The task that goes right now is in this lane from now on.
pub fn take(lane: Lane) {
    ROAD.with(|road| road.here.set(lane));
}

/// Nothing was left to do, and the event loop has looked what came: a turn begins.
pub fn all_went() {
    ROAD.with(Road::begin);
}

impl<F: Future> Future for InTurn<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let own = self.project();
        ROAD.with(|road| {
            // Whatever else wakes one who waits, it is called once.
            *own.waiting = match own.waiting.take() {
                Some(waiting) if waiting.is_called.get() => None,
                Some(waiting) => Some(waiting),
                None if road.is_free(*own.lane) => None,
                None => road.wait(*own.lane, cx),
            };
            if own.waiting.is_some() {
                return Poll::Pending;
            }
            road.here.set(*own.lane);
            let outcome = own.task.poll(cx);
            *own.lane = road.here.take();
            outcome
        })
    }
}

impl Road {
    /// Whether a task goes without asking who waits.
    fn is_free(&self, lane: Lane) -> bool {
        if lane.owner != Owner::NEWCOMERS && lane != self.host.get() {
            self.host.set(lane);
            self.alone_from.set(Some(crate::now() + LATELY));
        }
        let went = self.went.get();
        if went < FEW {
            self.went.set(went + 1);
        }
        went < FEW
            || (self.is_one_host_s() && !self.takes_long() && self.lanes.borrow().waiting == 0)
    }

    /// Whether few tasks have had this turn for long. The time is that of the last bytes that came: it costs nothing.
    fn takes_long(&self) -> bool {
        let tasks = self.tasks.get() + 1;
        let known = self.long_from.get().filter(|_| tasks < ROUND);
        let long_from = known.unwrap_or_else(|| crate::now() + LONG);
        self.long_from.set(Some(long_from));
        self.tasks.set(if tasks < ROUND { tasks } else { 0 });
        self.is_long.set(self.is_long.get() || crate::now() >= long_from);
        self.is_long.get()
    }

    fn is_one_host_s(&self) -> bool {
        self.alone_from.get().is_none_or(|from| crate::now() >= from)
    }

    /// A place in a lane; none for the first one of its owner in this turn, which goes at once.
    fn wait(&self, lane: Lane, cx: &Context<'_>) -> Option<Rc<Waiting>> {
        let mut lanes = self.lanes.borrow_mut();
        let Some(hosts) = lanes.all.get_mut(&lane.owner) else {
            lanes.all.insert(lane.owner, Hosts::default());
            lanes.empty.push(lane.owner);
            return None;
        };
        let waiting = Rc::new(Waiting { waker: cx.waker().clone(), is_called: Cell::new(false) });
        hosts.all.entry(lane.host).or_default().push_back(waiting.clone());
        lanes.waiting += 1;
        if lanes.counting.as_ref().is_none_or(AbortHandle::is_finished) {
            lanes.counting = Some(spawn_local(count()).abort_handle());
        }
        Some(waiting)
    }

    /// Begins a turn.
    fn begin(&self) {
        self.went.set(0);
        self.long_from.set(None);
        self.tasks.set(0);
        self.is_long.set(false);
        let mut lanes = self.lanes.borrow_mut();
        let Lanes { all, empty, .. } = &mut *lanes;
        // Those of whom somebody waits are not looked at: they may be as many as there are namespaces.
        for owner in empty.drain(..) {
            if all.get(&owner).is_some_and(|hosts| hosts.all.is_empty()) {
                all.remove(&owner);
            }
        }
    }

    /// Begins a turn with those who wait.
    fn call(&self) -> Vec<Rc<Waiting>> {
        let most = if self.is_one_host_s() && !self.takes_long() { usize::MAX } else { FEW };
        crate::time_passes();
        self.begin();
        let mut lanes = self.lanes.borrow_mut();
        let called: Vec<_> = std::iter::from_fn(|| lanes.next()).take(most).collect();
        self.went.set(called.len().min(FEW));
        called
    }
}

impl Lanes {
    /// The next one who waits, of the owner behind the one before it; those who are gone leave it to others.
    fn next(&mut self) -> Option<Rc<Waiting>> {
        while self.waiting > 0 {
            let waits = |(_, hosts): &(&Owner, &Hosts)| !hosts.all.is_empty();
            let behind = self.all.range(Owner(self.called.0.wrapping_add(1))..).chain(&self.all);
            self.called = *behind.into_iter().find(waits)?.0;
            let hosts = self.all.get_mut(&self.called)?;
            let first = hosts.next()?;
            if hosts.all.is_empty() {
                self.empty.push(self.called);
            }
            self.waiting -= 1;
            if Rc::strong_count(&first) > 1 {
                return Some(first);
            }
        }
        None
    }
}

impl Hosts {
    /// The next one who waits, of the host behind the one before it.
    fn next(&mut self) -> Option<Rc<Waiting>> {
        let behind = self.all.range(self.called.wrapping_add(1)..).next();
        self.called = *behind.or_else(|| self.all.first_key_value())?.0;
        let lane = self.all.get_mut(&self.called)?;
        let first = lane.pop_front();
        if lane.is_empty() {
            self.all.remove(&self.called);
        }
        first
    }
}

/// Begins turn after turn until nobody waits.
async fn count() {
    loop {
        // What yields goes on when the event loop has looked what came, and not before.
        yield_now().await;
        let called = ROAD.with(Road::call);
        if called.is_empty() {
            return;
        }
        for one in called {
            one.is_called.set(true);
            one.waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Lane, Owner, ROAD, in_turn, take};
    use std::cell::{Cell, RefCell};
    use std::future::Future;
    use std::rc::Rc;
    use std::time::Duration;
    use tokio::runtime::{Builder, LocalOptions};
    use tokio::sync::Notify;
    use tokio::task::{JoinHandle, spawn_local, yield_now};

    /// Fewer than go between two looks at what came: all of them are ready in one.
    const MANY: usize = 48;
    const FLOODED: usize = 1;
    const OTHER: usize = 2;

    /// The host of somebody of the same number.
    fn lane(of: usize) -> Lane {
        Lane::of(Owner::named(&of.to_string()), of)
    }

    /// Tasks of hosts, and of which host one went, in their order.
    #[derive(Default)]
    struct Bed {
        begun: Rc<Cell<usize>>,
        went: Rc<RefCell<Vec<usize>>>,
        all: Vec<(Rc<Notify>, JoinHandle<()>)>,
        /// What a task computes each time.
        work: Duration,
    }

    impl Bed {
        fn add(&mut self, host: usize, count: usize) {
            self.add_in(lane(host), host, count);
        }

        fn add_in(&mut self, lane: Lane, host: usize, count: usize) {
            for _ in 0..count {
                let (begun, went, work) = (self.begun.clone(), self.went.clone(), self.work);
                let asked = Rc::new(Notify::new());
                let comes = asked.clone();
                let task = spawn_local(in_turn(async move {
                    take(lane);
                    begun.set(begun.get() + 1);
                    loop {
                        comes.notified().await;
                        let since = std::time::Instant::now();
                        while since.elapsed() < work {}
                        went.borrow_mut().push(host);
                    }
                }));
                self.all.push((asked, task));
            }
        }

        /// Something comes for all, in the order in which they were added, when each waits for it.
        async fn ask(&self) {
            while self.begun.get() < self.all.len() {
                yield_now().await;
            }
            self.all.iter().for_each(|(asked, _)| asked.notify_one());
        }

        async fn until_went(&self, count: usize) -> Vec<usize> {
            while self.went.borrow().len() < count {
                yield_now().await;
            }
            self.went.borrow().clone()
        }

        /// Of so many in all, every task of the other host goes among the first.
        async fn other_goes_within(&self, first: usize, all: usize) {
            let went = self.until_went(all).await;
            let last = went.iter().rposition(|host| *host == OTHER).expect("it went");
            assert!(last <= first, "all of it went within the first {last}");
        }
    }

    /// As threads of traffic do.
    fn run(test: impl Future<Output = ()>) {
        let builder = &mut Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build_local(LocalOptions::default());
        runtime.expect("it starts").block_on(test);
    }

    #[test]
    fn however_many_tasks_of_one_host_are_ready_few_go_before_that_of_another_one() {
        run(async {
            let mut bed = Bed::default();
            bed.add(FLOODED, MANY);
            bed.add(OTHER, 1);
            bed.ask().await;
            let went = bed.until_went(MANY + 1).await;
            let before = went.iter().position(|host| *host == OTHER).expect("it went");
            assert!(before <= FEW + 1, "{before} went before it");
        });
    }

    #[test]
    fn hosts_go_by_turns_where_several_of_each_wait() {
        run(async {
            let mut bed = Bed::default();
            bed.add(FLOODED, MANY);
            bed.add(OTHER, 3 * FEW);
            bed.ask().await;
            // Half of each turn is its own, after one in which it was first.
            bed.other_goes_within(8 * FEW, MANY + 3 * FEW).await;
        });
    }

    #[test]
    fn who_has_many_hosts_gets_no_more_turns() {
        run(async {
            let mut bed = Bed::default();
            for host in 0..MANY {
                bed.add_in(Lane::of(Owner::named("many"), host), FLOODED, 1);
            }
            bed.add(OTHER, 3 * FEW);
            bed.ask().await;
            bed.other_goes_within(8 * FEW, MANY + 3 * FEW).await;
        });
    }

    #[test]
    fn clients_who_come_anew_wait_for_few_of_those_of_another_address() {
        run(async {
            let mut bed = Bed::default();
            let of = |address: [u8; 4]| Lane::of_newcomer(address.into());
            // Nobody would have to wait for anybody otherwise: who has not said what it wants is no host.
            bed.add(3, 1);
            bed.ask().await;
            bed.until_went(1).await;
            bed.add_in(of([10, 0, 0, 1]), FLOODED, MANY);
            bed.add_in(of([10, 0, 0, 2]), OTHER, FEW);
            bed.ask().await;
            bed.other_goes_within(6 * FEW, MANY + FEW + 2).await;
        });
    }

    #[test]
    fn who_goes_away_while_it_waits_takes_nobody_s_turn() {
        run(async {
            let mut bed = Bed::default();
            bed.add(FLOODED, MANY);
            bed.add(OTHER, 1);
            bed.ask().await;
            // They are woken, and find that they have to wait.
            bed.until_went(FEW).await;
            let gone = &bed.all[2 * FEW..MANY - 2 * FEW];
            gone.iter().for_each(|(_, task)| task.abort());
            let (left, mut turns) = (MANY + 1 - gone.len(), 0);
            while bed.went.borrow().len() < left {
                yield_now().await;
                turns += 1;
            }
            assert!(turns <= left / FEW + 3, "{turns} turns");
            while ROAD.with(|road| road.lanes.borrow().waiting > 0) {
                yield_now().await;
            }
            assert_eq!(bed.went.borrow().len(), left);
        });
    }

    #[test]
    fn lanes_where_nobody_waits_are_forgotten() {
        run(async {
            let mut bed = Bed::default();
            (FLOODED..MANY).for_each(|host| bed.add(host, 2));
            bed.ask().await;
            bed.until_went(2 * (MANY - FLOODED)).await;
            ROAD.with(super::Road::begin);
            ROAD.with(|road| {
                let lanes = road.lanes.borrow();
                assert!(lanes.all.is_empty() && lanes.empty.is_empty() && lanes.waiting == 0);
            });
        });
    }

    #[test]
    fn tasks_of_one_host_that_compute_for_long_wait_all_the_same() {
        let builder = &mut Builder::new_current_thread();
        let runtime = builder.enable_all().build_local(LocalOptions::default());
        runtime.expect("it starts").block_on(async {
            let mut bed = Bed { work: Duration::from_millis(10), ..Bed::default() };
            bed.add(FLOODED, MANY);
            bed.ask().await;
            bed.until_went(MANY).await;
            // As if it had been a while.
            ROAD.with(|road| road.alone_from.set(None));
            bed.ask().await;
            yield_now().await;
            let went = bed.went.borrow().len() - MANY;
            assert!(went <= 2 * FEW, "{went} went before others could be seen");
        });
    }

    #[test]
    fn a_thread_that_serves_one_host_has_nobody_wait() {
        run(async {
            let mut bed = Bed::default();
            bed.add(FLOODED, MANY);
            bed.ask().await;
            bed.until_went(MANY).await;
            tokio::time::advance(Duration::from_secs(2)).await;
            bed.ask().await;
            yield_now().await;
            assert_eq!(bed.went.borrow().len(), 2 * MANY, "all go in one turn");
        });
    }
}
