//! Who goes first where more datagrams come than threads carry: namespaces take turns, and in each of them its ports.

use model::StreamPort;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// What each thread does in turns between two looks at what came, in moves of a datagram from one side to the other.
pub(crate) const FEW: i64 = 32;

/// The turns of all ports.
#[derive(Debug)]
pub(crate) struct Turns(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Moves to be had at once. As long as there are any, nobody waits; the last one who had a turn may have overdrawn.
    free: i64,
    /// Moves whose turns are over: they are to be had again once the event loop has looked what came.
    over: i64,
    /// Whether there is a task that waits for it.
    is_looking: bool,
    waiting: Lanes<Arc<str>, Lanes<StreamPort, VecDeque<Waiting>>>,
}

/// Who waits for a turn of so many moves.
type Waiting = (oneshot::Sender<Turn>, i64);

/// A turn, until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    all: Arc<Turns>,
    moves: i64,
}

/// Those who wait, by whose they are. There is no lane where nobody does.
#[derive(Debug)]
struct Lanes<K, L> {
    all: BTreeMap<K, L>,
    /// The lane that was called last.
    called: Option<K>,
}

impl Turns {
    /// Those of so many threads.
    pub(crate) fn new(threads: usize) -> Arc<Self> {
        let free = FEW.saturating_mul(i64::try_from(threads.max(1)).unwrap_or(i64::MAX));
        let state = State { free, over: 0, is_looking: false, waiting: Lanes::default() };
        Arc::new(Self(Mutex::new(state)))
    }

    /// The next turn of a port, for so many moves. Who has it must wait for nobody else until it is over.
    pub(crate) async fn take(
        self: &Arc<Self>,
        namespace: &Arc<str>,
        port: StreamPort,
        moves: i64,
    ) -> Turn {
        let called = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= moves;
                return Turn { all: self.clone(), moves };
            }
            let (call, called) = oneshot::channel();
            let ports = state.waiting.all.entry(namespace.clone()).or_default();
            ports.all.entry(port).or_default().push_back((call, moves));
            self.look(&mut state);
            called
        };
        called.await.expect("who waits is kept until it is called")
    }

    /// Sees to it that those who wait are called.
    fn look(self: &Arc<Self>, state: &mut State) {
        if state.is_looking || state.over == 0 || state.waiting.all.is_empty() {
            return;
        }
        if let Ok(here) = Handle::try_current() {
            state.is_looking = true;
            here.spawn(self.clone().call());
        }
    }

    /// Calls those whose turn it is, of lane after lane.
    async fn call(self: Arc<Self>) {
        // What yields goes on when the event loop has looked what came, and not before.
        yield_now().await;
        let called = {
            let mut state = self.0.lock();
            state.is_looking = false;
            state.free += std::mem::take(&mut state.over);
            let mut called = Vec::new();
            while state.free > 0
                && let Some((call, moves)) = state.next()
            {
                state.free -= moves;
                called.push((call, moves));
            }
            called
        };
        for (call, moves) in called {
            // Of who went away meanwhile the turn comes back at once.
            drop(call.send(Turn { all: self.clone(), moves }));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.all.0.lock();
        state.over += self.moves;
        self.all.look(&mut state);
    }
}

impl State {
    /// The next one who waits and has not gone away.
    fn next(&mut self) -> Option<Waiting> {
        loop {
            let namespace = self.waiting.next()?;
            let ports = self.waiting.all.get_mut(&namespace)?;
            let port = ports.next()?;
            let lane = ports.all.get_mut(&port)?;
            let first = lane.pop_front();
            if lane.is_empty() {
                ports.all.remove(&port);
            }
            if ports.all.is_empty() {
                self.waiting.all.remove(&namespace);
            }
            if let Some(first) = first.filter(|(call, _)| !call.is_closed()) {
                return Some(first);
            }
        }
    }
}

