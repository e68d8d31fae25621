//! The task that asks authorities about certificates: soon after a certificate is first used, again before the answer
//! ends, and more and more rarely while there is none.

use super::message::{Question, question, responder_of};
use super::quota::{BYTES, Shares};
use super::{Staples, address, fetch};
use crate::Certificates;
use crate::long_keys::namespace_of;
use arc_swap::ArcSwap;
use model::Outside;
use rustls::sign::CertifiedKey;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;
use stream::{Order, Whose};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use wire::since_epoch;

/// Questions on their way at a time.
const AT_ONCE: usize = 8;
/// The first pause after a failure; it doubles up to the longest one.
const PAUSE: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(3600);
/// A question that fails after as long has kept others waiting: whoever is asked did not answer in time.
const SLOW: Duration = Duration::from_secs(5);
/// How long a certificate without responder is left alone before it is looked at whether it is still served.
const NEVER: Duration = Duration::from_secs(86_400);

/// Characters of a responder's URL that the log tells: a tenant writes it.
const TOLD: usize = 200;

/// A certificate that is asked about from time to time.
#[derive(Debug)]
struct Turn {
    key: Arc<CertifiedKey>,
    /// Where it is from, `namespace/name`.
    secret: Arc<str>,
    whose: Whose,
    failures: u32,
    /// Whether the question on its way counts as late.
    is_late: bool,
    /// Bytes that its answer takes of the share of its namespace.
    held: usize,
}

/// What came of a question: the answer with the second it ends, or why there is none.
type Outcome = Result<(Vec<u8>, u64), (Failed, String)>;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failed {
    /// There is nobody to ask.
    Nobody,
    /// What was answered does not count, or nobody listens, and that was known soon.
    Soon,
    /// It took long.
    Late,
}

/// The certificates that are asked about, and in which order.
struct Turns {
    all: BTreeMap<usize, Turn>,
    order: Order,
    asking: JoinSet<Outcome>,
    /// What each question on its way is about.
    about: HashMap<Id, usize>,
    shares: Shares,
}

