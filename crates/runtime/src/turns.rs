//! Turns of those who ask at a port that strangers reach: so many at a time, and one of each address. The next one is
//! that address's which had its last one longest ago: who asks more often, or over more connections, is not asked for
//! more often, and keeps nobody else waiting.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use system::sockets::party;
use tokio::sync::oneshot;

/// Addresses whose last turn is remembered; beyond that those that had theirs longest ago, and want none, are not.
const REMEMBERED: usize = 1024;

/// All turns.
#[derive(Debug)]
pub struct Turns {
    at_a_time: usize,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    by_address: HashMap<IpAddr, Line>,
    running: usize,
    /// Turns that were given so far.
    given: u64,
    /// Who has come so far.
    came: u64,
}

/// Who waits at one address.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Waiter>,
    is_running: bool,
    /// The number of its last turn.
    last: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    called: oneshot::Sender<Turn>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
    address: IpAddr,
}

/// A place in a line, until it is dropped.
struct Ticket<'a> {
    turns: &'a Turns,
    address: IpAddr,
    call: oneshot::Receiver<Turn>,
}

impl Turns {
    /// So many at a time.
    pub fn new(at_a_time: usize) -> Arc<Self> {
        Arc::new(Self { at_a_time, lines: Mutex::default() })
    }

    /// Waits for a turn of this address.
    pub async fn turn(self: &Arc<Self>, address: IpAddr) -> Turn {
        let address = party(address);
        let call = self.lines.lock().enter(address);
        let mut ticket = Ticket { turns: self, address, call };
        self.call();
        (&mut ticket.call).await.expect("who waits is called")
    }

    /// Calls whoever is next, as long as there are turns.
    fn call(self: &Arc<Self>) {
        loop {
            let Some((address, waiter)) = self.lines.lock().next(self.at_a_time) else { return };
            let turn = Turn { turns: Arc::clone(self), address };
            // If somebody went away just now, the turn comes back, ends at once, and the next one has it.
            drop(waiter.called.send(turn));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lines.lock().end(self.address);
        self.turns.call();
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.call.close();
        if let Some(line) = self.turns.lines.lock().by_address.get_mut(&self.address) {
            line.waiting.retain(|waiter| !waiter.called.is_closed());
        }
    }
}

impl Lines {
    fn enter(&mut self, address: IpAddr) -> oneshot::Receiver<Turn> {
        if self.by_address.len() >= REMEMBERED && !self.by_address.contains_key(&address) {
            let idle = self.by_address.iter().filter(|(_, line)| line.is_idle());
            if let Some(first) = idle.min_by_key(|(_, line)| line.last).map(|(first, _)| *first) {
                self.by_address.remove(&first);
            }
        }
        let (called, call) = oneshot::channel();
        self.came += 1;
        let waiter = Waiter { number: self.came, called };
        self.by_address.entry(address).or_default().waiting.push_back(waiter);
        call
    }

    /// Who has the next turn, which begins.
    fn next(&mut self, at_a_time: usize) -> Option<(IpAddr, Waiter)> {
        if self.running >= at_a_time {
            return None;
        }
        let waiting = self.by_address.iter_mut().filter(|(_, line)| !line.is_running);
        let heads = waiting.filter_map(|(address, line)| {
            Some(((line.last, line.waiting.front()?.number), address, line))
        });
        let (_, address, line) = heads.min_by_key(|(order, ..)| *order)?;
        let waiter = line.waiting.pop_front()?;
        self.running += 1;
        self.given += 1;
        (line.is_running, line.last) = (true, self.given);
        Some((*address, waiter))
    }

    fn end(&mut self, address: IpAddr) {
        self.running -= 1;
        if let Some(line) = self.by_address.get_mut(&address) {
            line.is_running = false;
        }
    }
}

impl Line {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.is_running
    }
}

#[cfg(test)]
mod tests {
    use super::{REMEMBERED, Turn, Turns};
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    type Waiting = Pin<Box<dyn Future<Output = Turn>>>;

    fn of(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(number))
    }

    /// Somebody who has come and waits, if there is no turn at once.
    fn came(turns: &Arc<Turns>, address: IpAddr) -> Waiting {
        let turns = Arc::clone(turns);
        Box::pin(async move { turns.turn(address).await })
    }

    fn look(waiting: &mut Waiting) -> Option<Turn> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    /// Ends one turn after the other; whose they were, by their numbers.
    fn order(mut turn: Turn, mut all: Vec<Waiting>) -> Vec<usize> {
        let mut order = Vec::new();
        let mut done = vec![false; all.len()];
        while let Some((number, next)) = {
            drop(turn);
            let mut waiting = all.iter_mut().enumerate().filter(|(number, _)| !done[*number]);
            waiting.find_map(|(number, one)| Some((number, look(one)?)))
        } {
            done[number] = true;
            order.push(number);
            turn = next;
        }
        order
    }

    #[test]
    fn the_next_turn_is_that_address_s_which_had_one_longest_ago() {
        let turns = Turns::new(1);
        let (flood, other, third) = (of(1), of(2), of(3));
        let first = look(&mut came(&turns, flood)).expect("nobody has one");
        let mut all: Vec<Waiting> = Vec::new();
        for address in [flood, flood, flood, flood, other, third, other] {
            let mut one = came(&turns, address);
            assert!(look(&mut one).is_none(), "one at a time");
            all.push(one);
        }
        assert_eq!(order(first, all), [4, 5, 0, 6, 1, 2, 3]);
        assert_eq!(turns.lines.lock().running, 0);
    }

    #[test]
    fn an_address_has_one_turn_at_a_time_and_leaves_the_rest_to_others() {
        let turns = Turns::new(2);
        let first = look(&mut came(&turns, of(1))).expect("there are two");
        let mut second = came(&turns, of(1));
        assert!(look(&mut second).is_none(), "it has one");
        let other = look(&mut came(&turns, of(2))).expect("another address has the other one");
        let mut third = came(&turns, of(3));
        assert!(look(&mut third).is_none(), "both are taken");
        drop(first);
        assert!(look(&mut second).is_none(), "the third never had one");
        assert!(look(&mut third).is_some());
        drop((other, third));
        assert!(look(&mut second).is_some());
    }

    #[test]
    fn who_goes_away_leaves_no_turn_behind_and_few_addresses_are_remembered() {
        let turns = Turns::new(1);
        let first = look(&mut came(&turns, of(1))).expect("nobody has one");
        let mut gone = came(&turns, of(2));
        let mut called = came(&turns, of(3));
        assert!(look(&mut gone).is_none() && look(&mut called).is_none());
        drop(gone);
        assert!(turns.lines.lock().by_address[&of(2)].waiting.is_empty());
        drop(first);
        // It was called and never looked.
        drop(called);
        for number in 0..2 * u32::try_from(REMEMBERED).expect("it is small") {
            look(&mut came(&turns, of(number))).expect("nobody has one");
        }
        assert!(turns.lines.lock().by_address.len() <= REMEMBERED);
    }
}
