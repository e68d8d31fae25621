//! What requests under way hold of memory: streams of HTTP/2, encoders and programs of snippets count as they come,
//! within bounds of all, and where there is no more, whoever holds most and moves least goes first (docs/overload.md).

use crate::connection::{Connection, Guest};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use wire::lane::Owner;
use wire::{Bound, Control, Loan, Request, Room};

/// The memory that the process is taken to have where nobody says.
pub(crate) const UNSAID: u64 = 8 << 30;
/// Of it, streams may hold so many parts,
const STREAMS: u64 = 3;
/// and encoders so many, but no more than that.
const ENCODERS: u64 = 4;
const MOST_ENCODERS: u64 = 256 << 20;
/// Of what encoders may hold, those of one connection have so many parts; one it may have in any case.
const OF_A_CONNECTION: u64 = 8;
/// Programs of snippets may hold so many parts,
const PROGRAMS: u64 = 8;
/// beyond what each request has in any case, as of heads of answers,
const FREE: usize = 16 << 10;
/// and ask for so much at a time.
const PIECE: usize = 32 << 10;
/// What guards and upstreams leave for what comes after them counts beyond this.
const LEFT: usize = 1 << 10;
/// Heads of upstreams that are not whole may hold so many parts, with what guards and upstreams leave.
const HEADS: u64 = 2;
/// What a stream holds besides its head: its tasks, its upstream's connection with what is read from it.
const STREAM: usize = 40 << 10;
/// What a field of a head holds besides its text.
const FIELD: usize = 24;
/// What a connection may hold of streams where there is no more, as long as the reserve lasts: a part of what all may.
const LITTLE: usize = 256 << 10;
const RESERVE: u64 = 4;
/// Less than this is not worth an end.
pub(crate) const WORTH: usize = 16 << 10;
/// Of the memory, what requests hold is left alone below so many parts, and so many are given back at a look.
const LEFT_ALONE: u64 = 16;
const GIVEN_BACK: u64 = 32;

/// Where that is not enough: what a connection with a request is taken to hold that holds less than is worth an end by
/// itself,
const EACH: usize = 8 << 10;
/// and the part of the memory up to which all of a namespace are left alone.
const CROWD: u64 = 8;

/// What all requests under way hold.
#[derive(Debug)]
pub(crate) struct UnderWay {
    memory: AtomicU64,
    threads: AtomicUsize,
    /// Of streams of HTTP/2.
    pub(crate) streams: Bound,
    /// Of encoders.
    pub(crate) encoders: Room,
    /// Of what programs of snippets make.
    pub(crate) programs: Room,
    /// Of heads of upstreams that are not whole, and of what guards and upstreams leave for what comes after them.
    pub(crate) heads: Arc<Room>,
}

impl Default for UnderWay {
    fn default() -> Self {
        let all = Self {
            memory: AtomicU64::new(UNSAID),
            threads: AtomicUsize::new(1),
            streams: Bound::new(0),
            encoders: Room::leaving_some(0, 2),
            programs: Room::leaving_some(0, 2),
            heads: Arc::new(Room::leaving_some(0, 2)),
        };
        all.bound(UNSAID);
        all
    }
}

impl UnderWay {
    /// The process may use so much memory.
    pub(crate) fn bound(&self, memory: u64) {
        self.memory.store(memory, Ordering::Relaxed);
        self.streams.set(memory / STREAMS);
        self.encoders.set((memory / ENCODERS).min(MOST_ENCODERS));
        self.programs.set(memory / PROGRAMS);
        self.heads.set(memory / HEADS);
    }

    /// So many threads share it.
    pub(crate) fn share(&self, threads: usize) {
        self.threads.store(threads.max(1), Ordering::Relaxed);
    }

    /// Bytes that each thread gives back now: where memory is short, and where somebody found no room since `refused`
    /// refusals.
    fn excess(&self, is_short: bool, refused: &Cell<u64>) -> u64 {
        let (used, most, now) = self.streams.now();
        let is_full = refused.replace(now) != now || used > most;
        let over = if is_full { used.saturating_sub(most - most / 8) } else { 0 };
        let short = if is_short { self.part(GIVEN_BACK) } else { 0 };
        over.div_ceil(self.threads.load(Ordering::Relaxed) as u64).max(short)
    }

    /// A part of the memory, for one thread.
    fn part(&self, parts: u64) -> u64 {
        let threads = self.threads.load(Ordering::Relaxed) as u64;
        self.memory.load(Ordering::Relaxed) / parts / threads
    }