impl<K: Ord + Clone, L> Lanes<K, L> {
    /// The lane behind the one that was called last.
    fn next(&mut self) -> Option<K> {
        let behind = self.called.as_ref().map(|called| (Excluded(called), Unbounded));
        let behind = behind.and_then(|behind| self.all.range(behind).next());
        let (next, _) = behind.or_else(|| self.all.first_key_value())?;
        self.called = Some(next.clone());
        self.called.clone()
    }
}

impl<K, L> Default for Lanes<K, L> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), called: None }
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Turn, Turns};
    use model::{StreamPort, Transport};
    use parking_lot::Mutex;
    use std::sync::Arc;
    use tokio::task::{JoinHandle, yield_now};

    /// Moves of a turn here: of such turns there are four at once.
    const MOVES: i64 = FEW / 4;

    fn port(number: u16) -> StreamPort {
        StreamPort { transport: Transport::Udp, number, address: None }
    }

    /// Those whose turn it was, in order.
    #[derive(Clone, Default)]
    struct Order(Arc<Mutex<Vec<(&'static str, u16)>>>);

    impl Order {
        /// So many who each take one turn of a port.
        fn wait(
            &self,
            turns: &Arc<Turns>,
            (namespace, number): (&'static str, u16),
            many: usize,
        ) -> Vec<JoinHandle<()>> {
            let each = |_| {
                let (turns, order) = (turns.clone(), self.0.clone());
                tokio::spawn(async move {
                    let _turn = turns.take(&namespace.into(), port(number), MOVES).await;
                    order.lock().push((namespace, number));
                })
            };
            (0..many).map(each).collect()
        }

        fn take(&self) -> Vec<(&'static str, u16)> {
            std::mem::take(&mut *self.0.lock())
        }
    }

    /// All turns that there are at once.
    async fn all(turns: &Arc<Turns>) -> Vec<Turn> {
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(turns.take(&"first".into(), port(1), MOVES).await);
        }
        all
    }

    async fn ended(tasks: impl IntoIterator<Item = JoinHandle<()>>) {
        for task in tasks {
            task.await.expect("no panic");
        }
    }

    /// How often the event loop may have looked until everything has gone that goes.
    async fn looks() {
        for _ in 0..100 {
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn whoever_waits_with_many_goes_by_turns_with_whoever_waits_with_few() {
        let (turns, order) = (Turns::new(1), Order::default());
        let held = all(&turns).await;
        let mut tasks = order.wait(&turns, ("bad", 1), 100);
        tasks.extend(order.wait(&turns, ("bad", 2), 2));
        tasks.extend(order.wait(&turns, ("good", 3), 2));
        looks().await;
        assert_eq!(order.take(), [], "nobody goes while others have all turns");
        drop(held);
        ended(tasks).await;
        let went = order.take();
        let first = [("bad", 1), ("good", 3), ("bad", 2), ("good", 3), ("bad", 1), ("bad", 2)];
        assert_eq!((went.len(), &went[..6]), (104, &first[..]));
    }

    #[tokio::test]
    async fn turns_that_are_held_are_nobody_elses_and_come_back_one_by_one() {
        let (turns, order) = (Turns::new(1), Order::default());
        let mut held = all(&turns).await;
        let tasks = order.wait(&turns, ("one", 1), 3);
        held.pop();
        ended(tasks).await;
        assert_eq!(order.take().len(), 3, "one turn is enough for all, one after another");
        let more = order.wait(&turns, ("one", 1), 1);
        let others = order.wait(&turns, ("two", 1), 1);
        drop(held);
        ended(more.into_iter().chain(others)).await;
        assert_eq!(all(&turns).await.len(), 4, "none is lost");
    }

    #[tokio::test]
    async fn who_goes_away_while_it_waits_takes_no_turn_with_it() {
        let (turns, order) = (Turns::new(1), Order::default());
        let held = all(&turns).await;
        let gone = order.wait(&turns, ("one", 1), 50);
        let last = order.wait(&turns, ("two", 1), 1);
        looks().await;
        for task in &gone {
            task.abort();
        }
        looks().await;
        drop(held);
        ended(last).await;
        assert_eq!(order.take(), [("two", 1)]);
        assert_eq!(all(&turns).await.len(), 4, "none is lost");
    }
}