/// Runs until nobody is left who could use an answer.
pub(super) async fn run(
    staples: Weak<Staples>,
    mut wants: mpsc::Receiver<Arc<CertifiedKey>>,
    certificates: Arc<ArcSwap<Certificates>>,
) {
    let mut turns = Turns::new();
    loop {
        let due = turns.order.due();
        tokio::select! {
            wanted = wants.recv() => match wanted {
                Some(key) => turns.add(key, &certificates.load()),
                None => return,
            },
            Some(ended) = turns.asking.join_next_with_id(), if !turns.asking.is_empty() => {
                let Some(staples) = staples.upgrade() else { return };
                // One that panicked has ended, too, and makes room.
                let failed = |error: JoinError| (error.id(), Err((Failed::Soon, error.to_string())));
                let (question, outcome) = ended.unwrap_or_else(failed);
                if let Some(id) = turns.about.remove(&question) {
                    turns.end(id, outcome, &staples);
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                let Some(staples) = staples.upgrade() else { return };
                turns.next(&staples, &certificates.load());
            }
        }
    }
}

impl Turns {
    fn new() -> Self {
        let order = Order::new(AT_ONCE);
        Self {
            all: BTreeMap::new(),
            order,
            asking: JoinSet::new(),
            about: HashMap::new(),
            shares: Shares::default(),
        }
    }

    /// Asks about a certificate, too, if it is still served; whoever shows it says so again.
    fn add(&mut self, key: Arc<CertifiedKey>, certificates: &Certificates) {
        let id = address(&key);
        if self.all.contains_key(&id) {
            return;
        }
        let Some(secret) = certificates.secret(&key).map(Arc::from) else { return };
        let responder = responder_of(&key.cert).unwrap_or_default();
        let responder = fetch::split(&responder).map(|(authority, _)| authority);
        let responder = responder.unwrap_or_default().into();
        let whose = Whose { namespace: namespace_of(&secret).into(), responder };
        self.order.wait(&whose, id, Instant::now());
        self.all.insert(id, Turn { key, secret, whose, failures: 0, is_late: false, held: 0 });
    }

    /// Asks about the next one, or forgets it if it is not served any longer.
    fn next(&mut self, staples: &Staples, certificates: &Certificates) {
        let now = Instant::now();
        let Some((id, is_late)) = self.order.next(now) else { return };
        let Some(turn) = self.all.get_mut(&id) else { return };
        turn.is_late = is_late;
        if certificates.secret(&turn.key).is_none() {
            staples.forget(&turn.key);
            self.shares.hold(&turn.whose.namespace, &mut turn.held, 0);
            self.order.end(&turn.whose, is_late, None, now);
            self.all.remove(&id);
            return;
        }
        match question(&turn.key.cert) {
            Ok(question) => {
                // No handshake asks for it from now on.
                if !staples.entries.load().get(&id).is_some_and(|entry| entry.is_about(&turn.key)) {
                    staples.put(&turn.key, None);
                }
                let outside = staples.outside.clone();
                let asked = self.asking.spawn(async move { ask(question, &outside).await });
                self.about.insert(asked.id(), id);
            }
            Err(refused) => {
                let failed = if refused.is_final() { Failed::Nobody } else { Failed::Soon };
                self.end(id, Err((failed, refused.to_string())), staples);
            }
        }
    }

    /// Notes what came of a question, and when it is asked again.
    fn end(&mut self, id: usize, outcome: Outcome, staples: &Staples) {
        let Some(turn) = self.all.get_mut(&id) else { return };
        let now = Instant::now();
        let in_time = match outcome {
            Ok(_) => Some(true),
            Err((Failed::Late, _)) => Some(false),
            Err((Failed::Nobody | Failed::Soon, _)) => None,
        };
        let pause = turn.end(outcome, staples, &mut self.shares);
        self.order.end(&turn.whose, turn.is_late, in_time, now);
        self.order.wait(&turn.whose, id, now + pause);
    }
}

impl Turn {
    /// Notes what came of a question; the pause until the next one.
    fn end(&mut self, outcome: Outcome, staples: &Staples, shares: &mut Shares) -> Duration {
        let outcome = outcome.and_then(|(answer, until)| {
            let chain = self.key.cert.iter().map(|one| one.len()).sum::<usize>();
            let has_room = shares.hold(&self.whose.namespace, &mut self.held, answer.len() + chain);
            let full =
                || format!("the answers of its namespace would hold more than {BYTES} bytes");
            if has_room { Ok((answer, until)) } else { Err((Failed::Soon, full())) }
        });
        let failed = match outcome {
            Ok((answer, until)) => {
                let mut stapled = CertifiedKey::clone(&self.key);
                stapled.ocsp = Some(answer);
                staples.put(&self.key, Some((Arc::new(stapled), until)));
                self.failures = 0;
                let life = until.saturating_sub(since_epoch().as_secs());
                return Duration::from_secs((life / 4 * 3).max(PAUSE.as_secs()));
            }
            Err((failed, why)) => {
                self.tell(failed, &why, shares);
                failed
            }
        };
        // What is there already goes on until it ends.
        if !staples.entries.load().contains_key(&address(&self.key)) {
            staples.put(&self.key, None);
        }
        // Whoever lets a question run out of time has had more of it than others.
        let steps = if failed == Failed::Late { 2 } else { 1 };
        self.failures = self.failures.saturating_add(steps);
        let doubled = self.failures.saturating_sub(1).min(10);
        let pause = PAUSE.saturating_mul(1 << doubled).min(LONGEST);
        if failed == Failed::Nobody { NEVER } else { pause }
    }

    /// The line of the log, one of those that the namespace has in a minute.
    fn tell(&self, failed: Failed, why: &str, shares: &mut Shares) {
        let secret = &self.secret;
        let now = Instant::now().into_std();
        let Some(left_out) = shares.line(&self.whose.namespace, now) else { return };
        if failed == Failed::Nobody {
            return tracing::info!(%secret, why, left_out, "a certificate is served without OCSP staple");
        }
        let responder: String =
            responder_of(&self.key.cert).unwrap_or_default().chars().take(TOLD).collect();
        tracing::warn!(%secret, responder, why, left_out, "a certificate is served without OCSP staple; asking again later");
    }
}

async fn ask(question: Question, outside: &Outside) -> Outcome {
    let began = Instant::now();
    let failed = |error: &dyn std::fmt::Display| {
        let failed = if began.elapsed() < SLOW { Failed::Soon } else { Failed::Late };
        (failed, error.to_string())
    };
    let answer = fetch::post(&question.responder, &question.request, outside).await;
    let answer = answer.map_err(|error| failed(&error))?;
    // Whoever answers chooses the keys of its signatures: some take a millisecond each.
    let verifying = tokio::task::spawn_blocking(move || {
        question.verify(&answer, since_epoch()).map(|until| (answer, until))
    });
    let verified = verifying.await.map_err(|error| failed(&error))?;
    verified.map_err(|error| failed(&error))
}
