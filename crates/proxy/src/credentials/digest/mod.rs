//! Digest authentication (RFC 7616 with MD5 and `qop=auth`), with the rules of the module that ingress-nginx has: a
//! number is good for 20 requests within 10 seconds of its first, and five wrong answers lock an address out for
//! five minutes.

use super::authorization::DigestAnswer;
use crate::crowds::Crowd;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use md5::{Digest, Md5};
use model::policy::{AuthBasic, Password};
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a number waits for its first use.
const UNUSED: Duration = Duration::from_secs(60);
/// How long it is good after that.
const USED: Duration = Duration::from_secs(10);
/// Uses of one number.
const USES: u32 = 20;
/// Wrong answers after which an address is no longer listened to, and for how long.
const MISTAKES: u32 = 5;
const LOCKED: Duration = Duration::from_secs(300);
/// Numbers in use, of which those of one namespace are half.
const KEPT: usize = 65_536;
/// Addresses that made mistakes in a namespace.
const BLAMED: usize = 16_384;

/// What becomes of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is right; the value of Authentication-Info.
    Right(String),
    /// It is right but for its number, which is too old.
    Stale,
    /// It is wrong.
    Wrong,
}

/// What all threads know about numbers that were given out.
#[derive(Debug)]
pub(crate) struct Digests {
    key: hmac::Key,
    since: Instant,
    state: Mutex<State>,
    /// Answers that were right and found no room for their number.
    refused: AtomicU64,
}

/// Who answers, and at whose door: nobody's mistakes or numbers cost another namespace anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client<'a> {
    pub(crate) namespace: &'a Arc<str>,
    pub(crate) address: IpAddr,
}

#[derive(Debug, Default)]
struct State {
    numbers: HashMap<Arc<[u8]>, Number>,
    /// All of them, and until when they are kept: in the order in which they are forgotten.
    order: VecDeque<(Instant, Arc<[u8]>)>,
    /// How many each namespace has.
    held: HashMap<Arc<str>, usize>,
    /// Those that made mistakes in a namespace lately, and those before them.
    mistakes: HashMap<Arc<str>, [HashMap<IpAddr, Mistakes>; 2]>,
}

#[derive(Debug)]
struct Number {
    namespace: Arc<str>,
    uses: u32,
    good_until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Mistakes {
    count: u32,
    until: Instant,
}

impl Default for Digests {
    fn default() -> Self {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .expect("the system has random numbers: TLS needs them first");
        Self { key, since: Instant::now(), state: Mutex::default(), refused: AtomicU64::default() }
    }
}

impl Digests {
    /// A number for a challenge: the time, something unlike all others, and proof that it is ours. Nothing is kept.
    pub(crate) fn number(&self) -> String {
        let seconds = self.since.elapsed().as_secs();
        let head = format!("{seconds:08x}{:08x}", fastrand::u32(..));
        let proof = self.proof(head.as_bytes());
        head + &proof
    }

    fn proof(&self, head: &[u8]) -> String {
        hex::encode(&hmac::sign(&self.key, head).as_ref()[..8])
    }

    /// Numbers in use, and how often there was no room for one.
    pub(crate) fn crowd(&self) -> Crowd {
        let now = self.state.lock().numbers.len() as u64;
        let refused = self.refused.load(Ordering::Relaxed);
        Crowd { now, most: KEPT as u64, refused }
    }

    /// Whether an address is not listened to for now.
    pub(crate) fn is_locked(&self, client: Client<'_>) -> bool {
        let state = self.state.lock();
        state
            .mistakes(client)
            .is_some_and(|known| known.count >= MISTAKES && known.until > Instant::now())
    }

    /// Whether an answer is right. `target` is that of the request.
    pub(crate) fn judge(
        &self,
        policy: &AuthBasic,
        answer: &DigestAnswer,
        method: &str,
        target: &[u8],
        client: Client<'_>,
    ) -> Judgement {
        let judgement = self.look(policy, answer, (method, target), client.namespace);
        let mut state = self.state.lock();
        match judgement {
            Judgement::Right(_) => state.forgive(client),
            Judgement::Wrong => state.blame(client),
            Judgement::Stale => {}
        }
        judgement
    }

    fn look(
        &self,
        policy: &AuthBasic,
        answer: &DigestAnswer,
        (method, target): (&str, &[u8]),
        namespace: &Arc<str>,
    ) -> Judgement {
        let Some(Password::Digest(secret)) = policy.users.0.get(answer.user.as_slice()) else {
            return Judgement::Wrong;
        };
        // Some clients leave the query out, and are believed (as the original's module does).
        let rest = target.strip_prefix(answer.uri.as_slice());
        if !rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'?') {
            return Judgement::Wrong;
        }
        let expected = response(secret, answer, method);
        if verify_slices_are_equal(expected.as_bytes(), &answer.response).is_err() {
            return Judgement::Wrong;
        }
        match self.spend(&answer.nonce, &answer.count, namespace) {
            Judgement::Right(_) => Judgement::Right(format!(
                "qop=\"auth\", rspauth=\"{}\", cnonce=\"{}\", nc={}",
                response(secret, answer, ""),
                String::from_utf8_lossy(&answer.client_nonce),
                String::from_utf8_lossy(&answer.count),
            )),
            other => other,
        }
    }

