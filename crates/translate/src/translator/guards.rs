//! Guards of the ConfigMap that are not understood any more: the text before stays in force until it is mended, as
//! ingress-nginx keeps its configuration then, and where there was none there is none. Where nothing is known from
//! before, at a start, they close everything, or nobody is believed, and everything is closed if somebody is to be.
//! A ConfigMap of which nothing can be read, and nothing is known from before, closes everything, too; and so does one
//! that is not there at a start, where it may be in a file of which nothing can be read.

use super::Finder;
use crate::Options;
use crate::annotations::{GLOBAL_AUTH, global_auth};
use crate::config_map;
use crate::problems::{ALL_CLOSED, Ledger};
use crate::secret_files::SecretFiles;
use crate::settings::{AnyKey, OnBad, Scope, Settings, normalise, quote};
use model::{Kind, Origin, Problem, Severity, Why, hide_in_sentence};
use objects::{ConfigMap, Malformed, ObjectKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const STAYS: &str = "the text before stays in force until it is mended; a Pod that starts meanwhile does not know it, \
                     and";
const NONE: &str = "there was none before, so there is none until it is mended; a Pod that starts meanwhile does not \
                    know that, and";
/// What a Pod that starts does with a guard that cannot be read.
const CLOSED: &str = "answers 503";
/// The same where it says who is believed.
const DISBELIEVES: &str = "answers 503 if it is to believe anybody";

/// The last good texts of what guards everything, and what is used in place of a ConfigMap with worse ones.
#[derive(Debug, Default)]
pub(super) struct Guards {
    seen: Option<Arc<ConfigMap>>,
    instead: Option<Arc<ConfigMap>>,
    /// By key; none where it was not written, which is another thing than nothing for who is believed.
    good: BTreeMap<&'static str, Option<String>>,
    /// Whether it is there or may be, cannot be read, and no good version of it is known.
    unread: bool,
    /// A Snapshot was seen before.
    has_begun: bool,
}

impl Guards {
    /// Why everything is closed, where nobody knows what the ConfigMap guards.
    pub(super) fn denied(&self) -> Option<String> {
        self.unread.then(|| "the ConfigMap that --configmap names could not be read".to_owned())
    }

    /// Whether the ConfigMap is there and cannot be read. A file in which somebody mends it, or had begun to before
    /// this start, may be so broken that nobody can tell what is in it: that opens nothing.
    fn is_unread(&self, snapshot: &Snapshot, key: &ObjectKey) -> bool {
        Malformed::is_among(&snapshot.malformed, objects::Kind::ConfigMap, key)
            || (self.unread || !self.has_begun) && Malformed::may_be_any(&snapshot.malformed)
    }

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
        let unread = now.is_none() && self.is_unread(&snapshot, key);
        self.has_begun = true;
        if now != self.seen || unread != self.unread {
            self.instead = None;
            self.unread = unread;
            let mut problems = Vec::new();
            match &now {
                // Whoever makes it, or makes it anew, says what is to be guarded for the first time.
                None => {
                    self.good.clear();
                    problems.push(if unread { unreadable(key, &snapshot) } else { gone(key) });
                }
                Some(now) => {
                    // Made anew between two Snapshots, it is as where one came in between without it.
                    if self.seen.as_ref().is_some_and(|seen| seen.meta.uid != now.meta.uid) {
                        self.good.clear();
                    }
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
            let said = text.as_deref().filter(|text| !text.is_empty());
            match (said.and_then(|said| key.fault(said)), self.good.get(name)) {
                (None, _) => drop(self.good.insert(name, text)),
                (Some(wrong), Some(before)) => {
                    let wrong = format!("{} {wrong}", quote(said.unwrap_or_default()));
                    let starts = if closes { CLOSED } else { DISBELIEVES };
                    problems.push(kept(used, name, &wrong, (before, starts)));
                    put(used, name, before);
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
        match global_auth(&mut Settings::of_config_map(scope)) {
            Ok(_) => {
                for name in names_of_global_auth() {
                    self.good.insert(name, used.data.get(name).cloned());
                }
                None
            }
            Err(wrong) => {
                let before = self.good.get(url)?;
                for name in names_of_global_auth() {
                    put(used, name, self.good.get(name).unwrap_or(&None));
                }
                Some(kept(used, url, &wrong, (before, CLOSED)))
            }
        }
    }
}

/// It was there. (Where it never was, nobody knows whether it says anything: that is told at the start.)
fn gone(key: &ObjectKey) -> Problem {
    Problem {
        origin: Origin::new(Kind::ConfigMap, key.namespace.clone(), key.name.clone()),
        key: None,
        severity: Severity::Error,
        message: "it is gone, and --configmap names it: defaults count, and what it guarded is open; create it again".into(),
    }
}

/// It is there, and that is all that is known of it; or it is in a file of which nothing is known.
fn unreadable(key: &ObjectKey, snapshot: &Snapshot) -> Problem {
    let is_there = Malformed::is_among(&snapshot.malformed, objects::Kind::ConfigMap, key);
    let what = if is_there {
        "it could not be read, and --configmap names it"
    } else {
        "it is not to be seen, --configmap names it, and there is a file of which nothing can be read"
    };
    let message =
        format!("{what}: {ALL_CLOSED} until it is mended, since nobody knows what it guards");
    Problem {
        origin: Origin::new(Kind::ConfigMap, key.namespace.clone(), key.name.clone()),
        key: None,
        severity: Severity::Error,
        message: Why::AllClosed.says(message),
    }
}

/// The keys of the controller's ConfigMap that guard something, or say who is believed, and that it says no more.
pub fn guards_gone(before: &ConfigMap, now: &ConfigMap) -> Vec<&'static str> {
    let url = GLOBAL_AUTH[0].about().name;
    let says = |map: &ConfigMap, name: &str| {
        map.data.get(name).is_some_and(|text| !text.trim().is_empty())
    };
    let names: BTreeSet<&str> = guards().map(|(name, _)| name).chain([url]).collect();
    names.into_iter().filter(|name| says(before, name) && !says(now, name)).collect()
}

/// The keys of the ConfigMap that close everything where they are not understood, or say who is believed.
fn guards() -> impl Iterator<Item = (&'static str, &'static dyn AnyKey)> {
    let is_one = |key: &dyn AnyKey| matches!(key.about().on_bad, OnBad::Deny | OnBad::Disbelieve);
    let guards = config_map::keys().filter(move |(_, key)| is_one(*key));
    guards.filter_map(|(_, key)| Some((key.about().in_config_map()?, key)))
}

/// Those that belong to `global-auth-url`, itself among them.
fn names_of_global_auth() -> impl Iterator<Item = &'static str> {
    GLOBAL_AUTH.iter().filter_map(|key| key.about().in_config_map())
}

/// Has a key say this, or not be there.
fn put(config_map: &mut ConfigMap, name: &str, text: &Option<String>) {
    match text {
        Some(text) => config_map.data.insert(name.to_owned(), text.clone()),
        None => config_map.data.remove(name),
    };
}

/// A guard that cannot be read, with its text before; `starts` says what a Pod does that starts meanwhile.
fn kept(
    config_map: &ConfigMap,
    name: &str,
    wrong: &str,
    (before, starts): (&Option<String>, &str),
) -> Problem {
    let is_none = before.as_ref().is_none_or(|text| text.trim().is_empty());
    let stays = if is_none { NONE } else { STAYS };
    let key = &config_map.meta.key;
    Problem {
        origin: Origin::new(Kind::ConfigMap, Arc::clone(&key.namespace), Arc::clone(&key.name)),
        key: Some(name.to_owned()),
        severity: Severity::Error,
        message: format!("{}; {stays} {starts}", hide_in_sentence(wrong)).into(),
    }
}
