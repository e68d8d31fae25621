//! Requests that somebody waits for by their `X-Request-ID`: the story of each is kept for whoever asked, and nothing
//! of the request or its answer is changed.

use super::Decision;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Requests that are waited for, or told of, at a time.
const MOST: usize = 16;
/// Bytes of an id.
const LONGEST: usize = 128;
/// Lines of a story.
const LINES: usize = 128;
/// How long one is waited for, or kept, after the last question.
const KEPT: Duration = Duration::from_secs(60);

/// What is known of a request that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sample {
    /// It has not come since the first question.
    Awaited,
    /// When it was answered, and what was decided.
    Told(SystemTime, Vec<Decision>),
    /// Too many are waited for.
    TooMany,
    /// No id of a request: empty, or too long.
    NoId,
}

#[derive(Debug)]
struct Awaited {
    until: Instant,
    told: Option<(SystemTime, Vec<Decision>)>,
}

/// The requests that are waited for.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// How many there are: all that a request reads where nobody waits.
    count: AtomicUsize,
    all: Mutex<HashMap<String, Awaited>>,
}

impl Sampled {
    /// What became of a request; from the first question on it is waited for.
    pub(crate) fn ask(&self, id: &str) -> Sample {
        if id.is_empty() || id.len() > LONGEST {
            return Sample::NoId;
        }
        let mut all = self.all.lock();
        let now = Instant::now();
        all.retain(|_, one| one.until > now);
        let is_full = all.len() >= MOST;
        let answer = match all.get_mut(id) {
            Some(one) => {
                one.until = now + KEPT;
                match &one.told {
                    Some((at, decisions)) => Sample::Told(*at, decisions.clone()),
                    None => Sample::Awaited,
                }
            }
            None if is_full => Sample::TooMany,
            None => {
                all.insert(id.to_owned(), Awaited { until: now + KEPT, told: None });
                Sample::Awaited
            }
        };
        self.count.store(all.len(), Ordering::Relaxed);
        answer
    }

    /// Whether anybody waits at all.
    pub(crate) fn is_any_awaited(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether somebody waits for this one.
    #[cold]
    pub(crate) fn is_awaited(&self, id: &[u8]) -> bool {
        let Ok(id) = std::str::from_utf8(id) else { return false };
        let mut all = self.all.lock();
        let now = Instant::now();
        all.retain(|_, one| one.until > now);
        self.count.store(all.len(), Ordering::Relaxed);
        all.get(id).is_some_and(|one| one.told.is_none())
    }

    /// It was answered. The first of an id is told of; others of the same id are not.
    #[cold]
    pub(crate) fn tell(&self, id: &[u8], mut decisions: Vec<Decision>) {
        let Ok(id) = std::str::from_utf8(id) else { return };
        if let Some(one) = self.all.lock().get_mut(id).filter(|one| one.told.is_none()) {
            decisions.truncate(LINES);
            one.told = Some((SystemTime::now(), decisions));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, LINES, LONGEST, MOST, Sample, Sampled};

    fn line() -> Decision {
        Decision { step: "answer", outcome: "200".to_owned(), by: None, nobody: None }
    }

    #[test]
    fn the_first_request_of_an_id_is_told_and_nobody_else() {
        let sampled = Sampled::default();
        assert!(!sampled.is_any_awaited() && !sampled.is_awaited(b"one"));
        assert_eq!(sampled.ask("one"), Sample::Awaited);
        assert!(sampled.is_any_awaited() && sampled.is_awaited(b"one"));
        assert!(!sampled.is_awaited(b"another") && !sampled.is_awaited(b"\xff"));
        sampled.tell(b"another", vec![line()]);
        sampled.tell(b"one", vec![line(); LINES + 1]);
        sampled.tell(b"one", Vec::new());
        let Sample::Told(_, decisions) = sampled.ask("one") else { panic!("it came") };
        assert_eq!(decisions.len(), LINES);
        assert!(!sampled.is_awaited(b"one"), "a second one of that id is no news");
    }

    #[test]
    fn no_more_are_waited_for_than_there_is_room() {
        let sampled = Sampled::default();
        for number in 0..MOST {
            assert_eq!(sampled.ask(&number.to_string()), Sample::Awaited);
        }
        assert_eq!(sampled.ask("one more"), Sample::TooMany);
        assert_eq!(sampled.ask("0"), Sample::Awaited);
        assert_eq!(sampled.ask(""), Sample::NoId);
        assert_eq!(sampled.ask(&"a".repeat(LONGEST + 1)), Sample::NoId);
    }
}
