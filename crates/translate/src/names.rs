//! What leads to a host besides its own name, where several hosts may want the same: aliases, and the name with or
//! without `www.` that is redirected to it (compat/behaviour.md section 4).

use crate::ingress::{Draft, Rank, Standing, origin};
use kubernetes::objects::ObjectKey;
use model::{Alias, Problem, Server, ServerName, Severity, Template};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Drafts = BTreeMap<Rank, Arc<Draft>>;

/// The names that a host wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Its aliases, with the Ingress that asks for them.
    aliases: Option<(ObjectKey, Vec<Alias>)>,
    /// The name that is to be redirected to it, with the Ingress that asks first.
    www: Option<(ObjectKey, ServerName)>,
}

/// The Ingresses with rules for a host.
fn taken<'a>(host: &ServerName, drafts: &'a Drafts) -> impl Iterator<Item = &'a Arc<Draft>> {
    drafts
        .values()
        .filter(move |draft| draft.standing == Standing::Taken && draft.hosts.contains_key(host))
}

fn key(draft: &Draft) -> ObjectKey {
    draft.ingress.meta.key.clone()
}

impl Wishes {
    /// What the Ingresses of a host ask for: the first one with aliases gives them all.
    pub(crate) fn of(host: &ServerName, drafts: &Drafts) -> Self {
        let first = taken(host, drafts).find(|draft| !draft.names.aliases.is_empty());
        let own = host.to_string();
        let aliases = first.map(|draft| {
            let others = draft.names.aliases.iter().filter(|alias| alias.to_string() != own);
            (key(draft), others.cloned().collect())
        });
        let asks = taken(host, drafts).find(|draft| draft.names.www);
        let www = asks.and_then(|draft| Some((key(draft), counterpart(host)?)));
        Self { aliases, www }
    }

    fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.aliases.iter().flat_map(|(_, aliases)| aliases)
    }
}

/// The host with `www.`, or without it. The catch-all and wildcards have none.
fn counterpart(host: &ServerName) -> Option<ServerName> {
    let text = host.as_str();
    if *host == ServerName::catch_all() || text.starts_with('*') {
        return None;
    }
    match text.strip_prefix("www.") {
        Some(bare) => Some(ServerName::new(bare)),
        None => Some(ServerName::new(format!("www.{text}"))),
    }
}

/// Who has a name that a host wants.
#[derive(Debug)]
enum Holder<'a> {
    /// A host of that name.
    Host,
    /// The host that it is redirected to.
    Redirect(&'a ServerName),
    /// The host that it is an alias of.
    Alias(&'a ServerName),
}

/// All hosts with the names they want: a small index, so that a change touches those only that want the same.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    wishes: BTreeMap<ServerName, Wishes>,
    /// By the alias as text.
    aliases: BTreeMap<String, BTreeSet<ServerName>>,
    redirects: BTreeMap<ServerName, BTreeSet<ServerName>>,
}

impl Registry {
    /// Takes what a host wants now, or that it is gone; returns the hosts that may have other names now.
    pub(crate) fn follow(
        &mut self,
        host: &ServerName,
        now: Option<Wishes>,
    ) -> BTreeSet<ServerName> {
        let before = self.wishes.get(host).cloned();
        let mut touched = BTreeSet::new();
        if before == now {
            return touched;
        }
        if before.is_some() != now.is_some() {
            self.rivals(host.as_str(), &mut touched);
        }
        let (before, wishes) = (before.unwrap_or_default(), now.clone().unwrap_or_default());
        for alias in before.aliases() {
            let text = alias.to_string();
            self.rivals(&text, &mut touched);
            remove(&mut self.aliases, &text, host);
        }
        for alias in wishes.aliases() {
            let text = alias.to_string();
            self.rivals(&text, &mut touched);
            self.aliases.entry(text).or_default().insert(host.clone());
        }
        if let Some((_, name)) = &before.www {
            self.rivals(name.as_str(), &mut touched);
            remove(&mut self.redirects, name, host);
        }
        if let Some((_, name)) = &wishes.www {
            self.rivals(name.as_str(), &mut touched);
            self.redirects.entry(name.clone()).or_default().insert(host.clone());
        }
        match now {
            Some(now) => self.wishes.insert(host.clone(), now),
            None => self.wishes.remove(host),
        };
        touched
    }

    /// Everybody who wants a name.
    fn rivals(&self, name: &str, found: &mut BTreeSet<ServerName>) {
        found.extend(self.aliases.get(name).into_iter().flatten().cloned());
        found.extend(self.redirects.get(&ServerName::new(name)).into_iter().flatten().cloned());
    }

