//! What was found to be wrong is not tried again until it, or what it was judged beside, is another one.

use super::{Fault, LeftOut, parts};
use crate::conf::Owner;
use model::policy::{Policy, RawServer};
use model::{Configuration, Global, Location, Server, ServerName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who was found to be wrong, and beside what.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    beside: Beside,
    found: BTreeMap<Owner, (Asked, Fault)>,
    undecided: BTreeSet<Owner>,
}

/// What everybody is judged beside: the settings, and all that anybody says in nginx's own words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Beside {
    global: Arc<Global>,
    raw: Vec<Arc<Policy>>,
    of_hosts: Vec<Arc<RawServer>>,
}

/// What somebody asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Paths: the host, whether it matches by regular expressions, and what is there.
    Paths(Vec<(ServerName, bool, Arc<Location>)>),
    /// What a host has as a whole.
    Whole(Box<Server>),
}

/// The same of all.
pub(super) type AllAsked = BTreeMap<Owner, Asked>;

impl Verdicts {
    /// What is known to be wrong with a Configuration.
    pub(crate) fn about(&self, next: &Configuration) -> LeftOut {
        if self.found.is_empty() || self.beside != Beside::of(next) {
            return LeftOut::new();
        }
        let asked = asked(next);
        let still = self.found.iter().filter(|(owner, (before, _))| {
            let now = asked.get(*owner);
            now == Some(before)
        });
        still.map(|(owner, (_, fault))| (owner.clone(), fault.clone())).collect()
    }

    /// Whom there was no time for. They may be wrong more likely than others.
    pub(crate) fn undecided(&self) -> &BTreeSet<Owner> {
        &self.undecided
    }

    /// Remembers what was found out about a Configuration, and nothing of the one before.
    pub(crate) fn remember(&mut self, next: &Configuration, left_out: &LeftOut) {
        self.found.clear();
        let undecided = left_out.iter().filter(|(_, fault)| !fault.decided);
        self.undecided = undecided.map(|(owner, _)| owner.clone()).collect();
        let is_ingress = |owner: &Owner| owner.host.is_some() || owner.key.is_none();
        let mut found =
            left_out.iter().filter(|(owner, it)| it.decided && is_ingress(owner)).peekable();
        if found.peek().is_none() {
            return;
        }
        self.beside = Beside::of(next);
        let mut asked = asked(next);
        for (owner, fault) in found {
            if let Some(asked) = asked.remove(owner) {
                self.found.insert(owner.clone(), (asked, fault.clone()));
            }
        }
    }
}

impl Beside {
    fn of(configuration: &Configuration) -> Self {
        let locations = configuration.servers.values().flat_map(|server| server.locations.iter());
        let raw = locations.filter(|location| location.policy.raw.is_some());
        let raw = raw.map(|location| location.policy.clone()).collect();
        let servers = configuration.servers.values();
        let of_hosts = servers.filter_map(|server| server.raw.clone()).collect();
        Self { global: configuration.global.clone(), raw, of_hosts }
    }
}

/// What every Ingress asks for, and of what hosts have as a whole all that they have.
pub(super) fn asked(configuration: &Configuration) -> AllAsked {
    let mut all = AllAsked::new();
    for (name, server) in &configuration.servers {
        for location in &server.locations {
            let Some(origin) = location.origin.as_deref() else { continue };
            let owner = Owner::from(origin);
            let asked = all.entry(owner).or_insert_with(|| Asked::Paths(Vec::new()));
            if let Asked::Paths(paths) = asked {
                paths.push((name.clone(), server.regex, location.clone()));
            }
        }
        for part in parts(server) {
            let whole = Server { certificate: None, locations: Vec::new(), ..(**server).clone() };
            all.insert(part, Asked::Whole(Box::new(whole)));
        }
    }
    all
}
