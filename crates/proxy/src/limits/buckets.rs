//! Leaky buckets, one for each client, counted as ngx_http_limit_req_module does.

use super::{Client, SHARDS, shard};
use lru::LruCache;
use model::policy::RequestLimit;
use parking_lot::Mutex;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use wire::Loan;

/// Clients that a zone remembers; nginx's zones of 5 MB have room for about 40,000.
pub(super) const CLIENTS: usize = 64 << 10;
/// What one request adds.
const ONE: u64 = 1000;
/// A bucket that leaked empty is forgotten after this time without requests.
const IDLE: u64 = 60_000;
/// Bytes that a client takes.
const EACH: u64 = 96;
/// Clients for which room is asked for at a time: as many as there is room for already, within these.
const PIECES: std::ops::RangeInclusive<usize> = 4..=64;
/// Clients that a shard remembers in any case.
const FREE: usize = 1;

/// The buckets of an Ingress, or of a zone that a snippet declares.
#[derive(Debug)]
pub struct Buckets {
    shards: [Mutex<Shard>; SHARDS],
    /// Clients that a shard remembers.
    room: usize,
    /// What they take of what all of these may, and those of a namespace; none for zones that the operator declares.
    loan: Option<Loan>,
    hasher: RandomState,
    epoch: Instant,
    /// Clients that were forgotten for others.
    full: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Shard {
    clients: LruCache<Client, Bucket>,
    /// Clients for which there is room besides those that there is in any case.
    lent: usize,
    /// How fast buckets leaked when one was looked at last, in thousandths of a request in a second.
    rate: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// When it was last filled, in milliseconds since the zone began.
    last: u64,
    /// What is in it, in thousandths of a request.
    excess: u64,
}

/// What a request wants of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// To know whether there is room.
    Look,
    /// Room, if there is any.
    Take,
    /// Room, which was seen a moment ago.
    Fill,
}

impl Default for Buckets {
    fn default() -> Self {
        Self::of(CLIENTS)
    }
}

impl Buckets {
    /// Buckets for so many clients, one in each shard at least.
    pub fn of(clients: usize) -> Self {
        let shard = || Shard { clients: LruCache::unbounded(), lent: 0, rate: 0 };
        Self {
            shards: std::array::from_fn(|_| Mutex::new(shard())),
            room: (clients / SHARDS).max(1),
            loan: None,
            hasher: RandomState::new(),
            epoch: Instant::now(),
            full: Arc::default(),
        }
    }

    /// The same, where those that are forgotten for others are counted there.
    pub(super) fn counted(self, full: Arc<AtomicU64>) -> Self {
        Self { full, ..self }
    }

    /// The same for clients of a namespace, which take room that others have a part in.
    pub(super) fn lent(self, loan: Loan) -> Self {
        Self { loan: Some(loan), ..self }
    }

    /// Forgets whose buckets leaked empty long ago, and gives the room back that they took.
    pub(super) fn sweep(&self) {
        let now = milliseconds(self.epoch.elapsed());
        for shard in &self.shards {
            let mut shard = shard.lock();
            while shard.forget_idle(now) {}
            self.give_back(&mut shard);
        }
    }

    /// Gives room back where a quarter of it would do; a table never shrinks by itself.
    fn give_back(&self, shard: &mut Shard) {
        let Some(loan) = &self.loan else { return };
        let needed = shard.clients.len().saturating_sub(FREE).next_multiple_of(*PIECES.start());
        if shard.lent == 0 || needed * 4 > shard.lent {
            return;
        }
        loan.shrink((shard.lent - needed) as u64 * EACH);
        shard.lent = needed;
        let mut fewer = LruCache::unbounded();
        // From the one that was away longest.
        for (client, bucket) in shard.clients.iter().rev() {
            fewer.put(*client, *bucket);
        }
        shard.clients = fewer;
    }

    /// Whether one more client fits in, for which room may have to be lent.
    fn fits(&self, shard: &mut Shard) -> bool {
        let Some(loan) = &self.loan else { return true };
        if shard.clients.len() < FREE + shard.lent {
            return true;
        }
        let piece = shard.lent.clamp(*PIECES.start(), *PIECES.end());
        let fits = loan.grow(piece as u64 * EACH).is_some();
        shard.lent += if fits { piece } else { 0 };
        fits
    }

    /// How many clients are remembered, and how many may be.
    pub(super) fn room(&self) -> (usize, usize) {
        (self.len(), self.room.saturating_mul(SHARDS))
    }

    /// Whether a request may pass; nothing is counted.
    pub fn has_room(&self, client: Client, limit: RequestLimit) -> bool {
        self.look(client, limit).is_some()
    }

    /// Whether a request may pass, which is counted if so.
    pub fn take(&self, client: Client, limit: RequestLimit) -> bool {
        self.visit(client, limit, Wish::Take).is_some()
    }

    /// How full the bucket would be with a request, in thousandths of one; none if it may not pass. Nothing is counted.
    pub fn look(&self, client: Client, limit: RequestLimit) -> Option<u64> {
        self.visit(client, limit, Wish::Look)
    }

    /// Counts a request that may pass.
    pub fn fill(&self, client: Client, limit: RequestLimit) {
        self.visit(client, limit, Wish::Fill);
    }