    /// Who has a name: the host itself, else the first of those it is to be redirected to, else the first of those
    /// it is to be an alias of. nginx reads redirects first, then servers by name, and the first one keeps a name.
    fn holder(&self, name: &str) -> Option<Holder<'_>> {
        let host = ServerName::new(name);
        if host == ServerName::catch_all() || self.wishes.contains_key(&host) {
            return Some(Holder::Host);
        }
        let redirect = self.redirects.get(&host).and_then(BTreeSet::first);
        let alias = self.aliases.get(name).and_then(BTreeSet::first);
        redirect.map(Holder::Redirect).or_else(|| alias.map(Holder::Alias))
    }

    /// Gives a server the names that it may have; what it wants in vain is a problem.
    /// `prefix` is that of annotations.
    pub(crate) fn name(&self, server: &mut Server, drafts: &Drafts, prefix: &str) -> Vec<Problem> {
        server.app_root = app_root(server, drafts);
        let Some(wishes) = self.wishes.get(&server.name) else { return Vec::new() };
        let mut problems = Vec::new();
        if let Some((ingress, aliases)) = &wishes.aliases {
            for alias in aliases {
                match self.holder(&alias.to_string()) {
                    Some(Holder::Alias(host)) if *host == server.name => {
                        server.aliases.push(alias.clone());
                    }
                    holder => problems.extend(self.refused(ingress, alias, holder)),
                }
            }
            problems.extend(ignored(&server.name, drafts, ingress, aliases));
        }
        if let Some((ingress, name)) = &wishes.www {
            match self.holder(name.as_str()) {
                Some(Holder::Redirect(host)) if *host == server.name => {
                    server.www = Some(name.clone());
                }
                _ => {
                    let message =
                        format!("{name} is a host itself and not redirected; remove one of them");
                    problems.push(problem(ingress, "from-to-www-redirect", message));
                }
            }
        }
        for problem in &mut problems {
            problem.key = problem.key.take().map(|name| format!("{prefix}/{name}"));
        }
        problems
    }

    fn refused(
        &self,
        ingress: &ObjectKey,
        alias: &Alias,
        holder: Option<Holder<'_>>,
    ) -> Option<Problem> {
        let who = match holder? {
            Holder::Host => "a host itself, which has it".to_owned(),
            Holder::Redirect(host) => format!("redirected to {host} (from-to-www-redirect)"),
            Holder::Alias(host) => {
                // One Ingress with several hosts: its first host has the names, which is no mistake.
                let same = self.wishes.get(host).and_then(|wishes| wishes.aliases.as_ref());
                if same.is_some_and(|(other, _)| other == ingress) {
                    return None;
                }
                format!("an alias of {host}, which has it")
            }
        };
        let message = format!("{alias} is {who}; remove it from one of them");
        Some(problem(ingress, "server-alias", message))
    }
}

fn remove<K, Q>(all: &mut BTreeMap<K, BTreeSet<ServerName>>, name: &Q, host: &ServerName)
where
    K: Ord + Borrow<Q>,
    Q: Ord + ?Sized,
{
    if let Some(hosts) = all.get_mut(name) {
        hosts.remove(host);
        if hosts.is_empty() {
            all.remove(name);
        }
    }
}

/// Aliases of later Ingresses of the same host do not count.
fn ignored<'a>(
    host: &'a ServerName,
    drafts: &'a Drafts,
    first: &'a ObjectKey,
    aliases: &'a [Alias],
) -> impl Iterator<Item = Problem> + 'a {
    let later = taken(host, drafts).filter(move |draft| draft.ingress.meta.key != *first);
    later.filter_map(move |draft| {
        let own = host.to_string();
        let mut wanted = draft.names.aliases.iter();
        let lost = wanted.find(|alias| !aliases.contains(alias) && alias.to_string() != own)?;
        let message = format!(
            "{lost} is ignored: the aliases of host {host} are those of Ingress {}/{}, which comes first; list them there",
            first.namespace, first.name
        );
        Some(problem(&draft.ingress.meta.key, "server-alias", message))
    })
}

fn problem(ingress: &ObjectKey, annotation: &str, message: String) -> Problem {
    let key = Some(annotation.to_owned());
    Problem { origin: origin(ingress), key, severity: Severity::Warning, message }
}

/// Of several locations with `app-root` the one with the longest path decides, and of two as long the greater one
/// (compat/decisions.md: parity).
fn app_root(server: &Server, drafts: &Drafts) -> Option<Template> {
    let asking = taken(&server.name, drafts)
        .filter_map(|draft| Some((origin(&draft.ingress.meta.key), draft.app_root.as_ref()?)));
    let asking: BTreeMap<_, _> = asking.collect();
    if asking.is_empty() {
        return None;
    }
    let rank = |path: &'_ str| (path.len(), path.to_owned());
    let mut best: Option<(&str, &Template)> = None;
    for location in &server.locations {
        let own = location.origin.as_ref().and_then(|origin| asking.get(origin));
        if let Some(target) = own
            && best.is_none_or(|(path, _)| rank(&location.path) > rank(path))
        {
            best = Some((&location.path, target));
        }
    }
    best.map(|(_, target)| target.clone())
}
