//! Questions to name servers that are on their way: so many at a time, namespaces by turns, and few to servers that did
//! not answer in time. Whoever waits holds nothing but its place.

use crate::order::{Order, Whose};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Questions on their way at a time; a namespace has a quarter of them. Each has some sockets open: one for
/// each server, and for each time that it asks again.
const AT_ONCE: usize = 32;
/// A question that fails after as long has kept others waiting: whoever is asked did not answer in time.
const SLOW: Duration = Duration::from_secs(2);

/// All questions.
#[derive(Debug)]
pub(crate) struct Questions(Mutex<State>);

#[derive(Debug)]
struct State {
    order: Order,
    waiting: HashMap<usize, (Whose, oneshot::Sender<Turn>)>,
    /// How many have come so far.
    came: usize,
}

/// A turn to ask, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    questions: Arc<Questions>,
    whose: Whose,
    is_late: bool,
    began: Instant,
    /// Whether whoever was asked was heard in time; none if that is not known.
    in_time: Option<bool>,
}

/// A place among those who wait, until it is dropped.
struct Ticket<'a> {
    questions: &'a Questions,
    whose: &'a Whose,
    id: usize,
    since: Instant,
}

impl Default for Questions {
    fn default() -> Self {
        Self(Mutex::new(State { order: Order::new(AT_ONCE), waiting: HashMap::new(), came: 0 }))
    }
}

/// Whose question about a host it is. Names of one zone have the same servers, mostly; a host that a URL names is of no
/// namespace, and has the share of its zone.
pub(crate) fn whose(namespace: &Arc<str>, host: &str) -> Whose {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let second_last = host.rmatch_indices('.').nth(1);
    let zone: Arc<str> = host[second_last.map_or(0, |(at, _)| at + 1)..].into();
    let namespace = if namespace.is_empty() { zone.clone() } else { namespace.clone() };
    Whose { namespace, responder: zone }
}

impl Questions {
    /// Waits for a turn.
    pub(crate) async fn turn(self: &Arc<Self>, whose: &Whose) -> Turn {
        let since = Instant::now();
        let (call, called) = oneshot::channel();
        let id = {
            let mut state = self.0.lock();
            state.came += 1;
            let id = state.came;
            state.order.wait(whose, id, since);
            state.waiting.insert(id, (whose.clone(), call));
            id
        };
        let _ticket = Ticket { questions: self, whose, id, since };
        self.call();
        called.await.expect("who waits is kept until it is called")
    }

    /// Calls whoever is next, as long as there are turns.
    fn call(self: &Arc<Self>) {
        loop {
            let (call, turn) = {
                let mut state = self.0.lock();
                let Some((id, is_late)) = state.order.next(Instant::now()) else { return };
                let Some((whose, call)) = state.waiting.remove(&id) else { return };
                let (questions, began) = (self.clone(), Instant::now());
                (call, Turn { questions, whose, is_late, began, in_time: None })
            };
            // Of who went away meanwhile the turn comes back at once.
            drop(call.send(turn));
        }
    }
}

impl Turn {
    /// Notes whether there was an answer; one that says that there is no such name is of use to nobody, and held
    /// against nobody.
    pub(crate) fn end(mut self, answered: bool) {
        let late = (self.began.elapsed() >= SLOW).then_some(false);
        self.in_time = if answered { Some(true) } else { late };
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = Instant::now();
        self.questions.0.lock().order.end(&self.whose, self.is_late, self.in_time, now);
        self.questions.call();
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.questions.0.lock();
        if state.waiting.remove(&self.id).is_some() {
            state.order.leave(self.whose, self.id, self.since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, Questions, Turn, whose};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    type Waiting = Pin<Box<dyn Future<Output = Turn>>>;

    fn came(questions: &Arc<Questions>, namespace: &str, host: &str) -> Waiting {
        let (questions, whose) = (questions.clone(), whose(&namespace.into(), host));
        Box::pin(async move { questions.turn(&whose).await })
    }

    fn look(waiting: &mut Waiting) -> Option<Turn> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn names_of_one_zone_are_one_server_s_and_a_host_of_a_url_has_the_share_of_its_zone() {
        let of = |namespace: &str, host| {
            let whose = whose(&namespace.into(), host);
            (whose.namespace.to_string(), whose.responder.to_string())
        };
        assert_eq!(of("demo", "a.b.Slow.test."), ("demo".into(), "slow.test".into()));
        assert_eq!(of("", "db.example"), ("db.example".into(), "db.example".into()));
        assert_eq!(of("", "db"), ("db".into(), "db".into()));
    }

    #[test]
    fn a_namespace_has_a_quarter_and_who_goes_away_leaves_nothing_behind() {
        let questions = Arc::new(Questions::default());
        let mut bad: Vec<_> = (0..100).map(|_| came(&questions, "bad", "slow.test")).collect();
        let turns: Vec<_> = bad.iter_mut().filter_map(look).collect();
        assert_eq!(turns.len(), AT_ONCE / 4);
        let good = look(&mut came(&questions, "good", "fast.test")).expect("there is room");
        good.end(true);
        drop(bad);
        assert!(questions.0.lock().waiting.is_empty(), "nobody waits any more");
        drop(turns);
        let next = look(&mut came(&questions, "bad", "slow.test"));
        assert!(next.is_some(), "{questions:?}");
    }
}
