//! Whose slow hash is computed next: namespaces take turns, by what their hashes cost, and the Ingresses of each do.

use crate::crowds::Crowd;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Passwords of one Ingress that may wait.
const OF_INGRESS: usize = 256;
/// Passwords of one namespace that may wait.
const OF_NAMESPACE: usize = 1024;
/// Microseconds beyond which a hash is dear.
const DEAR: u64 = 300_000;

/// There are so many passwords to verify that this one is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Whose password it is: guesses at one must not keep the others waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The namespace that has the location.
    pub(crate) namespace: Arc<str>,
    /// The Ingress that asks for the password.
    pub(crate) ingress: Arc<str>,
}

/// Places in which hashes are computed, and who waits for one. A namespace has at most half of them, and so have all
/// dear hashes together: one that has begun cannot be stopped, so that others would wait for its end.
#[derive(Debug)]
pub(super) struct Turns {
    places: usize,
    room: usize,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    by_namespace: BTreeMap<Arc<str>, Line>,
    running: usize,
    dear: usize,
    /// What whoever was chosen last had been charged until then: who comes anew begins here.
    clock: u64,
    /// Who has come so far.
    came: u64,
    /// Who found no room.
    refused: u64,
}

/// Who waits in one namespace.
#[derive(Debug, Default)]
struct Line {
    /// What it was charged for; who was charged least goes first.
    charged: u64,
    running: usize,
    waiting: usize,
    /// First those of cheap hashes, then those of dear ones.
    queues: [VecDeque<Queue>; 2],
}

/// Who waits at one Ingress, which goes to the end of its line after each turn.
#[derive(Debug)]
struct Queue {
    ingress: Arc<str>,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    cost: u64,
    called: oneshot::Sender<Turn>,
}

/// A place in which a hash may be computed, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    namespace: Arc<str>,
    is_dear: bool,
}

/// A place in a queue, until it is dropped.
struct Ticket<'a> {
    turns: &'a Arc<Turns>,
    asker: &'a Asker,
    is_dear: bool,
    call: oneshot::Receiver<Turn>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.end(&self.namespace, self.is_dear);
        self.turns.call();
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.call.close();
        self.turns.lines.lock().forget(self.asker, self.is_dear);
    }
}

impl Turns {
    /// `places` hashes at a time; `room` is what may wait at one Ingress.
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places, room: OF_INGRESS, lines: Mutex::default() })
    }

    /// Nobody has a turn, and nobody may wait for one.
    #[cfg(test)]
    pub(super) fn closed() -> Arc<Self> {
        Arc::new(Self { places: 0, room: 0, lines: Mutex::default() })
    }

    /// Waits for a turn to compute a hash that takes `cost` microseconds.
    pub(super) async fn turn(self: &Arc<Self>, asker: &Asker, cost: u64) -> Result<Turn, Busy> {
        let is_dear = cost > DEAR;
        let call = self.lines.lock().enter(asker, cost, self.room)?;
        let mut ticket = Ticket { turns: self, asker, is_dear, call };
        self.call();
        (&mut ticket.call).await.map_err(|_| Busy)
    }

    /// Calls whoever is next, as long as there are places.
    fn call(self: &Arc<Self>) {
        loop {
            let Some((namespace, waiter)) = self.lines.lock().next(self.places) else { return };
            let turn = Turn { turns: self.clone(), namespace, is_dear: waiter.cost > DEAR };
            // If the client went away just now, the turn comes back, ends at once, and the next one has it.
            drop(waiter.called.send(turn));
        }
    }

    fn end(&self, namespace: &str, is_dear: bool) {
        let mut lines = self.lines.lock();
        lines.running -= 1;
        lines.dear -= usize::from(is_dear);
        if let Some(line) = lines.by_namespace.get_mut(namespace) {
            line.running -= 1;
        }
        lines.forgive();
    }

    /// How many wait of the namespace of which most do.
    pub(super) fn crowd(&self) -> Crowd {
        let lines = self.lines.lock();
        let waiting = lines.by_namespace.values().map(|line| line.waiting as u64);
        Crowd { now: waiting.max().unwrap_or(0), most: OF_NAMESPACE as u64, refused: lines.refused }
    }
}

