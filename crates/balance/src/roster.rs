//! The endpoints of an upstream at one moment, with what the algorithms have computed of them once.

use crate::ewma::{self, Score};
use crate::{Ring, Sessions, subset};
use model::{Endpoints, UpstreamId};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

/// Which algorithms the locations of an upstream use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Moving averages.
    pub scores: bool,
    /// Hashing.
    pub ring: bool,
    /// Sessions.
    pub sessions: bool,
    /// Hashing onto sets.
    pub subsets: bool,
}

/// The endpoints of an upstream at one moment.
#[derive(Debug)]
pub struct Roster {
    upstream: UpstreamId,
    endpoints: Arc<Endpoints>,
    scores: Vec<Score>,
    /// Where an endpoint's score stands.
    numbers: HashMap<SocketAddr, usize>,
    ring: OnceLock<Ring>,
    sessions: OnceLock<Sessions>,
}

impl Roster {
    /// The endpoints that follow those of `before`, prepared for `needs`. `now` is in milliseconds of the
    /// upstream's clock.
    pub fn new(
        upstream: &UpstreamId,
        endpoints: Arc<Endpoints>,
        before: Option<&Self>,
        needs: &Needs,
        now: u32,
    ) -> Self {
        let mut roster = Self {
            upstream: upstream.clone(),
            scores: Vec::new(),
            numbers: HashMap::new(),
            ring: OnceLock::new(),
            sessions: OnceLock::new(),
            endpoints,
        };
        if needs.scores {
            let usable = roster.endpoints.usable();
            roster.scores = scores(usable, before, now);
            roster.numbers = usable.iter().copied().zip(0..).collect();
        }
        if needs.ring {
            let known =
                before.and_then(|before| Some((before.endpoints.usable(), before.ring.get()?)));
            if let Some((before, ring)) = known {
                let following = Ring::following(roster.endpoints.usable(), before, ring);
                roster.ring = following.into();
            }
            roster.ring();
        }
        if needs.sessions {
            if let Some(before) = before.and_then(|before| before.sessions.get()) {
                let (open, ending) = roster.open_and_ending();
                roster.sessions = before.following(open, ending).into();
            }
            roster.sessions();
        }
        if needs.subsets {
            subset::prepare();
        }
        roster
    }

    /// The endpoints.
    pub fn endpoints(&self) -> &Arc<Endpoints> {
        &self.endpoints
    }

    /// The endpoint that a key belongs to.
    pub fn by_hash(&self, key: &[u8]) -> Option<SocketAddr> {
        let at = self.ring().find(key)?;
        self.endpoints.usable().get(at).copied()
    }

    /// An endpoint of the set that a key belongs to. `random` gives a number below its argument.
    pub fn by_subset(
        &self,
        key: &[u8],
        size: NonZeroU32,
        random: impl FnOnce(usize) -> usize,
    ) -> Option<SocketAddr> {
        let usable = self.endpoints.usable();
        let at = subset::find(key, usable.len(), size, random)?;
        usable.get(at).copied()
    }

    /// Any endpoint.
    pub fn by_chance(&self, random: impl FnOnce(usize) -> usize) -> Option<SocketAddr> {
        let usable = self.endpoints.usable();
        if usable.is_empty() { None } else { usable.get(random(usable.len())).copied() }
    }

    /// The better one of two that were not tried yet; once all were, of all.
    pub fn by_score(
        &self,
        tried: &[SocketAddr],
        now: u32,
        random: impl FnMut(usize) -> usize,
    ) -> Option<SocketAddr> {
        let usable = self.endpoints.usable();
        if self.scores.len() != usable.len() {
            return self.by_chance(random);
        }
        let mut tried: Vec<usize> =
            tried.iter().filter_map(|endpoint| self.numbers.get(endpoint).copied()).collect();
        tried.sort_unstable();
        tried.dedup();
        if tried.len() == usable.len() {
            tried.clear();
        }
        ewma::pick(&tried, &self.scores, now, random).map(|at| usable[at])
    }

    /// Notes how long an endpoint took, in seconds.
    pub fn measured(&self, endpoint: SocketAddr, seconds: f32, now: u32) {
        let found = self.numbers.get(&endpoint).and_then(|at| self.scores.get(*at));
        found.into_iter().for_each(|score| score.measured(seconds, now));
    }

