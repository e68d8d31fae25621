//! Leaky buckets, one for each client, counted as ngx_http_limit_req_module does.

use super::{Client, SHARDS, shard};
use lru::LruCache;
use model::policy::RequestLimit;
use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Clients that a zone remembers; nginx's zones of 5 MB have room for about 40,000.
pub(super) const CLIENTS: usize = 64 << 10;
/// What one request adds.
const ONE: u64 = 1000;
/// A bucket that leaked empty is forgotten after this time without requests.
const IDLE: u64 = 60_000;

/// The buckets of an Ingress, or of a zone that a snippet declares.
#[derive(Debug)]
pub struct Buckets {
    shards: [Mutex<LruCache<Client, Bucket>>; SHARDS],
    /// Clients that a shard remembers.
    room: usize,
    hasher: RandomState,
    epoch: Instant,
    /// Clients that were forgotten for others.
    full: Arc<AtomicU64>,
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
        Self {
            shards: std::array::from_fn(|_| Mutex::new(LruCache::unbounded())),
            room: (clients / SHARDS).max(1),
            hasher: RandomState::new(),
            epoch: Instant::now(),
            full: Arc::default(),
        }
    }

    /// The same, where those that are forgotten for others are counted there.
    pub(super) fn counted(self, full: Arc<AtomicU64>) -> Self {
        Self { full, ..self }
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
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether no client is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn visit(&self, client: Client, limit: RequestLimit, wish: Wish) -> Option<u64> {
        let now = milliseconds(self.epoch.elapsed());
        let mut shard = lock(&self.shards[shard(&self.hasher, client)]);
        if let Some(bucket) = shard.get_mut(&client) {
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
            if make_room(&mut shard, self.room, limit, now) {
                self.full.fetch_add(1, Ordering::Relaxed);
            }
            shard.put(client, Bucket { last: now, excess: 0 });
        }
        Some(0)
    }
}

/// Forgets up to two clients that leaked empty long ago, and the one that was away longest where there is no room
/// (ngx_http_limit_req_expire); says whether there was none.
fn make_room(
    shard: &mut LruCache<Client, Bucket>,
    room: usize,
    limit: RequestLimit,
    now: u64,
) -> bool {
    let is_full = shard.len() >= room;
    if is_full {
        shard.pop_lru();
    }
    for _ in 0..2 {
        let Some((_, bucket)) = shard.peek_lru() else { break };
        let passed = now.saturating_sub(bucket.last);
        let leaked = limit.rate.saturating_mul(passed) / 1000;
        if passed < IDLE || bucket.excess > leaked {
            break;
        }
        shard.pop_lru();
    }
    is_full
}

fn lock(
    shard: &Mutex<LruCache<Client, Bucket>>,
) -> std::sync::MutexGuard<'_, LruCache<Client, Bucket>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
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
