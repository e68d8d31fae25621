//! Which Ingresses ask for which aliases, and for which of their hosts. One of them may have thousands of both, so
//! hosts and aliases are kept by Ingress, never by each other. Of its hosts the first has the aliases that nobody else
//! has.

use crate::ingress::{Age, Draft};
use model::{Alias, ServerName};
use objects::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who asks for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) ingress: ObjectKey,
    pub(crate) age: Age,
}

impl Asker {
    /// An Ingress.
    pub(crate) fn of(draft: &Draft) -> Self {
        Self { ingress: draft.ingress.meta.key.clone(), age: draft.age() }
    }
}

/// The aliases that one version of an Ingress asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) asker: Asker,
    pub(crate) aliases: Arc<[Alias]>,
}

impl Asked {
    /// What an Ingress asks for.
    pub(crate) fn of(draft: &Draft) -> Self {
        Self { asker: Asker::of(draft), aliases: Arc::clone(&draft.names.aliases) }
    }
}

/// Whether it is more than one host's name.
fn is_wild(alias: &Alias) -> bool {
    !matches!(alias, Alias::Name(_))
}

/// Whether it is the same version: each host is asked, which must not go through all aliases.
impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.aliases, &other.aliases) && self.asker == other.asker
    }
}

impl Eq for Asked {}

/// An Ingress, with the hosts of which it is the first that asks for aliases.
#[derive(Debug)]
struct OfIngress {
    asked: Asked,
    hosts: BTreeSet<ServerName>,
}

/// What others notice of it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) asked: Asked,
    pub(crate) first: ServerName,
    /// Whether that is its only host.
    pub(crate) alone: bool,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        let same = (&self.first, self.alone) == (&other.first, other.alone);
        let (asked, others) = (&self.asked, &other.asked);
        same && asked.asker == others.asker && asked.aliases == others.aliases
    }
}

/// What differs since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Aliases that somebody wants or wanted.
    pub(crate) names: BTreeSet<String>,
    /// Hosts that have or had them.
    pub(crate) hosts: BTreeSet<ServerName>,
    /// Whether there are names among them that are more than one host's.
    pub(crate) wild: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct AliasAskers {
    all: BTreeMap<ObjectKey, OfIngress>,
    /// By the alias as text.
    by_alias: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Those that want names which are more than one host's.
    wild: BTreeSet<ObjectKey>,
    /// Those to which hosts came or of which they went, as they were before.
    before: BTreeMap<ObjectKey, Option<Seen>>,
}

impl AliasAskers {
    /// Takes a host of which an Ingress is the first to ask.
    pub(crate) fn add(&mut self, host: &ServerName, asked: &Asked) {
        self.remember(&asked.asker.ingress);
        let of_ingress = || OfIngress { asked: asked.clone(), hosts: BTreeSet::new() };
        let ours = self.all.entry(asked.asker.ingress.clone()).or_insert_with(of_ingress);
        ours.asked = asked.clone();
        ours.hosts.insert(host.clone());
    }

    /// Takes note that an Ingress is that of a host no more.
    pub(crate) fn remove(&mut self, host: &ServerName, asked: &Asked) {
        let key = &asked.asker.ingress;
        self.remember(key);
        if let Some(ours) = self.all.get_mut(key) {
            ours.hosts.remove(host);
            if ours.hosts.is_empty() {
                self.all.remove(key);
            }
        }
    }

    fn remember(&mut self, ingress: &ObjectKey) {
        if !self.before.contains_key(ingress) {
            let seen = self.seen(ingress);
            self.before.insert(ingress.clone(), seen);
        }
    }

    /// What others notice of an Ingress.
    pub(crate) fn seen(&self, ingress: &ObjectKey) -> Option<Seen> {
        let ours = self.all.get(ingress)?;
        let (asked, first) = (ours.asked.clone(), ours.hosts.first()?.clone());
        Some(Seen { asked, first, alone: ours.hosts.len() == 1 })
    }

    /// Brings what is asked below up to date.
    pub(crate) fn settle(&mut self) -> Moved {
        let mut moved = Moved::default();
        for (key, before) in std::mem::take(&mut self.before) {
            let now = self.seen(&key);
            if before == now {
                continue;
            }
            for alias in before.iter().flat_map(|seen| seen.asked.aliases.iter()) {
                let text = alias.to_string();
                if let Some(askers) = self.by_alias.get_mut(&text) {
                    askers.remove(&key);
                    if askers.is_empty() {
                        self.by_alias.remove(&text);
                    }
                }
                moved.names.insert(text);
            }
            for alias in now.iter().flat_map(|seen| seen.asked.aliases.iter()) {
                let text = alias.to_string();
                self.by_alias.entry(text.clone()).or_default().insert(key.clone());
                moved.names.insert(text);
            }
            let wild = |seen: &Option<Seen>| {
                seen.iter().any(|seen| seen.asked.aliases.iter().any(is_wild))
            };
            moved.wild |= wild(&before) || wild(&now);
            if wild(&now) {
                self.wild.insert(key)
            } else {
                self.wild.remove(&key)
            };
            moved.hosts.extend([before, now].into_iter().flatten().map(|seen| seen.first));
        }
        moved
    }

    /// The Ingresses that ask for an alias, each with its first host.
    pub(crate) fn of(&self, alias: &str) -> impl Iterator<Item = (&ServerName, &Asker)> {
        let askers = self.by_alias.get(alias).into_iter().flatten();
        askers.filter_map(|key| self.first(key)).map(|(host, asked)| (host, &asked.asker))
    }

    /// The first hosts of those that ask for names which are more than one host's.
    pub(crate) fn wild_hosts(&self) -> impl Iterator<Item = &ServerName> {
        self.wild.iter().filter_map(|key| self.first(key)).map(|(host, _)| host)
    }

    /// Aliases that are more than one host's name, each with the first host of who asks for it. Its own name is no
    /// alias of a host.
    pub(crate) fn wild_aliases(&self) -> impl Iterator<Item = (&ServerName, &Asker, &Alias)> {
        let all = self.wild.iter().filter_map(|key| self.all.get(key));
        let all = all.filter_map(|ours| Some((ours, ours.hosts.first()?)));
        all.flat_map(|(ours, first)| {
            let own = (ours.hosts.len() == 1).then(|| first.to_string());
            let wild = ours.asked.aliases.iter().filter(|alias| is_wild(alias));
            let wild = wild.filter(move |alias| own.as_ref() != Some(&alias.to_string()));
            wild.map(move |alias| (first, &ours.asked.asker, alias))
        })
    }

    fn first(&self, ingress: &ObjectKey) -> Option<(&ServerName, &Asked)> {
        let ours = self.all.get(ingress)?;
        Some((ours.hosts.first()?, &ours.asked))
    }

    /// The first two aliases of a later Ingress that an earlier one does not ask for, as text.
    pub(crate) fn lost(&self, earlier: &ObjectKey, later: &Draft) -> Vec<String> {
        let texts = later.names.aliases.iter().map(ToString::to_string);
        let is_asked_for =
            |text: &String| self.by_alias.get(text).is_some_and(|askers| askers.contains(earlier));
        texts.filter(|text| !is_asked_for(text)).take(2).collect()
    }
}
