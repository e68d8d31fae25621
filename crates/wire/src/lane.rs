//! Who goes first where more tasks are ready than a thread gets done: each host has a lane, and those who wait go from
//! lane after lane. Whoever is asked seldom does not stand behind whoever is asked a lot.

use pin_project_lite::pin_project;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::{AbortHandle, spawn_local, yield_now};
use tokio::time::Instant;

/// Tasks that go in one turn of the event loop whoever they are of, those first who wait; then one more of each lane.
const FEW: usize = 4;
/// A thread that has served one host alone for as long has nobody wait.
const LATELY: Duration = Duration::from_secs(1);
/// The lane of those who have not said yet what they want.
const NEWCOMERS: usize = 0;

/// What a thread knows of its tasks.
#[derive(Default)]
struct Road {
    /// The lane of the task that goes right now.
    here: Cell<usize>,
    /// Tasks that went in this turn; no more are counted than `FEW`.
    went: Cell<usize>,
    /// The host that had a task last, and when that became another one.
    host: Cell<usize>,
    changed: Cell<Option<Instant>>,
    lanes: RefCell<Lanes>,
}

#[derive(Default)]
struct Lanes {
    /// Who waits in each. Where nobody does, one has gone in this turn.
    all: BTreeMap<usize, VecDeque<Rc<Waiting>>>,
    /// The lanes in which nobody waited at some time of this turn.
    empty: Vec<usize>,
    /// How many wait in all.
    waiting: usize,
    /// The lane that was called last.
    called: usize,
    /// The task that counts turns while somebody waits.
    counting: Option<AbortHandle>,
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
        lane: usize,
        waiting: Option<Rc<Waiting>>,
        #[pin]
        task: F,
    }
}

/// A local task that lets those of other hosts go before it, each time that it has something to do. It begins in the
/// lane of whoever makes it.
pub fn in_turn<F: Future>(task: F) -> InTurn<F> {
    InTurn { lane: ROAD.with(|road| road.here.get()), waiting: None, task }
}

/// The task that goes right now is of this host from now on; hosts are told apart by any number but 0.
pub fn take(host: usize) {
    ROAD.with(|road| road.here.set(host));
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
            *own.lane = road.here.replace(NEWCOMERS);
            outcome
        })
    }
}

impl Road {
    /// Whether a task goes without asking who waits.
    fn is_free(&self, lane: usize) -> bool {
        if lane != NEWCOMERS && lane != self.host.get() {
            self.host.set(lane);
            self.changed.set(Some(crate::now()));
        }
        let went = self.went.get();
        if went < FEW {
            self.went.set(went + 1);
        }
        went < FEW || (self.is_one_host_s() && self.lanes.borrow().waiting == 0)
    }

    fn is_one_host_s(&self) -> bool {
        self.changed.get().is_none_or(|changed| crate::since(changed) >= LATELY)
    }

    /// A place in a lane; none for the first one of this turn, which goes at once.
    fn wait(&self, lane: usize, cx: &Context<'_>) -> Option<Rc<Waiting>> {
        let mut lanes = self.lanes.borrow_mut();
        let Some(others) = lanes.all.get_mut(&lane) else {
            lanes.all.insert(lane, VecDeque::new());
            lanes.empty.push(lane);
            return None;
        };
        let waiting = Rc::new(Waiting { waker: cx.waker().clone(), is_called: Cell::new(false) });
        others.push_back(waiting.clone());
        lanes.waiting += 1;
        if lanes.counting.as_ref().is_none_or(AbortHandle::is_finished) {
            lanes.counting = Some(spawn_local(count()).abort_handle());
        }
        Some(waiting)
    }

    /// Begins a turn.
    fn begin(&self) {
        self.went.set(0);
        let mut lanes = self.lanes.borrow_mut();
        let Lanes { all, empty, .. } = &mut *lanes;
        // Those where somebody waits are not looked at: they may be as many as there are hosts.
        for lane in empty.drain(..) {
            if all.get(&lane).is_some_and(VecDeque::is_empty) {
                all.remove(&lane);
            }
        }
    }

    /// Begins a turn with those who wait.
    fn call(&self) -> Vec<Rc<Waiting>> {
        self.begin();
        let most = if self.is_one_host_s() { usize::MAX } else { FEW };
        let mut lanes = self.lanes.borrow_mut();
        let called: Vec<_> = std::iter::from_fn(|| lanes.next()).take(most).collect();
        self.went.set(called.len());
        called
    }
}

impl Lanes {
    /// The next one who waits, of the lane behind the one before it; those who are gone leave it to others.
    fn next(&mut self) -> Option<Rc<Waiting>> {
        while self.waiting > 0 {
            let behind = self.all.range(self.called.wrapping_add(1)..).chain(&self.all);
            self.called = *behind.into_iter().find(|(_, waiting)| !waiting.is_empty())?.0;
            let lane = self.all.get_mut(&self.called)?;
            let first = lane.pop_front()?;
            if lane.is_empty() {
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
    use super::{FEW, ROAD, in_turn, take};
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

    /// Tasks of hosts, and of which host one went, in their order.
    #[derive(Default)]
    struct Bed {
        begun: Rc<Cell<usize>>,
        went: Rc<RefCell<Vec<usize>>>,
        all: Vec<(Rc<Notify>, JoinHandle<()>)>,
    }

    impl Bed {
        fn add(&mut self, host: usize, count: usize) {
            for _ in 0..count {
                let (begun, went) = (self.begun.clone(), self.went.clone());
                let asked = Rc::new(Notify::new());
                let comes = asked.clone();
                let task = spawn_local(in_turn(async move {
                    take(host);
                    begun.set(begun.get() + 1);
                    loop {
                        comes.notified().await;
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
            let went = bed.until_went(MANY + 3 * FEW).await;
            let last = went.iter().rposition(|host| *host == OTHER).expect("it went");
            // Half of each turn is its own, after one in which it was first.
            assert!(last <= 8 * FEW, "all of it went within the first {last}");
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