    /// Those of a thread's connections that end now: the heaviest, whatever they wait for; where memory is short and
    /// these are not enough, the youngest of the namespace whose connections hold most together.
    pub(crate) fn heaviest(
        &self,
        all: impl Iterator<Item = Rc<Connection>>,
        is_short: bool,
        refused: &Cell<u64>,
    ) -> Vec<Rc<Connection>> {
        let excess = self.excess(is_short, refused);
        if excess == 0 {
            return Vec::new();
        }
        let all: Vec<_> = all.collect();
        let of_all = all.iter().cloned();
        let mut ends = heaviest(of_all, |one| &one.control, excess, self.part(LEFT_ALONE));
        if is_short {
            let given_back = ends.iter().map(|one| weight(&one.control) as u64).sum();
            let excess = self.part(GIVEN_BACK).saturating_sub(given_back);
            let may_end = |one: &Rc<Connection>| !one.guest().is_some_and(Guest::has_turn);
            let little = |one: &Rc<Connection>| (one.lane.get().owner(), weight(&one.control));
            let all = all.into_iter().filter(may_end);
            ends.extend(crowd(all, little, |one| one.serial, excess, self.part(CROWD)));
        }
        ends
    }
}

/// What a connection holds, of which what moves counts half.
fn weight(control: &Control) -> usize {
    let held = control.under_way.held() + control.head.get() + 2 * control.certificates.get();
    let moved = usize::try_from(control.under_way.speed()).unwrap_or(usize::MAX);
    held - moved.min(held / 2)
}

/// Those of `all` that weigh most, until they make up `excess`, or all together hold no more than is left alone.
fn heaviest<T>(
    all: impl Iterator<Item = T>,
    control: impl Fn(&T) -> &Control,
    excess: u64,
    left_alone: u64,
) -> Vec<T> {
    let weighed = all.map(|one| (weight(control(&one)) as u64, one));
    let mut heavy: Vec<(u64, T)> = weighed.filter(|(weight, _)| *weight >= WORTH as u64).collect();
    heavy.sort_by_key(|(weight, _)| Reverse(*weight));
    let sum: u64 = heavy.iter().map(|(weight, _)| weight).sum();
    until_enough(heavy, excess.min(sum.saturating_sub(left_alone)))
}

/// Of those of `all` that hold something and little, by whose they are: the youngest of whoever holds most together,
/// until they make up `excess`, or hold no more than is left alone.
#[cold]
fn crowd<T>(
    all: impl Iterator<Item = T>,
    little: impl Fn(&T) -> (Owner, usize),
    number: impl Fn(&T) -> u64,
    excess: u64,
    left_alone: u64,
) -> Vec<T> {
    let mut owners: BTreeMap<Owner, (u64, Vec<(u64, T)>)> = BTreeMap::new();
    for one in all {
        let (owner, held) = little(&one);
        if (1..WORTH).contains(&held) {
            let held = held.max(EACH) as u64;
            let (sum, ones) = owners.entry(owner).or_default();
            *sum += held;
            ones.push((held, one));
        }
    }
    let most = owners.into_values().max_by_key(|(sum, _)| *sum);
    let Some((sum, mut most)) = most else { return Vec::new() };
    most.sort_by_key(|(_, one)| Reverse(number(one)));
    until_enough(most, excess.min(sum.saturating_sub(left_alone)))
}

/// The first of these, by what each holds, until they make up `wanted`.
fn until_enough<T>(all: Vec<(u64, T)>, mut wanted: u64) -> Vec<T> {
    let goes = all.into_iter().take_while(|(held, _)| {
        let goes = wanted > 0;
        wanted = wanted.saturating_sub(*held);
        goes
    });
    goes.map(|(_, one)| one).collect()
}

/// What a stream holds, until it ends.
#[derive(Debug)]
pub(crate) struct Stream {
    all: Arc<UnderWay>,
    connection: Rc<Connection>,
    size: usize,
}

impl Stream {
    /// Room for a stream with this request; none if there is no more. A connection that has little gets some for a
    /// little longer.
    pub(crate) fn begin(
        all: &Arc<UnderWay>,
        connection: &Rc<Connection>,
        request: Option<&Request>,
    ) -> Option<Self> {
        let head = request.map_or(0, |one| one.head_size + FIELD * one.headers.len());
        let size = STREAM + head;
        let under_way = &connection.control.under_way;
        let is_little = under_way.held() + size <= LITTLE;
        let fits = if is_little {
            all.streams.take_of_reserve(size as u64, RESERVE)
        } else {
            all.streams.take(size as u64)
        };
        fits.then(|| under_way.hold(size))?;
        Some(Self { all: all.clone(), connection: connection.clone(), size })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.control.under_way.release(self.size);
        self.all.streams.give_back(self.size as u64);
    }
}

