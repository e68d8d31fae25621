//! The task that asks authorities about certificates: soon after a certificate is first used, again before the answer
//! ends, and more and more rarely while there is none.

use super::message::{Question, question};
use super::{Staples, address, fetch};
use crate::Certificates;
use arc_swap::ArcSwap;
use model::Outside;
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use wire::since_epoch;

/// Questions on their way at a time.
const AT_ONCE: usize = 8;
/// The first pause after a failure; it doubles up to the longest one.
const PAUSE: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(3600);
/// How long a certificate without responder is left alone before it is looked at whether it is still served.
const NEVER: Duration = Duration::from_secs(86_400);

/// A certificate and when it is asked about next.
#[derive(Debug)]
struct Turn {
    key: Arc<CertifiedKey>,
    failures: u32,
    at: Instant,
    running: bool,
}

/// What came of a question: the answer with the second it ends, or whether asking again can help.
type Outcome = Result<(Vec<u8>, u64), bool>;

/// Runs until nobody is left who could use an answer.
pub(super) async fn run(
    staples: Weak<Staples>,
    mut wants: mpsc::Receiver<Arc<CertifiedKey>>,
    certificates: Arc<ArcSwap<Certificates>>,
) {
    let mut turns: BTreeMap<usize, Turn> = BTreeMap::new();
    let mut asking: JoinSet<(usize, Outcome)> = JoinSet::new();
    loop {
        let due = turns.values().filter(|turn| !turn.running).map(|turn| turn.at).min();
        let has_room = asking.len() < AT_ONCE;
        tokio::select! {
            wanted = wants.recv() => match wanted {
                Some(key) => {
                    let turn = Turn { key: key.clone(), failures: 0, at: Instant::now(), running: false };
                    turns.entry(address(&key)).or_insert(turn);
                }
                None => return,
            },
            Some(Ok((id, outcome))) = asking.join_next(), if !asking.is_empty() => {
                let Some(staples) = staples.upgrade() else { return };
                if let Some(turn) = turns.get_mut(&id) {
                    turn.end(outcome, &staples);
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() && has_room => {
                let Some(staples) = staples.upgrade() else { return };
                let now = Instant::now();
                let ready = turns.iter().find(|(_, turn)| !turn.running && turn.at <= now);
                let Some((&id, _)) = ready else { continue };
                let served = turns.get(&id).is_some_and(|turn| certificates.load().serves(&turn.key));
                match turns.get_mut(&id) {
                    Some(turn) if served => turn.begin(id, &mut asking, &staples),
                    _ => {
                        if let Some(gone) = turns.remove(&id) {
                            staples.forget(&gone.key);
                        }
                    }
                }
            }
        }
    }
}

impl Turn {
    fn begin(&mut self, id: usize, asking: &mut JoinSet<(usize, Outcome)>, staples: &Staples) {
        match question(&self.key.cert) {
            Ok(question) => {
                self.running = true;
                // No handshake asks for it from now on.
                if !staples.entries.load().get(&id).is_some_and(|entry| entry.is_about(&self.key)) {
                    staples.put(&self.key, None);
                }
                let outside = staples.outside.clone();
                asking.spawn(async move { (id, ask(&question, &outside).await) });
            }
            Err(refused) => {
                tracing::info!(%refused, "a certificate is served without OCSP staple");
                let final_word = refused.is_final();
                self.end(Err(!final_word), staples);
            }
        }
    }

    fn end(&mut self, outcome: Outcome, staples: &Staples) {
        self.running = false;
        match outcome {
            Ok((answer, until)) => {
                let mut stapled = CertifiedKey::clone(&self.key);
                stapled.ocsp = Some(answer);
                staples.put(&self.key, Some((Arc::new(stapled), until)));
                self.failures = 0;
                let life = until.saturating_sub(since_epoch().as_secs());
                self.at = Instant::now() + Duration::from_secs((life / 4 * 3).max(PAUSE.as_secs()));
            }
            // What is there already goes on until it ends.
            Err(again) => {
                if !staples.entries.load().contains_key(&address(&self.key)) {
                    staples.put(&self.key, None);
                }
                let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
                self.failures += 1;
                self.at = Instant::now() + if again { pause } else { NEVER };
            }
        }
    }
}

async fn ask(question: &Question, outside: &Outside) -> Outcome {
    let responder = question.responder.as_str();
    let answer = fetch::post(responder, &question.request, outside).await.map_err(|error| {
        tracing::warn!(responder, %error, "OCSP: a responder does not answer; asking again later");
        true
    })?;
    let until = question.verify(&answer, since_epoch()).map_err(|error| {
        tracing::warn!(responder, %error, "OCSP: an answer does not count; asking again later");
        true
    })?;
    Ok((answer, until))
}