    /// Uses a number up, once for each count.
    fn spend(&self, nonce: &[u8], count: &[u8], namespace: &Arc<str>) -> Judgement {
        let Some(age) = self.age(nonce) else { return Judgement::Wrong };
        let Some(count) = hexadecimal(count).filter(|count| *count > 0) else {
            return Judgement::Wrong;
        };
        if count >= USES {
            return Judgement::Stale;
        }
        let now = Instant::now();
        let mut state = self.state.lock();
        if !state.numbers.contains_key(nonce) {
            if age >= UNUSED {
                return Judgement::Stale;
            }
            if !state.keep(nonce, namespace, now) {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Judgement::Stale;
            }
        }
        let Some(number) = state.numbers.get_mut(nonce) else { return Judgement::Stale };
        if number.good_until <= now {
            return Judgement::Stale;
        }
        if number.uses >> count & 1 == 1 {
            return Judgement::Wrong;
        }
        number.uses |= 1 << count;
        Judgement::Right(String::new())
    }

    /// How long ago we gave a number out; none if we did not.
    fn age(&self, nonce: &[u8]) -> Option<Duration> {
        let (head, proof) = nonce.split_at_checked(16)?;
        verify_slices_are_equal(self.proof(head).as_bytes(), proof).ok()?;
        let given = Duration::from_secs(u64::from(hexadecimal(&head[..8])?));
        Some(self.since.elapsed().saturating_sub(given))
    }
}

impl State {
    fn mistakes(&self, client: Client<'_>) -> Option<Mistakes> {
        let halves = self.mistakes.get(client.namespace)?;
        halves.iter().find_map(|half| half.get(&client.address)).copied()
    }

    fn forgive(&mut self, client: Client<'_>) {
        let Some(halves) = self.mistakes.get_mut(client.namespace) else { return };
        for half in halves.iter_mut() {
            half.remove(&client.address);
        }
        if halves.iter().all(HashMap::is_empty) {
            self.mistakes.remove(client.namespace);
        }
    }

    fn blame(&mut self, client: Client<'_>) {
        let now = Instant::now();
        let before = self.mistakes(client).filter(|known| known.until >= now);
        let count = before.map_or(0, |known| known.count).saturating_add(1);
        let [young, old] = self.mistakes.entry(client.namespace.clone()).or_default();
        if young.len() >= BLAMED / 2 {
            *old = std::mem::take(young);
        }
        young.insert(client.address, Mistakes { count, until: now + LOCKED });
    }

    /// Keeps a number, if there is room for another one of this namespace once those that are over are forgotten.
    fn keep(&mut self, nonce: &[u8], namespace: &Arc<str>, now: Instant) -> bool {
        while let Some((_, over)) = self.order.pop_front_if(|(until, _)| *until <= now) {
            let Some(number) = self.numbers.remove(&over) else { continue };
            if let Entry::Occupied(mut held) = self.held.entry(number.namespace) {
                *held.get_mut() -= 1;
                if *held.get() == 0 {
                    held.remove();
                }
            }
        }
        let held = self.held.entry(namespace.clone()).or_default();
        let left = KEPT.saturating_sub(self.numbers.len());
        // No more than is left for others.
        if *held >= left.min(KEPT / 2) {
            return false;
        }
        *held += 1;
        let nonce: Arc<[u8]> = nonce.into();
        self.order.push_back((now + UNUSED + USED, nonce.clone()));
        let fresh = Number { namespace: namespace.clone(), uses: 0, good_until: now + USED };
        self.numbers.insert(nonce, fresh);
        true
    }
}

/// The response that proves the secret; with no method, the one by which we prove that we know it, too.
fn response(secret: &[u8; 16], answer: &DigestAnswer, method: &str) -> String {
    let DigestAnswer { nonce, count, client_nonce, qop, uri, .. } = answer;
    let request = md5(&[method.as_bytes(), uri]);
    md5(&[hex::encode(secret).as_bytes(), nonce, count, client_nonce, qop, request.as_bytes()])
}

fn md5(parts: &[&[u8]]) -> String {
    hex::encode(Md5::digest(parts.join(&b':')))
}

fn hexadecimal(text: &[u8]) -> Option<u32> {
    let valid = !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(text).ok().filter(|_| valid)?;
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests;
