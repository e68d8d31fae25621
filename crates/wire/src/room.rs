//! Something that may not grow beyond a bound, bytes or a number: of all together, and a part of that, mostly half, for
//! one namespace.

use parking_lot::Mutex;
use shares::WeakMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of bytes that may not grow beyond another one.
#[derive(Debug)]
pub struct Bound {
    most: AtomicU64,
    used: AtomicU64,
    /// How often there was no room.
    refused: AtomicU64,
}

impl Bound {
    /// Nothing of so many bytes.
    pub fn new(most: u64) -> Self {
        Self { most: AtomicU64::new(most), used: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }

    /// From now on there are so many.
    pub fn set(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Takes bytes if there are so many; who gets none is counted.
    pub fn take(&self, count: u64) -> bool {
        self.take_beyond(count, 0)
    }

    /// The same for who may go beyond the bound by a part of it.
    pub fn take_of_reserve(&self, count: u64, part: u64) -> bool {
        self.take_beyond(count, self.most.load(Ordering::Relaxed) / part)
    }

    fn take_beyond(&self, count: u64, reserve: u64) -> bool {
        let most = self.most.load(Ordering::Relaxed).saturating_add(reserve);
        let fits = self.fits(count, most);
        if !fits {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    fn fits(&self, count: u64, most: u64) -> bool {
        let grown = |used: u64| used.checked_add(count).filter(|used| *used <= most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
    }

    /// Gives bytes back.
    pub fn give_back(&self, count: u64) {
        self.used.fetch_sub(count, Ordering::Relaxed);
    }

    /// Bytes in use, bytes at most, refusals.
    pub fn now(&self) -> (u64, u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.used), read(&self.most), read(&self.refused))
    }
}

/// Bytes for everybody, and a part of them at most for one namespace.
#[derive(Debug)]
pub struct Room {
    total: Arc<Bound>,
    shares: Mutex<WeakMap<Arc<str>, Bound>>,
    /// How many quarters a namespace may have.
    quarters: u64,
    /// Whether a namespace may have that part of what others leave, rather than of all.
    leaves_some: bool,
}

impl Room {
    /// Room for so many bytes, half of them for one namespace.
    pub fn new(most: u64) -> Self {
        let total = Arc::new(Bound::new(most));
        Self { total, shares: Mutex::default(), quarters: 2, leaves_some: false }
    }

    /// The same with so many quarters, up to three, for one namespace: of all, and of what is left and its own
    /// together. So something is left for whoever comes, however many namespaces take all that they may (dynamic
    /// thresholds).
    pub fn leaving_some(most: u64, quarters: u64) -> Self {
        Self { quarters, leaves_some: true, ..Self::new(most) }
    }

    /// From now on there is room for so many; a namespace that has some keeps its part of what it was.
    pub fn set(&self, most: u64) {
        self.total.set(most);
    }

    /// Bytes in use, bytes at most, refusals: for one namespace or for all.
    pub fn now(&self) -> (u64, u64, u64) {
        self.total.now()
    }

    /// What somebody of this namespace may have; nothing as yet. The share of a namespace is forgotten with its last
    /// loan.
    pub fn lend(&self, namespace: &Arc<str>) -> Loan {
        let mut shares = self.shares.lock();
        let share = shares.get_or_insert_with(namespace.clone(), || {
            let most = self.total.now().1;
            let part = most / 4 * self.quarters + most % 4 * self.quarters / 4;
            Arc::new(Bound::new(part))
        });
        let (own, left) = (self.quarters, 4 - self.quarters);
        let of_left = self.leaves_some.then_some((own, left));
        let (total, namespace) = (self.total.clone(), namespace.clone());
        Loan { total, share, namespace, of_left, size: AtomicU64::new(0) }
    }

    /// Hands a loan on to this namespace, if that may have it; whether it did.
    pub fn hand_on(&self, loan: &mut Loan, namespace: &Arc<str>) -> bool {
        let (next, size) = (self.lend(namespace), loan.size());
        let fits = next.share.fits(size, next.share.now().1);
        if fits {
            // Of all together it has what it had.
            std::mem::replace(&mut loan.share, next.share.clone()).give_back(size);
            loan.namespace = namespace.clone();
        }
        fits
    }
}

/// Bytes for one thing, until this is dropped.
#[derive(Debug)]
pub struct Loan {
    total: Arc<Bound>,
    share: Arc<Bound>,
    namespace: Arc<str>,
    /// The part of what is left that a namespace may have: so many of its own for so many that are left.
    of_left: Option<(u64, u64)>,
    size: AtomicU64,
}

impl Loan {
    /// Bytes by which one grows that is asked again and again.
    pub(super) const STEP: u64 = 64 << 10;

    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Counts that there was no room for another reason: the system has none.
    pub(super) fn refuse(&self) {
        self.total.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes so many bytes more, of both bounds or of none; those before them.
    pub fn grow(&self, count: u64) -> Option<u64> {
        self.grow_within(count, self.of_left)
    }

    /// The same in place of somebody who has just made way: what is left for others stays as it was.
    pub fn grow_in_place(&self, count: u64) -> Option<u64> {
        self.grow_within(count, None)
    }

    fn grow_within(&self, count: u64, of_left: Option<(u64, u64)>) -> Option<u64> {
        let fits = self.total.take(count) && {
            let all = self.share.now().1;
            let most = of_left.map_or(all, |(own, of)| {
                let (used, most, _) = self.total.now();
                all.min((most.saturating_sub(used) / of).saturating_mul(own))
            });
            let fits = self.share.fits(count, most);
            if !fits {
                self.total.give_back(count);
                self.refuse();
            }
            fits
        };
        fits.then(|| self.size.fetch_add(count, Ordering::Relaxed))
    }

    /// Whether both are of one namespace.
    pub fn is_of_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.share, &other.share)
    }

    /// Whether it is this namespace's.
    pub fn is_of(&self, namespace: &Arc<str>) -> bool {
        Arc::ptr_eq(&self.namespace, namespace) || self.namespace == *namespace
    }

    /// What its namespace has of all.
    pub fn of_namespace(&self) -> u64 {
        self.share.now().0
    }

    /// Gives so many of its bytes back.
    pub fn shrink(&self, count: u64) {
        let taken = |size: u64| Some(size - count.min(size));
        let before = self.size.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        let count = before.map_or(0, |size| count.min(size));
        self.total.give_back(count);
        self.share.give_back(count);
    }

    /// Gives everything back that it has, before it is dropped.
    pub fn give_back(&self) {
        let size = self.size.swap(0, Ordering::Relaxed);
        self.total.give_back(size);
        self.share.give_back(size);
    }

    /// Whether half of everything is left, and half of what its namespace may have.
    pub(super) fn is_of_plenty(&self) -> bool {
        let is_half_left = |bound: &Bound| {
            let (used, most, _) = bound.now();
            used <= most / 2
        };
        is_half_left(&self.total) && is_half_left(&self.share)
    }

    /// Whether it is enough for so many bytes, or could be made so.
    pub(super) fn is_enough(&self, bytes: u64) -> bool {
        let more = bytes.next_multiple_of(Self::STEP).saturating_sub(self.size());
        more == 0 || self.grow(more).is_some()
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Loan, Room};
    use std::sync::Arc;

    #[test]
    fn a_namespace_gets_half_of_it_and_gives_it_back() {
        let room = Room::new(16 * Loan::STEP);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let lend = |whom| Some(room.lend(whom)).filter(|loan| loan.is_enough(1));
        let mut lent: Vec<Loan> = std::iter::from_fn(|| lend(&a)).take(20).collect();
        let others: Vec<Loan> = std::iter::from_fn(|| lend(&b)).take(20).collect();
        assert_eq!((lent.len(), others.len()), (8, 8));
        assert_eq!(room.now(), (16 * Loan::STEP, 16 * Loan::STEP, 2));
        lent.pop();
        assert!(lend(&a).is_some());
        drop((lent, others));
        assert_eq!(room.now().0, 0);
        assert!(room.shares.lock().values().next().is_none());
    }

    #[test]
    fn however_many_namespaces_take_what_they_may_something_is_left() {
        let room = Room::leaving_some(400, 3);
        let namespaces: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).into();
        let mut loans = Vec::new();
        let taken = namespaces.iter().map(|whose| {
            let all = std::iter::from_fn(|| {
                let loan = room.lend(whose);
                loan.grow(1).is_some().then(|| loans.push(loan))
            });
            all.count()
        });
        let taken: Vec<usize> = taken.collect();
        assert_eq!(taken, [300, 75, 18]);
        let newcomer = room.lend(&"d".into());
        assert!(newcomer.grow(1).is_some());
        let mut loan = loans.pop().expect("c has some");
        assert!(loan.is_of(&namespaces[2]) && !room.hand_on(&mut loan, &namespaces[0]));
        assert!(room.hand_on(&mut loan, &namespaces[1]) && loan.is_of(&namespaces[1]));
        assert_eq!((loan.of_namespace(), loans[390].of_namespace()), (76, 17));
        drop((loan, loans, newcomer));
        assert_eq!(room.now().0, 0);
    }

    #[test]
    fn what_is_taken_of_the_reserve_leaves_less_to_others() {
        let bound = Bound::new(10);
        assert!(bound.take(6) && !bound.take(6));
        assert!(bound.take_of_reserve(6, 4) && !bound.take_of_reserve(1, 4));
        bound.give_back(2);
        assert!(!bound.take(1));
        bound.give_back(10);
        assert_eq!(bound.now(), (0, 10, 3));
    }
}