impl Lines {
    fn enter(
        &mut self,
        asker: &Asker,
        cost: u64,
        room: usize,
    ) -> Result<oneshot::Receiver<Turn>, Busy> {
        let line = self.by_namespace.entry(asker.namespace.clone()).or_default();
        let queues = &mut line.queues[usize::from(cost > DEAR)];
        let at = queues.iter().position(|queue| queue.ingress == asker.ingress);
        let waiting = at.map_or(0, |at| queues[at].waiting.len());
        if waiting >= room || line.waiting >= OF_NAMESPACE {
            self.refused += 1;
            return Err(Busy);
        }
        if line.waiting == 0 {
            line.charged = line.charged.max(self.clock);
        }
        let (called, call) = oneshot::channel();
        let waiter = Waiter { number: self.came, cost, called };
        match at {
            Some(at) => queues[at].waiting.push_back(waiter),
            None => {
                queues.push_back(Queue { ingress: asker.ingress.clone(), waiting: [waiter].into() })
            }
        }
        line.waiting += 1;
        self.came += 1;
        Ok(call)
    }

    /// Who has the next turn, which begins.
    fn next(&mut self, places: usize) -> Option<(Arc<str>, Waiter)> {
        if self.running >= places {
            return None;
        }
        let kinds = if self.dear < places / 2 { 2 } else { 1 };
        let waiting = self.by_namespace.iter_mut().filter(|(_, line)| line.running < places / 2);
        let heads = waiting.filter_map(|(namespace, line)| {
            let first = (0..kinds).filter_map(|kind| Some((line.number(kind)?, kind))).min()?;
            Some(((line.charged, first), namespace, line))
        });
        let ((charged, (_, kind)), namespace, line) = heads.min_by_key(|(order, ..)| *order)?;
        let waiter = line.take(kind)?;
        self.clock = self.clock.max(charged);
        self.running += 1;
        self.dear += usize::from(waiter.cost > DEAR);
        Some((namespace.clone(), waiter))
    }

    /// Takes those out of a queue whose clients went away.
    fn forget(&mut self, asker: &Asker, is_dear: bool) {
        let Some(line) = self.by_namespace.get_mut(&asker.namespace) else { return };
        let queues = &mut line.queues[usize::from(is_dear)];
        let Some(at) = queues.iter().position(|queue| queue.ingress == asker.ingress) else {
            return;
        };
        let waiting = &mut queues[at].waiting;
        let before = waiting.len();
        waiting.retain(|waiter| !waiter.called.is_closed());
        line.waiting -= before - waiting.len();
        if waiting.is_empty() {
            queues.remove(at);
        }
        self.forgive();
    }

    /// Forgets namespaces that owe nothing to those who wait.
    fn forgive(&mut self) {
        let clock = self.clock;
        let is_idle = |line: &Line| line.running == 0 && line.waiting == 0;
        if self.by_namespace.values().all(is_idle) {
            self.by_namespace.clear();
        }
        self.by_namespace.retain(|_, line| !is_idle(line) || line.charged > clock);
    }
}

impl Line {
    /// When the first one of a kind came.
    fn number(&self, kind: usize) -> Option<u64> {
        Some(self.queues[kind].front()?.waiting.front()?.number)
    }

    fn take(&mut self, kind: usize) -> Option<Waiter> {
        let mut queue = self.queues[kind].pop_front()?;
        let waiter = queue.waiting.pop_front()?;
        if !queue.waiting.is_empty() {
            self.queues[kind].push_back(queue);
        }
        self.waiting -= 1;
        self.running += 1;
        self.charged += waiter.cost;
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::{Asker, Busy, OF_INGRESS, OF_NAMESPACE, Turn, Turns};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    const CHEAP: u64 = 10;
    const DEAR: u64 = super::DEAR + 1;

    /// Somebody who came for a turn.
    struct Came {
        future: Pin<Box<dyn Future<Output = Result<Turn, Busy>>>>,
        turn: Option<Result<Turn, Busy>>,
    }

    impl Came {
        fn to(turns: &Arc<Turns>, namespace: &str, ingress: &str, cost: u64) -> Self {
            let asker = Asker { namespace: namespace.into(), ingress: ingress.into() };
            let turns = turns.clone();
            let future = Box::pin(async move { turns.turn(&asker, cost).await });
            let mut came = Self { future, turn: None };
            came.look();
            came
        }

        fn look(&mut self) -> Option<&Result<Turn, Busy>> {
            if self.turn.is_none()
                && let Poll::Ready(turn) =
                    self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                self.turn = Some(turn);
            }
            self.turn.as_ref()
        }

        fn has_turn(&mut self) -> bool {
            self.look().is_some_and(Result::is_ok)
        }

        fn is_sent_away(&mut self) -> bool {
            self.look().is_some_and(Result::is_err)
        }
    }