    /// The endpoints by what session cookies call them.
    pub fn sessions(&self) -> &Sessions {
        self.sessions.get_or_init(|| {
            let (open, ending) = self.open_and_ending();
            Sessions::new(self.upstream.as_str(), open, ending)
        })
    }

    /// Endpoints that take new sessions, and those that keep theirs.
    fn open_and_ending(&self) -> (&[SocketAddr], &[SocketAddr]) {
        let Endpoints { ready, draining } = &*self.endpoints;
        if ready.is_empty() { (draining, &[]) } else { (ready, draining) }
    }

    fn ring(&self) -> &Ring {
        self.ring.get_or_init(|| Ring::of_endpoints(self.endpoints.usable()))
    }
}

/// Endpoints keep the score they have; new ones start with the mean of those.
fn scores(usable: &[SocketAddr], before: Option<&Roster>, now: u32) -> Vec<Score> {
    let known: HashMap<SocketAddr, &Score> = before
        .map(|before| before.endpoints.usable().iter().copied().zip(&before.scores))
        .into_iter()
        .flatten()
        .filter(|(_, score)| !score.is_unknown())
        .collect();
    let stay: Vec<&Score> =
        usable.iter().filter_map(|endpoint| known.get(endpoint).copied()).collect();
    let sum: f32 = stay.iter().map(|score| score.last()).sum();
    usable
        .iter()
        .map(|endpoint| match known.get(endpoint) {
            Some(score) => score.copy(),
            None if stay.is_empty() => Score::default(),
            None => Score::starting(sum / stay.len() as f32, now),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Needs, Roster};
    use model::{Endpoints, UpstreamId};
    use std::net::SocketAddr;
    use std::num::NonZeroU32;
    use std::sync::Arc;

    fn address(host: u8) -> SocketAddr {
        SocketAddr::from(([10, 77, 0, host], 8000))
    }

    fn roster(hosts: &[u8], before: Option<&Roster>, needs: &Needs) -> Roster {
        let ready = hosts.iter().map(|host| address(*host)).collect();
        let endpoints = Arc::new(Endpoints { ready, draining: Vec::new() });
        Roster::new(&UpstreamId::new("demo-echo-80"), endpoints, before, needs, 1000)
    }

    #[test]
    fn scores_stay_and_a_new_endpoint_starts_in_the_middle() {
        let needs = Needs { scores: true, ..Needs::default() };
        let before = roster(&[1, 2, 3], None, &needs);
        before.measured(address(1), 10.0, 10_000);
        before.measured(address(2), 2.0, 10_000);
        let after = roster(&[4, 2, 1], Some(&before), &needs);
        let [new, second, first] = [0, 1, 2].map(|at| after.scores[at].last());
        assert!(first > second && (new - (first + second) / 2.0).abs() < 1e-4);
        assert_eq!(after.by_score(&[address(4), address(1)], 10_000, |_| 0), Some(address(2)));
        assert_eq!(after.by_score(&[address(4)], 10_000, |_| 0), Some(address(2)));
        let all = [address(1), address(2), address(4)];
        assert!(after.by_score(&all, 10_000, |_| 0).is_some(), "all are tried again");
    }

    #[test]
    fn what_was_not_prepared_gives_the_same_answer() {
        let three = NonZeroU32::new(3).expect("not zero");
        let needs = Needs { ring: true, sessions: true, subsets: true, scores: true };
        let (prepared, plain) =
            (roster(&[1, 2, 3, 4], None, &needs), roster(&[1, 2, 3, 4], None, &Needs::default()));
        for key in 0..50u32 {
            let key = key.to_string();
            assert_eq!(prepared.by_hash(key.as_bytes()), plain.by_hash(key.as_bytes()));
            let subset = |roster: &Roster| roster.by_subset(key.as_bytes(), three, |_| 1);
            assert_eq!(subset(&prepared), subset(&plain));
        }
    }

    #[test]
    fn nobody_has_no_turn() {
        let empty = roster(&[], None, &Needs::default());
        assert_eq!(empty.by_hash(b"key"), None);
        assert_eq!(empty.by_subset(b"key", NonZeroU32::MIN, |_| 0), None);
        assert_eq!(empty.by_chance(|_| 0), None);
        assert_eq!(empty.by_score(&[], 0, |_| 0), None);
    }
}
