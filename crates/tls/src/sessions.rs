//! Sessions that clients may resume: bounded in number and in time (`ssl-session-cache-size`, `ssl-session-timeout`),
//! one cache for all hosts, in which no host finds the sessions of another one's settings.

use lru::LruCache;
use rustls::server::StoresServerSessions;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::since_epoch;

/// nginx keeps about 4,000 sessions in a megabyte, ours are about twice as large.
const BYTES: u64 = 512;
/// Sessions at most, whatever is asked for.
const MOST: u64 = 1 << 20;

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
        let count = usize::try_from((bytes / BYTES).clamp(1, MOST)).unwrap_or(1);
        let kept = Mutex::new(LruCache::unbounded());
        Self { cache: Arc::new(Cache { kept, most: count }), part: 0, lifetime }
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
        let end = value.len().checked_sub(8)?;
        let until = u64::from_be_bytes(value[end..].try_into().ok()?);
        value.truncate(end);
        (since_epoch().as_secs() < until).then_some(value)
    }
}

/// The sessions themselves. That of the rustls crate looks through all of them for one that is taken, and a session of
/// TLS 1.3 is taken whenever it is resumed: with 20,000 of them that cost more than a handshake saves.
#[derive(Debug)]
struct Cache {
    kept: Mutex<LruCache<Vec<u8>, Vec<u8>>>,
    most: usize,
}

impl Cache {
    fn kept(&self) -> MutexGuard<'_, LruCache<Vec<u8>, Vec<u8>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, mut value: Vec<u8>) -> bool {
        let until = since_epoch().as_secs().saturating_add(self.lifetime.as_secs());
        value.extend_from_slice(&until.to_be_bytes());
        let key = self.key(&key);
        let mut kept = self.cache.kept();
        kept.put(key, value);
        if kept.len() > self.cache.most {
            kept.pop_lru();
        }
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(key);
        let value = self.cache.kept().get(&key).cloned();
        value.and_then(Self::alive)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(key);
        let value = self.cache.kept().pop(&key);
        value.and_then(Self::alive)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Sessions, StoresServerSessions};
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
        let sessions = Sessions::new(100 * super::BYTES, Duration::from_secs(60));
        let id = |number: u32| number.to_be_bytes();
        for number in 0..150 {
            assert!(sessions.put(id(number).to_vec(), b"secret".to_vec()));
        }
        assert_eq!(sessions.cache.kept().len(), 100);
        assert_eq!(sessions.get(&id(49)), None);
        assert!(sessions.get(&id(50)).is_some());
        assert!(sessions.put(id(150).to_vec(), b"secret".to_vec()));
        assert_eq!(sessions.take(&id(51)), None, "the one that was resumed last stays");
        assert!(sessions.take(&id(50)).is_some());
        assert_eq!(sessions.cache.kept().len(), 99);
    }
}
