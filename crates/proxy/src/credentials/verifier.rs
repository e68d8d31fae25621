//! Slow hashes, a bounded number at a time, on threads that serve no requests.

use super::remembered::{Remembered, Tag};
use super::turns::{Asker, Busy, Turns};
use super::verify::{cost, verify};
use crate::crowds::Crowd;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use model::policy::{Password, Users};
use std::num::NonZero;
use std::sync::Arc;

/// Verifies passwords for all threads.
#[derive(Debug)]
pub(crate) struct Verifier {
    key: hmac::Key,
    turns: Arc<Turns>,
}

impl Default for Verifier {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get).max(2);
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .expect("the system has random numbers: TLS needs them first");
        Self { key, turns: Turns::new(cores) }
    }
}

impl Verifier {
    /// Whether a user of this name has this password; who asks says whose turn it is.
    pub(crate) async fn knows(
        &self,
        users: &Users,
        user: &[u8],
        password: Vec<u8>,
        remembered: &Remembered,
        asker: &Asker,
    ) -> Result<bool, Busy> {
        let Some(known) = users.0.get(user) else { return Ok(false) };
        let cost = cost(known);
        if cost == 0 {
            return Ok(verify(known, &password));
        }
        let tag = self.tag(known, &password);
        if remembered.has(&asker.namespace, &tag) {
            return Ok(true);
        }
        let turn = self.turns.turn(asker, cost).await?;
        let known = known.clone();
        let computed = tokio::task::spawn_blocking(move || {
            let right = verify(&known, &password);
            // Only now: if the client went away meanwhile, the work was still being done.
            drop(turn);
            right
        });
        let right = computed.await.unwrap_or(false);
        if right {
            remembered.keep(&asker.namespace, tag);
        }
        Ok(right)
    }

    /// How many wait of the namespace of which most do.
    pub(crate) fn crowd(&self) -> Crowd {
        self.turns.crowd()
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
    use super::{Asker, Busy, Password, Remembered, Turns, Users, Verifier};

    fn users(hash: &str) -> Users {
        let known = Password::Des(hash.into());
        Users([(b"alice".as_slice().into(), known)].into())
    }

    #[tokio::test]
    async fn a_slow_hash_is_computed_once_and_again_when_the_stored_one_changes() {
        let (mut verifier, remembered) = (Verifier::default(), Remembered::default());
        let asker = Asker::default();
        let ask = async |verifier: &Verifier, users: &Users, password: &[u8]| {
            verifier.knows(users, b"alice", password.to_vec(), &remembered, &asker).await
        };
        let first = users("abNANd1rDfiNc");
        assert_eq!(ask(&verifier, &first, b"secret").await, Ok(true));
        assert_eq!(ask(&verifier, &first, b"other").await, Ok(false));
        // Nothing can be computed any more: what is still known comes from memory.
        verifier.turns = Turns::closed();
        assert_eq!(ask(&verifier, &first, b"secret").await, Ok(true));
        assert_eq!(ask(&verifier, &first, b"other").await, Err(Busy));
        assert_eq!(ask(&verifier, &users("..X8NBuQ4l6uQ"), b"secret").await, Err(Busy));
    }
}
