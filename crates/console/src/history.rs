//! What changed, generation by generation, and since when there have been which problems.

use crate::difference::{Difference, differences};
use controller::Known;
use model::{Changes, Problem};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Generations that are kept.
pub(crate) const GENERATIONS: usize = 200;
/// Differences of one generation that are kept.
pub(crate) const DIFFERENCES: usize = 40;

/// What changed so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The newest first.
    generations: VecDeque<Generation>,
    /// When each problem appeared, by its hash.
    since: HashMap<u64, f64>,
    refused: Option<Arc<str>>,
}

/// What became of a round of the loop, worked out before anybody has to wait for it.
#[derive(Debug)]
pub(crate) struct Round {
    changes: Changes,
    /// The first of them, and whether there are more.
    differences: (Vec<Difference>, bool),
    /// Problems by their hashes.
    gone: Vec<u64>,
    appeared: Vec<u64>,
    refused: Option<Arc<str>>,
}

/// A change that came into force, or one that was refused.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Generation {
    /// Its number; that of the one before where it was refused.
    pub(crate) generation: u64,
    /// Since when it is in force, in seconds since 1970.
    pub(crate) at: f64,
    /// Why the engine refused it; what was in force before stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// Hosts, upstreams, certificates and stream ports that differ.
    pub(crate) hosts: usize,
    /// Upstreams that differ.
    pub(crate) upstreams: usize,
    /// Certificates that differ.
    pub(crate) certificates: usize,
    /// What it changed, 40 of them at most.
    pub(crate) differences: Vec<Difference>,
    /// Whether there were more.
    pub(crate) more: bool,
}

impl History {
    /// Notes what became of a round of the loop.
    pub(crate) fn note(&mut self, round: Round, generation: u64, at: f64) {
        for gone in round.gone {
            self.since.remove(&gone);
        }
        self.since.extend(round.appeared.into_iter().map(|appeared| (appeared, at)));
        if round.refused.is_some() && round.refused != self.refused {
            let refused = round.refused.as_ref().map(crate::query::told);
            self.add(Generation { refused, ..Generation::of(generation, at, &Changes::default()) });
        }
        self.refused = round.refused;
        if round.changes.is_empty() {
            return;
        }
        let (differences, more) = round.differences;
        let generation = Generation::of(generation, at, &round.changes);
        self.add(Generation { differences, more, ..generation });
    }

    fn add(&mut self, generation: Generation) {
        self.generations.push_front(generation);
        self.generations.truncate(GENERATIONS);
    }

    /// When a problem appeared.
    pub(crate) fn since(&self, problem: &Problem) -> Option<f64> {
        self.since.get(&hash(problem)).copied()
    }

    /// What changed, the newest first.
    pub(crate) fn generations(&self) -> &VecDeque<Generation> {
        &self.generations
    }

    /// The newest one.
    pub(crate) fn generation(&self) -> u64 {
        self.generations.front().map_or(0, |newest| newest.generation)
    }
}

impl Round {
    /// Compares what was known with what is. That takes as long as there are differences: it is nothing for a thread
    /// that others need.
    pub(crate) fn between(before: &Known, now: &Known) -> Self {
        let changes = Changes::between(&before.serving, &now.serving);
        let differences = if before.is_serving() {
            differences(&before.serving, &now.serving, &changes, DIFFERENCES)
        } else {
            // The first one is everything.
            (Vec::new(), false)
        };
        let (mut gone, mut appeared) = (Vec::new(), Vec::new());
        for (old, new) in before.problems.differences(&now.problems) {
            gone.extend(old.iter().filter(|problem| !new.contains(problem)).map(hash));
            appeared.extend(new.iter().filter(|problem| !old.contains(problem)).map(hash));
        }
        Self { changes, differences, gone, appeared, refused: now.refused.clone() }
    }
}

impl Generation {
    fn of(generation: u64, at: f64, changes: &Changes) -> Self {
        Self {
            generation,
            at,
            refused: None,
            hosts: changes.servers.len(),
            upstreams: changes.upstreams.len(),
            certificates: changes.certificates.len(),
            differences: Vec::new(),
            more: false,
        }
    }
}

fn hash(problem: &Problem) -> u64 {
    let mut hasher = DefaultHasher::new();
    problem.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{GENERATIONS, History, Round};
    use controller::Known;
    use model::{Configuration, Kind, Origin, Problem, Server, ServerName, Severity};
    use std::sync::Arc;

    fn serving(hosts: &[&str]) -> Known {
        let server = |name: &&str| {
            let name = ServerName::new(*name);
            (name.clone(), Arc::new(Server::new(name)))
        };
        let servers = hosts.iter().map(server).collect();
        Known { serving: Configuration { servers, ..Configuration::default() }, ..Known::default() }
    }

    #[test]
    fn generations_have_a_bound_and_the_newest_is_first() {
        let (mut history, mut before) = (History::default(), Known::default());
        for number in 0..300_u64 {
            let now = serving(&["_", &format!("h{number}.test")]);
            history.note(Round::between(&before, &now), number, number as f64);
            before = now;
        }
        assert_eq!(history.generations().len(), GENERATIONS);
        let newest = &history.generations()[0];
        assert_eq!((newest.generation, newest.hosts, newest.differences.len()), (299, 2, 2));
        history.note(Round::between(&before, &before.clone()), 300, 300.0);
        assert_eq!(history.generation(), 299, "nothing changed");
        let refused = Known { refused: Some("no".into()), ..before.clone() };
        history.note(Round::between(&before, &refused), 299, 301.0);
        history.note(Round::between(&refused, &refused), 299, 302.0);
        assert_eq!(history.generations()[0].refused.as_deref(), Some("no"));
        assert_eq!(history.generations()[1].generation, 299);
    }

    #[test]
    fn a_problem_has_the_time_at_which_it_appeared_until_it_goes() {
        let problem = Problem {
            origin: Origin::new(Kind::Ingress, "a", "b"),
            key: None,
            severity: Severity::Error,
            message: "m".to_owned().into(),
        };
        let none = Known::default();
        let problems = none.problems.with(std::slice::from_ref(&problem));
        let one = Known { problems, ..Known::default() };
        let mut history = History::default();
        history.note(Round::between(&none, &one), 1, 5.0);
        history.note(Round::between(&one, &one), 1, 6.0);
        assert_eq!(history.since(&problem), Some(5.0));
        history.note(Round::between(&one, &none), 1, 7.0);
        assert_eq!(history.since(&problem), None);
    }
}
