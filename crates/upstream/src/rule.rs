//! How a location chooses among the endpoints of an upstream, where they do not just take turns.

use super::Group;
use balance::{Needs, upstream_key};
use model::policy::{Affinity, Algorithm, Balance, Canary, CanaryRules};
use std::sync::Arc;

/// How a location chooses among the endpoints of an upstream.
#[derive(Debug)]
pub struct Rule {
    /// Where no session decides.
    pub algorithm: Algorithm,
    /// The sessions of clients.
    pub session: Option<Session>,
}

/// The sessions of clients at an upstream.
#[derive(Debug)]
pub struct Session {
    /// The cookie.
    pub affinity: Arc<Affinity>,
    /// The part of its value that names the upstream.
    pub upstream_key: String,
}

/// The canary of a location.
#[derive(Debug)]
pub struct Alternative {
    /// Its endpoints.
    pub group: Arc<Group>,
    /// Who goes there.
    pub rules: Arc<CanaryRules>,
    /// How it chooses among them; none: in turns.
    pub rule: Option<Box<Rule>>,
}

impl Rule {
    /// The rule of a location for `group`; none if its endpoints just take turns.
    pub fn compile(balance: &Balance, group: &Group) -> Option<Box<Self>> {
        if *balance == Balance::default() {
            return None;
        }
        let session = balance.affinity.clone().map(|affinity| {
            let id = group.id.as_str();
            // Rules do not share sessions, though they lead to the same upstream.
            let upstream_key = match &affinity.of_rule {
                Some(of_rule) => upstream_key(&format!("{} {id}", of_rule.rule)),
                None => upstream_key(id),
            };
            Session { affinity, upstream_key }
        });
        let rule = Self { algorithm: balance.algorithm.clone(), session };
        group.prepare(&rule);
        Some(Box::new(rule))
    }

    /// What has to be computed of the endpoints.
    pub(super) fn needs(&self) -> Needs {
        let sessions = self.session.is_some();
        let mut needs = Needs { sessions, ..Needs::default() };
        match &self.algorithm {
            _ if sessions => {}
            Algorithm::RoundRobin | Algorithm::Random => {}
            Algorithm::Ewma => needs.scores = true,
            Algorithm::Hash(_) => needs.ring = true,
            Algorithm::HashSubset(..) => needs.subsets = true,
        }
        needs
    }
}

impl Alternative {
    /// The canary of a location, whose endpoints are those of `group`.
    pub fn compile(canary: &Canary, group: Arc<Group>) -> Box<Self> {
        let rule = Rule::compile(&canary.balance, &group);
        Box::new(Self { group, rules: Arc::clone(&canary.rules), rule })
    }
}
