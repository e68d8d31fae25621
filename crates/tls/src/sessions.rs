//! Sessions that clients may resume: bounded in bytes and in time (`ssl-session-cache-size`, `ssl-session-timeout`),
//! one cache for all hosts, in which no host finds the sessions of another one's settings.

use lru::LruCache;
use parking_lot::Mutex;
use rustls::server::StoresServerSessions;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::since_epoch;

/// What a session counts at least: nginx keeps about 4,000 in a megabyte, ours are about twice as large.
const BYTES: usize = 512;
/// Bytes at most, whatever is asked for.
const MOST: u64 = 512 << 20;
/// Bytes of a session that is kept: it has the whole chain of a client's certificate, which anybody may send.
const LARGEST: usize = 16 << 10;
/// Sessions whose time is over that go for each one that comes.
const OVER: usize = 2;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A part of the cache of sessions.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    cache: Arc<Cache>,
    part: u64,
    lifetime: Duration,
}

impl Sessions {
    /// A cache of about so many bytes.
    pub(super) fn new(bytes: u64, lifetime: Duration) -> Self {
        let most = usize::try_from(bytes.min(MOST)).unwrap_or(0).max(LARGEST);
        let kept = Mutex::new(Kept { sessions: LruCache::unbounded(), bytes: 0 });
        Self { cache: Arc::new(Cache { kept, most }), part: 0, lifetime }
    }

    /// The same sessions with another lifetime.
    pub(super) fn living(&self, lifetime: Duration) -> Self {
        Self { lifetime, ..self.clone() }
    }

    /// A part of the same cache that no other part shares a session with.
    pub(super) fn apart(&self) -> Self {
        Self { part: NEXT.fetch_add(1, Ordering::Relaxed), ..self.clone() }
    }

    fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.part.to_be_bytes(), key].concat()
    }

    /// The value without the second that it ends with, if that has not come.
    fn alive(mut value: Vec<u8>) -> Option<Vec<u8>> {
        if is_over(&value, since_epoch().as_secs()) {
            return None;
        }
        value.truncate(value.len().checked_sub(8)?);
        Some(value)
    }
}

/// Whether the second that a value ends with has come.
fn is_over(value: &[u8], now: u64) -> bool {
    let until = value.last_chunk().map(|until| u64::from_be_bytes(*until));
    until.is_none_or(|until| until <= now)
}

/// The sessions themselves. That of the rustls crate looks through all of them for one that is taken, and a session of
/// TLS 1.3 is taken whenever it is resumed: with 20,000 of them that cost more than a handshake saves.
#[derive(Debug)]
struct Cache {
    kept: Mutex<Kept>,
    /// Bytes of all of them.
    most: usize,
}

#[derive(Debug)]
struct Kept {
    sessions: LruCache<Vec<u8>, Vec<u8>>,
    bytes: usize,
}

impl Kept {
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += weight(&value);
        let before = self.sessions.put(key, value);
        self.bytes -= before.map_or(0, |before| weight(&before));
    }

    fn take(&mut self, key: &Vec<u8>) -> Option<Vec<u8>> {
        let value = self.sessions.pop(key)?;
        self.bytes -= weight(&value);
        Some(value)
    }

    /// Lets the one go that was unused for longest.
    fn forget(&mut self) {
        if let Some((_, value)) = self.sessions.pop_lru() {
            self.bytes -= weight(&value);
        }
    }
}

/// What a session counts.
fn weight(value: &[u8]) -> usize {
    value.len().max(BYTES)
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, mut value: Vec<u8>) -> bool {
        if value.len() > LARGEST {
            return false;
        }
        let now = since_epoch().as_secs();
        let until = now.saturating_add(self.lifetime.as_secs());
        value.extend_from_slice(&until.to_be_bytes());
        let key = self.key(&key);
        let mut kept = self.cache.kept.lock();
        kept.put(key, value);
        for _ in 0..OVER {
            if kept.sessions.peek_lru().is_some_and(|(_, value)| is_over(value, now)) {
                kept.forget();
            }
        }
        while kept.bytes > self.cache.most {
            kept.forget();
        }
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(key);
        let value = self.cache.kept.lock().sessions.get(&key).cloned();
        value.and_then(Self::alive)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(key);
        let value = self.cache.kept.lock().take(&key);
        value.and_then(Self::alive)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, LARGEST, Sessions, StoresServerSessions};
    use std::time::Duration;

    #[test]
    fn a_session_is_found_by_its_own_part_while_it_lives() {
        let sessions = Sessions::new(1 << 20, Duration::from_secs(60));
        let other = sessions.apart();
        assert!(sessions.put(b"id".to_vec(), b"secret".to_vec()));
        assert_eq!(other.get(b"id"), None);
        assert_eq!(sessions.get(b"id").as_deref(), Some(&b"secret"[..]));
        assert_eq!(sessions.take(b"id").as_deref(), Some(&b"secret"[..]));
        assert_eq!(sessions.get(b"id"), None);
        let brief = sessions.living(Duration::ZERO);
        assert!(brief.put(b"id".to_vec(), b"secret".to_vec()));
        assert_eq!(brief.get(b"id"), None);
    }

    #[test]
    fn who_was_unused_for_longest_goes_where_there_are_more_sessions_than_asked_for() {
        let sessions = Sessions::new(100 * BYTES as u64, Duration::from_secs(60));
        let id = |number: u32| number.to_be_bytes();
        for number in 0..150 {
            assert!(sessions.put(id(number).to_vec(), b"secret".to_vec()));
        }
        assert_eq!(sessions.cache.kept.lock().sessions.len(), 100);
        assert_eq!(sessions.get(&id(49)), None);
        assert!(sessions.get(&id(50)).is_some());
        assert!(sessions.put(id(150).to_vec(), b"secret".to_vec()));
        assert_eq!(sessions.take(&id(51)), None, "the one that was resumed last stays");
        assert!(sessions.take(&id(50)).is_some());
        assert_eq!(sessions.cache.kept.lock().sessions.len(), 99);
        assert_eq!(sessions.cache.kept.lock().bytes, 99 * BYTES);
    }

    #[test]
    fn large_sessions_count_by_their_bytes_and_the_largest_are_not_kept() {
        let sessions = Sessions::new(8 * LARGEST as u64, Duration::from_secs(60));
        assert!(!sessions.put(b"huge".to_vec(), vec![0; LARGEST + 1]));
        for number in 0..100u32 {
            assert!(sessions.put(number.to_be_bytes().to_vec(), vec![0; LARGEST - 8]));
            assert!(sessions.cache.kept.lock().bytes <= 8 * LARGEST);
        }
        assert_eq!(sessions.cache.kept.lock().sessions.len(), 8);
        assert!(sessions.put(99u32.to_be_bytes().to_vec(), b"other".to_vec()));
        assert_eq!(sessions.cache.kept.lock().bytes, 7 * LARGEST + BYTES);
    }

    #[test]
    fn sessions_whose_time_is_over_go_with_the_next_ones() {
        let sessions = Sessions::new(1 << 20, Duration::from_secs(60));
        let brief = sessions.living(Duration::ZERO);
        for number in 0..10u8 {
            assert!(brief.put(vec![number], b"secret".to_vec()));
        }
        assert!(sessions.put(b"id".to_vec(), b"secret".to_vec()));
        assert_eq!(sessions.cache.kept.lock().sessions.len(), 1);
    }
}
