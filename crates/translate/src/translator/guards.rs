//! Guards of the ConfigMap that are not understood any more: the text before stays in force until it is mended, as
//! ingress-nginx keeps its configuration then. Where nothing is known from before, at a start, they close everything,
//! or nobody is believed, and everything is closed if somebody is to be.

use super::Finder;
use crate::Options;
use crate::annotations::{GLOBAL_AUTH, global_auth};
use crate::config_map;
use crate::problems::Ledger;
use crate::secret_files::SecretFiles;
use crate::settings::{AnyKey, OnBad, Scope, Settings, normalise, quote};
use model::{Kind, Origin, Problem, Severity, hide_in_sentence};
use objects::{ConfigMap, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

const STAYS: &str = "the text before stays in force until it is mended; a Pod that starts meanwhile does not know it, \
                     and";
/// What a Pod that starts does with a guard that cannot be read.
const CLOSED: &str = "answers 503";
/// The same where it says who is believed.
const DISBELIEVES: &str = "answers 503 if it is to believe anybody";

/// The last good texts of what guards everything, and what is used in place of a ConfigMap with worse ones.
#[derive(Debug, Default)]
pub(super) struct Guards {
    seen: Option<Arc<ConfigMap>>,
    instead: Option<Arc<ConfigMap>>,
    good: BTreeMap<&'static str, String>,
}

impl Guards {
    /// The Snapshot with the last good text of each guard.
    pub(super) fn follow(
        &mut self,
        mut snapshot: Snapshot,
        options: &Options,
        files: &SecretFiles,
        ledger: &mut Ledger<Finder>,
    ) -> Snapshot {
        let Some(key) = &options.config_map else { return snapshot };
        let now = snapshot.config_maps.get(key).cloned();
        if now != self.seen {
            self.instead = None;
            let mut problems = Vec::new();
            match &now {
                None => self.good.clear(),
                Some(now) => {
                    let mut used = ConfigMap::clone(now);
                    problems = self.each(&mut used);
                    snapshot.config_maps.insert(key.clone(), Arc::new(used.clone()));
                    let scope = Scope::new(options, &snapshot, files);
                    problems.extend(self.global_auth(scope, &mut used));
                    self.instead = (!problems.is_empty()).then(|| Arc::new(used));
                    snapshot.config_maps.insert(key.clone(), Arc::clone(now));
                }
            }
            ledger.set(Finder::Guards, problems);
            self.seen = now;
        }
        if let Some(instead) = &self.instead {
            snapshot.config_maps.insert(key.clone(), Arc::clone(instead));
        }
        snapshot
    }

    /// Guards that are one text each.
    fn each(&mut self, used: &mut ConfigMap) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, key) in guards() {
            let closes = key.about().on_bad == OnBad::Deny;
            let text = used.data.get(name).map(|text| normalise(text).into_owned());
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                self.good.remove(name);
                continue;
            };
            match (key.fault(&text), self.good.get(name)) {
                (None, _) => drop(self.good.insert(name, text)),
                (Some(wrong), Some(before)) => {
                    let wrong = format!("{} {wrong}", quote(&text));
                    let starts = if closes { CLOSED } else { DISBELIEVES };
                    problems.push(kept(used, name, &wrong, starts));
                    used.data.insert(name.to_owned(), before.clone());
                }
                // Nobody knows what it was meant to say: everything is closed, or nobody is believed.
                (Some(_), None) => {}
            }
        }
        problems
    }

    /// The authenticator for all, whose keys belong together.
    fn global_auth(&mut self, scope: Scope<'_>, used: &mut ConfigMap) -> Option<Problem> {
        let url = GLOBAL_AUTH[0].about().name;
        let names = || GLOBAL_AUTH.iter().filter_map(|key| key.about().in_config_map());
        match global_auth(&mut Settings::of_config_map(scope)) {
            Ok(_) => {
                for name in names() {
                    match used.data.get(name) {
                        Some(text) => drop(self.good.insert(name, text.clone())),
                        None => drop(self.good.remove(name)),
                    }
                }
                None
            }
            Err(wrong) => {
                let before = self.good.get(url).filter(|text| !text.trim().is_empty());
                before?;
                for name in names() {
                    match self.good.get(name) {
                        Some(text) => drop(used.data.insert(name.to_owned(), text.clone())),
                        None => drop(used.data.remove(name)),
                    }
                }
                Some(kept(used, url, &wrong, CLOSED))
            }
        }
    }
}

/// The keys of the ConfigMap that close everything where they are not understood, or say who is believed.
fn guards() -> impl Iterator<Item = (&'static str, &'static dyn AnyKey)> {
    let is_one = |key: &dyn AnyKey| matches!(key.about().on_bad, OnBad::Deny | OnBad::Disbelieve);
    let guards = config_map::keys().filter(move |(_, key)| is_one(*key));
    guards.filter_map(|(_, key)| Some((key.about().in_config_map()?, key)))
}

/// A guard that cannot be read; `starts` says what a Pod does that starts meanwhile.
fn kept(config_map: &ConfigMap, name: &str, wrong: &str, starts: &str) -> Problem {
    let key = &config_map.meta.key;
    Problem {
        origin: Origin::new(Kind::ConfigMap, Arc::clone(&key.namespace), Arc::clone(&key.name)),
        key: Some(name.to_owned()),
        severity: Severity::Error,
        message: format!("{}; {STAYS} {starts}", hide_in_sentence(wrong)).into(),
    }
}