/// What an encoder holds, until it ends.
#[derive(Debug)]
pub(crate) struct Encoding {
    connection: Rc<Connection>,
    loan: Loan,
}

impl Encoding {
    /// Room for an encoder of this size and namespace; none if the connection or the namespace has its share, or there
    /// is no more.
    pub(crate) fn begin(
        all: &UnderWay,
        connection: &Rc<Connection>,
        namespace: &Arc<str>,
        size: u64,
    ) -> Option<Self> {
        let control = &connection.control;
        let has = control.encoders.get();
        let share = all.encoders.now().1 / OF_A_CONNECTION;
        if has > 0 && has + size > share {
            return None;
        }
        let loan = all.encoders.lend(namespace);
        loan.grow(size)?;
        control.encoders.set(has + size);
        control.under_way.hold(usize::try_from(size).unwrap_or(usize::MAX));
        Some(Self { connection: connection.clone(), loan })
    }
}

impl Drop for Encoding {
    fn drop(&mut self) {
        let (control, size) = (&self.connection.control, self.loan.size());
        control.encoders.set(control.encoders.get() - size);
        control.under_way.release(usize::try_from(size).unwrap_or(usize::MAX));
    }
}

/// What a request that is under way keeps of long heads: answers of upstreams, authenticators and error backends stay
/// as long as it does, and so does what guards and upstreams leave for what comes after them.
#[derive(Debug)]
pub(crate) struct KeptHeads {
    connection: Rc<Connection>,
    size: usize,
    /// Of what has a bound of a namespace.
    loans: Vec<Loan>,
}

impl KeptHeads {
    /// A request keeps a head of this size. One that is not long counts as what every request holds.
    pub(crate) fn keep(kept: &mut Option<Box<Self>>, connection: &Rc<Connection>, size: usize) {
        if size > FREE {
            Self::hold(kept, connection, size);
        }
    }

    /// The same of what somebody else leaves for it, which has a bound for all and for this namespace; whether there is
    /// room.
    pub(crate) fn lend(
        kept: &mut Option<Box<Self>>,
        all: &UnderWay,
        connection: &Rc<Connection>,
        namespace: &Arc<str>,
        size: usize,
    ) -> bool {
        if size <= LEFT {
            return true;
        }
        let loan = all.heads.lend(namespace);
        if loan.grow(size as u64).is_none() {
            return false;
        }
        Self::hold(kept, connection, size).loans.push(loan);
        true
    }

    #[cold]
    fn hold<'k>(
        kept: &'k mut Option<Box<Self>>,
        connection: &Rc<Connection>,
        size: usize,
    ) -> &'k mut Self {
        let none = || Self { connection: connection.clone(), size: 0, loans: Vec::new() };
        let kept = kept.get_or_insert_with(|| Box::new(none()));
        kept.size += size;
        connection.control.under_way.hold(size);
        kept
    }
}

impl Drop for KeptHeads {
    fn drop(&mut self) {
        self.connection.control.under_way.release(self.size);
    }
}

/// What programs of snippets hold of a request, until it ends.
#[derive(Debug)]
pub(crate) struct Programs {
    connection: Rc<Connection>,
    loan: Loan,
}

impl Programs {
    /// Room for what programs of this namespace have made of a request, `size` bytes in all, besides what was `held`
    /// before; whether there is some.
    pub(crate) fn hold(
        held: &mut Option<Self>,
        all: &UnderWay,
        connection: &Rc<Connection>,
        namespace: &Arc<str>,
        size: usize,
    ) -> bool {
        let has = held.as_ref().map_or(FREE as u64, |held| held.loan.size() + FREE as u64);
        let more = (size as u64).saturating_sub(has);
        if more == 0 {
            return true;
        }
        let more = more.next_multiple_of(PIECE as u64);
        let held = held.get_or_insert_with(|| Self {
            connection: connection.clone(),
            loan: all.programs.lend(namespace),
        });
        // Programs of everybody may have been first.
        if !namespace.is_empty() && !held.loan.is_of(namespace) {
            all.programs.hand_on(&mut held.loan, namespace);
        }
        let fits = held.loan.grow(more).is_some();
        if fits {
            held.connection.control.under_way.hold(usize::try_from(more).unwrap_or(usize::MAX));
        }
        fits
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let size = usize::try_from(self.loan.size()).unwrap_or(usize::MAX);
        self.connection.control.under_way.release(size);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        EACH, Encoding, FREE, KeptHeads, LEFT, PIECE, Programs, STREAM, Stream, UnderWay, WORTH,
        crowd, heaviest,
    };
    use crate::connection::Connection;
    use std::cell::Cell;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::rc::Rc;
    use std::sync::Arc;
    use wire::Control;
    use wire::lane::Owner;