    /// How many clients are remembered.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().clients.len()).sum()
    }

    /// Whether no client is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn visit(&self, client: Client, limit: RequestLimit, wish: Wish) -> Option<u64> {
        let now = milliseconds(self.epoch.elapsed());
        let mut shard = self.shards[shard(&self.hasher, client)].lock();
        shard.rate = limit.rate;
        if let Some(bucket) = shard.clients.get_mut(&client) {
            let passed = now.saturating_sub(bucket.last);
            let leaked = limit.rate.saturating_mul(passed) / 1000;
            let excess = bucket.excess.saturating_add(ONE).saturating_sub(leaked);
            if wish != Wish::Fill && excess > limit.burst {
                return None;
            }
            if wish != Wish::Look {
                *bucket = Bucket { last: bucket.last.max(now), excess };
            }
            return Some(excess);
        }
        if wish != Wish::Look {
            // Two at a time, as nginx does (ngx_http_limit_req_expire).
            let _ = shard.forget_idle(now) && shard.forget_idle(now);
            if shard.clients.len() >= self.room || !self.fits(&mut shard) {
                // The one that was away longest.
                shard.clients.pop_lru();
                self.full.fetch_add(1, Ordering::Relaxed);
            }
            shard.clients.put(client, Bucket { last: now, excess: 0 });
        }
        Some(0)
    }
}

impl Shard {
    /// Forgets the client that was away longest, if its bucket leaked empty long ago; whether it did.
    fn forget_idle(&mut self, now: u64) -> bool {
        let Some((_, bucket)) = self.clients.peek_lru() else { return false };
        let passed = now.saturating_sub(bucket.last);
        let leaked = self.rate.saturating_mul(passed) / 1000;
        let is_idle = passed >= IDLE && bucket.excess <= leaked;
        if is_idle {
            self.clients.pop_lru();
        }
        is_idle
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Buckets, CLIENTS, Client};
    use model::policy::RequestLimit;
    use std::time::Duration;
    use tokio::time::advance;

    const ME: Client = Client(1);

    fn per_second(requests: u64, burst: u64) -> RequestLimit {
        RequestLimit { rate: requests * 1000, burst: burst * 1000 }
    }

    /// How many of `count` requests pass.
    fn passed(buckets: &Buckets, client: Client, limit: RequestLimit, count: usize) -> usize {
        (0..count).filter(|_| buckets.take(client, limit)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn the_burst_passes_at_once_and_then_what_leaks() {
        let buckets = Buckets::default();
        let limit = per_second(1, 5);
        assert_eq!(passed(&buckets, ME, limit, 20), 6);
        advance(Duration::from_millis(999)).await;
        assert_eq!(passed(&buckets, ME, limit, 3), 0);
        advance(Duration::from_millis(1)).await;
        assert_eq!(passed(&buckets, ME, limit, 3), 1);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(passed(&buckets, ME, limit, 20), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn six_each_minute_is_one_in_ten_seconds() {
        let buckets = Buckets::default();
        let limit = RequestLimit { rate: 100, burst: 12_000 };
        assert_eq!(passed(&buckets, ME, limit, 20), 13);
        advance(Duration::from_millis(9_990)).await;
        assert_eq!(passed(&buckets, ME, limit, 2), 0);
        advance(Duration::from_millis(10)).await;
        assert_eq!(passed(&buckets, ME, limit, 2), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_request_costs_nothing() {
        let buckets = Buckets::default();
        let limit = per_second(1, 1);
        assert_eq!(passed(&buckets, ME, limit, 2), 2);
        for _ in 0..10 {
            advance(Duration::from_millis(100)).await;
            buckets.take(ME, limit);
        }
        // Tenths of a second leak in tenths of a request: the tenth one passes.
        assert!(!buckets.has_room(ME, limit));
        advance(Duration::from_secs(1)).await;
        assert!(buckets.has_room(ME, limit) && buckets.take(ME, limit));
    }

    #[tokio::test(start_paused = true)]
    async fn looking_takes_nothing_and_clients_do_not_share() {
        let buckets = Buckets::default();
        let limit = per_second(1, 1);
        assert!((0..10).all(|_| buckets.has_room(ME, limit)));
        assert_eq!(buckets.len(), 0);
        assert_eq!(passed(&buckets, ME, limit, 5), 2);
        assert_eq!(passed(&buckets, Client(2), limit, 5), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn another_limit_finds_what_was_used() {
        let buckets = Buckets::default();
        let one = RequestLimit { rate: 16, burst: 1_000 };
        let ten = RequestLimit { rate: 166, burst: 10_000 };
        assert_eq!(passed(&buckets, ME, one, 4), 2);
        assert_eq!(passed(&buckets, ME, ten, 14), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_a_bound_on_clients_and_the_oldest_is_forgotten_first() {
        let buckets = Buckets::default();
        let limit = per_second(1, 1);
        for client in 0..3 * CLIENTS as u128 {
            buckets.take(Client(client), limit);
        }
        assert!(buckets.len() <= CLIENTS && buckets.len() > CLIENTS / 2);
        let newest = Client(3 * CLIENTS as u128 - 1);
        assert_eq!(passed(&buckets, newest, limit, 5), 1);
        assert_eq!(passed(&buckets, Client(0), limit, 5), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stays_away_is_forgotten() {
        let buckets = Buckets::default();
        let limit = per_second(1, 1);
        for client in 0..1000 {
            buckets.take(Client(client), limit);
        }
        advance(Duration::from_secs(61)).await;
        for client in 1000..2000 {
            buckets.take(Client(client), limit);
        }
        assert!(buckets.len() < 1100, "{} of 2000", buckets.len());
    }
}
