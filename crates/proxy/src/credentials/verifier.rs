//! Slow hashes, a bounded number at a time, on threads that serve no requests.

use super::remembered::{Remembered, Tag};
use super::verify::{is_costly, verify};
use crate::crowds::Crowd;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use model::policy::{Password, Users};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// Queues; all locations of an Ingress share one.
const QUEUES: usize = 64;
/// Passwords that may wait in one queue.
const WAITING: usize = 256;

/// There are so many passwords to verify that this one is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// Verifies passwords for all threads.
#[derive(Debug)]
pub(crate) struct Verifier {
    key: hmac::Key,
    turns: Arc<Semaphore>,
    queues: Vec<Queue>,
    /// Passwords that found no place.
    refused: AtomicU64,
}

/// The passwords of a few Ingresses: guesses at one of them must not keep the others waiting.
#[derive(Debug)]
struct Queue {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for Verifier {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get).max(2);
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .expect("the system has random numbers: TLS needs them first");
        let queue =
            |_| Queue { turns: Arc::new(Semaphore::new(cores / 2)), waiting: AtomicUsize::new(0) };
        Self {
            key,
            turns: Arc::new(Semaphore::new(cores)),
            queues: (0..QUEUES).map(queue).collect(),
            refused: AtomicU64::new(0),
        }
    }
}

/// A place in a queue, until it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Queue {
    fn enter(&self) -> Result<Place<'_>, Busy> {
        let place = Place(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < WAITING { Ok(place) } else { Err(Busy) }
    }
}

impl Verifier {
    /// Whether a user of this name has this password.
    pub(crate) async fn knows(
        &self,
        users: &Arc<Users>,
        user: &[u8],
        password: Vec<u8>,
        remembered: &Remembered,
    ) -> Result<bool, Busy> {
        let Some(known) = users.0.get(user) else { return Ok(false) };
        if !is_costly(known) {
            return Ok(verify(known, &password));
        }
        let tag = self.tag(known, &password);
        if remembered.has(&tag) {
            return Ok(true);
        }
        let right = self.compute(users, known.clone(), password).await?;
        if right {
            remembered.keep(tag);
        }
        Ok(right)
    }

    async fn compute(
        &self,
        users: &Arc<Users>,
        known: Password,
        password: Vec<u8>,
    ) -> Result<bool, Busy> {
        let number = Arc::as_ptr(users).addr() / align_of::<Users>() % QUEUES;
        let queue = &self.queues[number];
        let place = queue.enter().inspect_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
        })?;
        let own = queue.turns.clone().acquire_owned().await.map_err(|_| Busy)?;
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| Busy)?;
        drop(place);
        let right = tokio::task::spawn_blocking(move || {
            let right = verify(&known, &password);
            // Only now: if the client went away meanwhile, the work was still being done.
            drop((own, turn));
            right
        });
        Ok(right.await.unwrap_or(false))
    }

    /// How many wait in the fullest queue.
    pub(crate) fn crowd(&self) -> Crowd {
        let waiting = self.queues.iter().map(|queue| queue.waiting.load(Ordering::Relaxed));
        let now = waiting.max().unwrap_or(0).min(WAITING) as u64;
        Crowd { now, most: WAITING as u64, refused: self.refused.load(Ordering::Relaxed) }
    }

    fn tag(&self, known: &Password, password: &[u8]) -> Tag {
        let mut context = hmac::Context::with_key(&self.key);
        for part in stored(known).into_iter().chain([password]) {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

/// The stored text, in parts.
fn stored(known: &Password) -> [&[u8]; 3] {
    match known {
        Password::Plain(plain) => [b"plain", plain, b""],
        Password::Sha1(hash) => [b"sha1", hash.as_bytes(), b""],
        Password::SaltedSha1 { hash, salt } => [b"ssha", hash, salt],
        Password::Md5 { magic, salt, hash } => [magic.as_bytes(), salt.as_bytes(), hash.as_bytes()],
        Password::Bcrypt(hash) | Password::ShaCrypt(hash) | Password::Des(hash) => {
            [b"crypt", hash.as_bytes(), b""]
        }
        Password::Digest(hash) => [b"digest", hash, b""],
    }
}

#[cfg(test)]
mod tests {
    use super::{Busy, Password, Remembered, Users, Verifier, WAITING};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    fn users(hash: &str) -> Arc<Users> {
        let known = Password::Des(hash.into());
        Arc::new(Users([(b"alice".as_slice().into(), known)].into()))
    }

    #[tokio::test]
    async fn a_slow_hash_is_computed_once_and_again_when_the_stored_one_changes() {
        let (verifier, remembered) = (Verifier::default(), Remembered::default());
        let ask = async |users: &Arc<Users>, password: &[u8]| {
            verifier.knows(users, b"alice", password.to_vec(), &remembered).await
        };
        let first = users("abNANd1rDfiNc");
        assert_eq!(ask(&first, b"secret").await, Ok(true));
        assert_eq!(ask(&first, b"other").await, Ok(false));
        // Nothing can be computed any more: what is still known comes from memory.
        verifier.turns.close();
        assert_eq!(ask(&first, b"secret").await, Ok(true));
        assert_eq!(ask(&first, b"other").await, Err(Busy));
        assert_eq!(ask(&users("..X8NBuQ4l6uQ"), b"secret").await, Err(Busy));
    }

    #[tokio::test]
    async fn whoever_finds_the_queue_full_is_sent_away() {
        let verifier = Verifier::default();
        verifier.queues.iter().for_each(|queue| queue.waiting.store(WAITING, Ordering::Relaxed));
        let users = users("abNANd1rDfiNc");
        let found =
            verifier.knows(&users, b"alice", b"secret".to_vec(), &Remembered::default()).await;
        assert_eq!(found, Err(Busy));
        let most = WAITING as u64;
        assert_eq!(verifier.crowd(), super::Crowd { now: most, most, refused: 1 });
        let waiting: usize =
            verifier.queues.iter().map(|queue| queue.waiting.load(Ordering::Relaxed)).sum();
        assert_eq!(waiting, WAITING * super::QUEUES);
    }
}