    fn connection() -> Rc<Connection> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Rc::new(Connection::new(1, address, address, None, None))
    }

    fn holding(held: usize, moved: usize, head: usize) -> Control {
        let control = Control::default();
        control.under_way.hold(held + moved);
        control.under_way.release(moved);
        control.under_way.look();
        control.head.set(head);
        control
    }

    fn gone(all: &[Control], excess: usize, left_alone: usize) -> Vec<usize> {
        let gone = heaviest(all.iter(), |one| one, excess as u64, left_alone as u64);
        gone.into_iter().map(|one| one.under_way.held() + one.head.get()).collect()
    }

    #[test]
    fn who_holds_most_and_moves_least_goes_first_until_it_is_enough() {
        let all = [
            holding(3 * WORTH, 0, 0),
            holding(8 * WORTH, 8 * WORTH, 0),
            holding(5 * WORTH, 0, 0),
            holding(0, 0, WORTH),
            holding(WORTH - 1, 0, 0),
        ];
        assert_eq!(gone(&all, 1, 0), [5 * WORTH]);
        assert_eq!(gone(&all, 5 * WORTH + 1, 0), [5 * WORTH, 8 * WORTH]);
        let each = [5 * WORTH, 8 * WORTH, 3 * WORTH, WORTH];
        assert_eq!(gone(&all, usize::MAX, 0), each, "who holds little stays");
    }

    #[test]
    fn where_requests_hold_little_nobody_goes() {
        let all = [holding(3 * WORTH, 0, 0), holding(2 * WORTH, 0, 0)];
        assert_eq!(gone(&all, usize::MAX, 5 * WORTH), [0; 0]);
        assert_eq!(gone(&all, usize::MAX, 3 * WORTH), [3 * WORTH]);
    }

    #[test]
    fn where_nobody_holds_much_the_youngest_of_whoever_has_most_go() {
        let (mine, other) = (Owner::named("a"), Owner::named("b"));
        let of = |owner, held, numbers: std::ops::Range<u64>| {
            numbers.map(move |number| (owner, held, number))
        };
        let gone = |excess: usize, left_alone: usize| -> Vec<u64> {
            let all = of(other, 1, 0..3).chain(of(mine, 1, 3..7));
            let all = all.chain(of(other, 0, 7..20)).chain(of(other, WORTH, 20..30));
            let what = |one: &(Owner, usize, u64)| (one.0, one.1);
            let gone = crowd(all, what, |one| one.2, excess as u64, left_alone as u64);
            gone.into_iter().map(|one| one.2).collect()
        };
        assert_eq!(gone(2 * EACH, 0), [6, 5]);
        assert_eq!(gone(9 * EACH, 0), [6, 5, 4, 3], "others have fewer, hold nothing, or much");
        assert_eq!(gone(9 * EACH, 3 * EACH), [6]);
        assert_eq!(gone(9 * EACH, 4 * EACH), [0; 0]);
        // Who holds most is not who has most.
        let all = of(other, 1, 0..5).chain(of(mine, WORTH - 1, 5..8));
        let what = |one: &(Owner, usize, u64)| (one.0, one.1);
        let gone = crowd(all, what, |one| one.2, 2 * EACH as u64 + 1, 0);
        assert_eq!(gone.into_iter().map(|one| one.2).collect::<Vec<_>>(), [7, 6]);
    }

    #[test]
    fn what_is_given_back_is_what_somebody_found_no_room_for() {
        let under_way = UnderWay::default();
        under_way.bound(96 << 10);
        let refused = Cell::new(0);
        assert!(under_way.streams.take(31 << 10));
        assert_eq!(under_way.excess(false, &refused), 0, "there is room");
        assert!(!under_way.streams.take(2 << 10));
        assert_eq!(under_way.excess(false, &refused), 3 << 10);
        assert_eq!(under_way.excess(false, &refused), 0, "nobody else was refused");
        assert_eq!(under_way.excess(true, &refused), 3 << 10, "of the memory");
        assert!(under_way.streams.take_of_reserve(2 << 10, 4));
        under_way.share(5);
        assert_eq!(under_way.excess(false, &refused), 1 << 10, "each of five threads");
    }

    #[test]
    fn streams_beyond_a_little_have_a_bound_of_all() {
        let all = Arc::new(UnderWay::default());
        all.bound(3 << 20);
        let (greedy, other) = (connection(), connection());
        let begin = |whose: &Rc<Connection>| Stream::begin(&all, whose, None);
        let held: Vec<Stream> = std::iter::from_fn(|| begin(&greedy)).collect();
        assert_eq!((held.len(), greedy.control.under_way.held()), (25, 25 * STREAM));
        let little: Vec<Stream> = std::iter::from_fn(|| begin(&other)).collect();
        assert_eq!(little.len(), 6, "a little of the reserve");
        assert!(begin(&connection()).is_some());
        let more: Vec<Stream> = (0..9).filter_map(|_| begin(&connection())).collect();
        assert_eq!(more.len(), 1, "and no more than that");
        drop((held, little, more));
        assert_eq!((all.streams.now().0, greedy.control.under_way.held()), (0, 0));
    }

    #[test]
    fn programs_of_snippets_have_a_bound_for_all_and_for_a_namespace() {
        let all = UnderWay::default();
        all.bound(64 * PIECE as u64);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let one = connection();
        let hold =
            |held: &mut _, namespace, size| Programs::hold(held, &all, &one, namespace, size);
        let mut little = None;
        assert!(hold(&mut little, &a, FREE) && little.is_none(), "a little is always there");
        let mut held = None;
        assert!(hold(&mut held, &a, FREE + 1) && hold(&mut held, &a, FREE + PIECE));
        assert_eq!(one.control.under_way.held(), PIECE, "one piece for both");
        let mut others: Vec<_> = (0..9).map(|_| None).collect();
        let count =
            others.iter_mut().filter_map(|held| hold(held, &a, 2 * FREE).then_some(())).count();
        assert_eq!(count, 3, "half of it for a namespace");
        assert!(hold(&mut None, &b, 2 * FREE), "and something for others");
        drop((held, others));
        assert_eq!((all.programs.now().0, one.control.under_way.held()), (0, 0));
    }

    #[test]
    fn long_heads_count_as_long_as_their_request_is_under_way() {
        let one = connection();
        let mut kept = None;
        KeptHeads::keep(&mut kept, &one, FREE);
        assert!(kept.is_none(), "a little is always there");
        KeptHeads::keep(&mut kept, &one, FREE + 1);
        KeptHeads::keep(&mut kept, &one, 2 * FREE);
        assert_eq!(one.control.under_way.held(), 3 * FREE + 1);
        drop(kept);
        assert_eq!(one.control.under_way.held(), 0);
    }

    #[test]
    fn what_is_left_for_a_request_has_a_bound_for_all_and_for_a_namespace() {
        let all = UnderWay::default();
        // Half of it for all, half of that for a namespace.
        all.bound(16 * LEFT as u64);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let (one, mut kept) = (connection(), None);
        let lend = |kept: &mut _, whose, size| KeptHeads::lend(kept, &all, &one, whose, size);
        assert!(lend(&mut kept, &a, LEFT) && kept.is_none(), "a little is always there");
        assert!(lend(&mut kept, &a, 2 * LEFT) && lend(&mut kept, &a, 2 * LEFT));
        assert!(!lend(&mut kept, &a, 2 * LEFT), "a namespace has half of it");
        assert!(lend(&mut kept, &b, 2 * LEFT), "and something is there for others");
        assert_eq!((one.control.under_way.held(), all.heads.now().0), (6 * LEFT, 6 * LEFT as u64));
        drop(kept);
        assert_eq!((one.control.under_way.held(), all.heads.now().0), (0, 0));
    }

    #[test]
    fn encoders_have_a_bound_for_a_connection_and_a_namespace() {
        let all = UnderWay::default();
        all.bound(4 << 20);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let one = connection();
        let begin =
            |whose: &Rc<Connection>, namespace| Encoding::begin(&all, whose, namespace, 100 << 10);
        let held = begin(&one, &a);
        assert!(held.is_some() && begin(&one, &b).is_none(), "a connection has its share");
        let others: Vec<Encoding> = (0..9).filter_map(|_| begin(&connection(), &a)).collect();
        assert_eq!(others.len(), 4, "half of it for a namespace");
        assert!(begin(&connection(), &b).is_some());
        drop((held, others));
        assert_eq!((all.encoders.now().0, one.control.encoders.get()), (0, 0));
        assert!(begin(&one, &b).is_some());
    }
}