    /// Ends the turn of whoever has one; whether somebody had.
    fn end_one(all: &mut Vec<Came>) -> bool {
        let at = all.iter_mut().position(Came::has_turn);
        at.map(|at| all.remove(at)).is_some()
    }

    #[test]
    fn a_namespace_with_many_ingresses_keeps_nobody_else_waiting() {
        let turns = Turns::new(2);
        let ingresses = 0..60;
        let come = |number: i32| Came::to(&turns, "evil", &number.to_string(), DEAR);
        let mut evil: Vec<_> = ingresses.map(come).collect();
        assert_eq!(evil.iter_mut().filter_map(|one| one.has_turn().then_some(())).count(), 1);
        assert!(Came::to(&turns, "victim", "i", CHEAP).has_turn());
        // Of two namespaces that have all places, none has the next one before a third.
        let mut other: Vec<_> = (0..9).map(|_| Came::to(&turns, "other", "i", CHEAP)).collect();
        let mut third = Came::to(&turns, "third", "i", CHEAP);
        assert!(!third.has_turn() && end_one(&mut other) && third.has_turn());
    }

    #[test]
    fn who_costs_more_has_fewer_turns() {
        let turns = Turns::new(2);
        let _held = Came::to(&turns, "held", "i", CHEAP);
        let mut cheap: Vec<_> = (0..30).map(|_| Came::to(&turns, "cheap", "i", 100)).collect();
        let mut dear: Vec<_> = (0..30).map(|_| Came::to(&turns, "dear", "i", 1000)).collect();
        for _ in 0..22 {
            assert!(end_one(&mut cheap) || end_one(&mut dear));
        }
        assert_eq!((cheap.len(), dear.len()), (10, 28));
    }

    #[test]
    fn dear_hashes_of_many_namespaces_leave_half_of_the_places_to_cheap_ones() {
        let turns = Turns::new(2);
        let mut first = Came::to(&turns, "a", "i", DEAR);
        let mut second = Came::to(&turns, "b", "i", DEAR);
        assert!(first.has_turn() && !second.has_turn());
        assert!(Came::to(&turns, "c", "i", CHEAP).has_turn());
        drop(first);
        assert!(second.has_turn());
    }

    #[test]
    fn ingresses_of_a_namespace_take_turns() {
        let turns = Turns::new(2);
        let mut flood: Vec<_> = (0..9).map(|_| Came::to(&turns, "a", "flood", CHEAP)).collect();
        let mut other = Came::to(&turns, "a", "other", CHEAP);
        assert!(end_one(&mut flood) && !other.has_turn());
        assert!(end_one(&mut flood) && other.has_turn());
    }

    #[test]
    fn whoever_finds_a_queue_full_is_sent_away_until_others_leave() {
        let turns = Turns::new(2);
        let fill = |ingress: &str| -> Vec<_> {
            let come = || Came::to(&turns, "a", ingress, CHEAP);
            std::iter::repeat_with(come).take_while(|came| came.turn.is_none()).collect()
        };
        let held = Came::to(&turns, "a", "held", CHEAP);
        let mut waiting = fill("i");
        assert_eq!(waiting.len(), OF_INGRESS);
        waiting.pop();
        let again = Came::to(&turns, "a", "i", CHEAP);
        assert!(again.turn.is_none(), "who went away leaves room");
        let of_others: Vec<_> = (0..9).flat_map(|number| fill(&number.to_string())).collect();
        assert_eq!(of_others.len(), OF_NAMESPACE - OF_INGRESS);
        assert!(Came::to(&turns, "a", "other", CHEAP).is_sent_away());
        let crowd = turns.crowd();
        assert_eq!((crowd.now, crowd.most), (OF_NAMESPACE as u64, OF_NAMESPACE as u64));
        assert!(crowd.refused > 0);
        assert!(Came::to(&turns, "b", "i", CHEAP).has_turn());
        drop((waiting, again, of_others, held));
        assert!(turns.lines.lock().by_namespace.is_empty() && turns.lines.lock().running == 0);
    }
}
