//! What leads to a host besides its own name, where several hosts may want the same: aliases, and the name with or
//! without `www.` that is redirected to it (compat/behaviour.md section 4).

use crate::alias_askers::{AliasAskers, Asked, Asker, Seen};
use crate::host::{heard, heard_or_not, not_heard, owner, unheard};
use crate::ingress::{Age, Draft, Drafts, Standing, origin};
use crate::reach::{Reach, Reaches};
use crate::tenancy::{CrossNamespace, Item, remedy};
use model::{Alias, Message, Problem, Server, ServerName, Severity, Template, Why};
use objects::ObjectKey;
use std::borrow::Borrow;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The names that a host wants: most want none, and all are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Its aliases, with the Ingress that asks for them: shared by all hosts of that. Two where an older one than that
    /// is not taken.
    aliases: Box<[Asked]>,
    /// The name that is to be redirected to it, with the oldest Ingress that asks.
    www: Option<Box<(Asker, ServerName)>>,
    /// Whether it is: nobody who asks may be taken, so that the name is no more than kept.
    redirects: bool,
    /// The namespace that owns the host.
    owner: Option<Arc<str>>,
}

impl Wishes {
    /// What the Ingresses of a host ask for: the first one with aliases gives them all. So does the first of those that
    /// are not taken, if it is older, so that neither a mistake nor want of room gives a name away.
    pub(crate) fn of(host: &ServerName, drafts: &Drafts, allowed: CrossNamespace) -> Self {
        let by_age = |one: &&Arc<Draft>, other: &&Arc<Draft>| one.age().cmp(&other.age());
        let is_taken = |draft: &&Arc<Draft>| draft.standing == Standing::Taken;
        let aliasing = || {
            let all = heard_or_not(host, drafts, allowed, Item::Aliases);
            all.filter(|draft| !draft.names.aliases.is_empty())
        };
        let oldest = aliasing().min_by(by_age).filter(|oldest| !is_taken(oldest));
        let askers = oldest.into_iter().chain(aliasing().find(is_taken));
        let aliases = askers.map(|draft| Asked::of(draft)).collect();
        let asking = || {
            let all = heard_or_not(host, drafts, allowed, Item::Www);
            all.filter(|draft| draft.names.www)
        };
        let (asks, redirects) = (asking().min_by(by_age), asking().any(|draft| is_taken(&draft)));
        let www = asks.and_then(|draft| Some(Box::new((Asker::of(draft), counterpart(host)?))));
        Self { aliases, www, redirects, owner: owner(host, drafts).cloned() }
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
#[derive(Clone, Debug)]
enum Holder {
    /// A host of that name.
    Host,
    /// The host that it is redirected to.
    Redirect(ServerName),
    /// The host that it is an alias of.
    Alias(ServerName),
    /// A host with a wildcard, or the catch-all, of another namespace.
    Below(ServerName),
}

/// All hosts with the names they want: a small index, so that a change touches those only that want the same.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    wishes: BTreeMap<ServerName, Wishes>,
    /// Who asks for aliases. What those get that are more than one host's name hangs on each other and on wildcards.
    askers: AliasAskers,
    redirects: BTreeMap<ServerName, BTreeSet<ServerName>>,
    /// Names that another host may have now, and whether that holds for those of more than one host.
    moved: BTreeSet<String>,
    moved_wild: bool,
    /// What is found once for all who ask, until something changes: what wild aliases meet, and who has a name.
    reaches: OnceCell<Reaches<(Age, ServerName)>>,
    holders: RefCell<HashMap<String, Option<Holder>>>,
    /// Of two Ingresses, what the later one asks for and the earlier one does not.
    lost: RefCell<HashMap<(ObjectKey, ObjectKey), Vec<String>>>,
}

fn is_wildcard(host: &ServerName) -> bool {
    host.as_str().starts_with("*.") || *host == ServerName::catch_all()
}

impl Registry {
    /// Takes what a host wants now, or that it is gone.
    pub(crate) fn follow(&mut self, host: &ServerName, now: Option<Wishes>) {
        let before = self.wishes.get(host).cloned();
        if before == now {
            return;
        }
        if before.is_some() != now.is_some() {
            self.moved.insert(host.to_string());
        }
        let (before, wishes) = (before.unwrap_or_default(), now.clone().unwrap_or_default());
        self.moved_wild |= before.owner != wishes.owner && is_wildcard(host);
        if before.aliases != wishes.aliases {
            before.aliases.iter().for_each(|asked| self.askers.remove(host, asked));
            wishes.aliases.iter().for_each(|asked| self.askers.add(host, asked));
        }
        if let Some((_, name)) = before.www.as_deref() {
            remove(&mut self.redirects, name, host);
            self.moved.insert(name.to_string());
        }
        if let Some((_, name)) = wishes.www.as_deref() {
            self.redirects.entry(name.clone()).or_default().insert(host.clone());
            self.moved.insert(name.to_string());
        }
        match now {
            Some(now) => self.wishes.insert(host.clone(), now),
            None => self.wishes.remove(host),
        };
    }

    /// The hosts that may have other names since this was asked last: those that want what a host followed since wants
    /// or wanted, of those that one Ingress names the first.
    pub(crate) fn touched(&mut self) -> BTreeSet<ServerName> {
        let moved = self.askers.settle();
        self.moved.extend(moved.names);
        self.moved_wild |= moved.wild;
        let mut touched = moved.hosts;
        for name in std::mem::take(&mut self.moved) {
            touched.extend(self.askers.of(&name).map(|(host, _)| host.clone()));
            touched.extend(self.redirects.get(&*name).into_iter().flatten().cloned());
        }
        if std::mem::take(&mut self.moved_wild) {
            touched.extend(self.askers.wild_hosts().cloned());
            self.reaches.take();
        }
        self.lost.take();
        self.holders.take();
        touched
    }

    /// Who has a name: the host itself, else those of the namespace whose Ingress is oldest: the first of those it is
    /// redirected to, else the first of those it is to be an alias of. nginx reads redirects first, then servers by
    /// name, and the first one keeps a name. Where it is no more than kept for a redirect, that comes last.
    fn holder(&self, name: &str, allowed: CrossNamespace) -> Option<Holder> {
        if let Some(known) = self.holders.borrow().get(name) {
            return known.clone();
        }
        let found = self.find_holder(name, allowed);
        self.holders.borrow_mut().insert(name.to_owned(), found.clone());
        found
    }

    fn find_holder(&self, name: &str, allowed: CrossNamespace) -> Option<Holder> {
        let host = ServerName::new(name);
        if host == ServerName::catch_all() || self.wishes.contains_key(&host) {
            return Some(Holder::Host);
        }
        let redirects = || {
            self.redirects.get(&host).into_iter().flatten().map(|to| {
                (
                    to,
                    self.wishes
                        .get(to)
                        .and_then(|wishes| wishes.www.as_deref())
                        .map(|(asker, _)| asker),
                )
            })
        };
        let aliases = || self.askers.of(name).map(|(of, asker)| (of, Some(asker)));
        let askers = redirects().chain(aliases()).filter_map(|(_, asker)| asker);
        let oldest = askers.min_by(|a, b| a.age.cmp(&b.age));
        let oldest = oldest.filter(|_| !allowed.allows(Item::Aliases));
        let is_heard = |(_, asker): &(&ServerName, Option<&Asker>)| {
            oldest.is_none_or(|oldest| {
                asker.is_some_and(|asker| asker.ingress.namespace == oldest.ingress.namespace)
            })
        };
        let heard = || redirects().filter(is_heard);
        if let Some((to, _)) = heard().find(|(to, _)| self.redirects_to(to)) {
            return Some(Holder::Redirect(to.clone()));
        }
        // What is only kept is no stranger's, whoever is heard: it is of who asks for it, and of the owner
        // of the host that it would lead to.
        let kept = heard().next();
        let keeper = kept.and_then(|(_, asker)| asker).map(|asker| &asker.ingress.namespace);
        let owner = kept.and_then(|(to, _)| self.wishes.get(to)?.owner.as_ref());
        let is_own = |(_, asker): &(&ServerName, Option<&Asker>)| {
            let own = asker.map(|asker| &asker.ingress.namespace);
            kept.is_none() || own.is_some() && (own == keeper || own == owner)
        };
        let alias = aliases().filter(is_heard).filter(is_own).map(|(of, _)| of).min();
        let alias = alias.map(|of| Holder::Alias(of.clone()));
        alias.or_else(|| kept.map(|(to, _)| Holder::Redirect(to.clone())))
    }

    /// Whether the name that is to be redirected to a host is, and not only kept.
    fn redirects_to(&self, host: &ServerName) -> bool {
        self.wishes.get(host).is_some_and(|wishes| wishes.redirects)
    }

    /// Who of another namespace has names that a wildcard or pattern would take.
    fn stranger(&self, asker: &Asker, alias: &Alias, allowed: CrossNamespace) -> Option<Holder> {
        if allowed.allows(Item::Aliases) || matches!(alias, Alias::Name(_)) {
            return None;
        }
        let (reach, namespace) = (Reach::of(alias), &asker.ingress.namespace);
        let met = self.reaches.get_or_init(|| self.find_reaches()).met(&reach)?;
        if let Some(host) = met.hosts.besides(namespace) {
            return Some(Holder::Below(host.clone()));
        }
        let all = ServerName::catch_all();
        let owner = self.wishes.get(&all).and_then(|wishes| wishes.owner.as_ref());
        if reach.is_all && owner.is_some_and(|owner| owner != namespace) {
            return Some(Holder::Below(all));
        }
        let (age, host) = met.aliases.besides(namespace)?;
        (*age < asker.age).then(|| Holder::Alias(host.clone()))
    }

    fn find_reaches(&self) -> Reaches<(Age, ServerName)> {
        let wild = self.askers.wild_aliases().map(|(host, asker, alias)| {
            (&asker.ingress.namespace, Reach::of(alias), (asker.age.clone(), host.clone()))
        });
        let below = self.wishes.range(ServerName::new("*.")..ServerName::new("*/"));
        let below = below.filter_map(|(host, wishes)| Some((wishes.owner.as_ref()?, host)));
        Reaches::of(wild, below)
    }

    /// Gives a server the names that it may have; what it wants in vain is a problem.
    /// `prefix` is that of annotations.
    pub(crate) fn name(
        &self,
        server: &mut Server,
        drafts: &Drafts,
        allowed: CrossNamespace,
        prefix: &str,
    ) -> Vec<Problem> {
        server.app_root = app_root(server, drafts, allowed);
        let Some(wishes) = self.wishes.get(&server.name) else { return Vec::new() };
        let mut problems = unheard_wishes(server, drafts, allowed);
        for asked in &wishes.aliases {
            let seen = self.askers.seen(&asked.asker.ingress);
            // The other hosts of an Ingress never have what the first one may not, and it is said once.
            if let Some(seen) = seen.filter(|seen| seen.first == server.name) {
                self.give(server, &seen, allowed, &mut problems);
            }
        }
        // Those of who is taken, if anybody is.
        if let Some(first) = wishes.aliases.last() {
            problems.extend(self.ignored(&server.name, drafts, allowed, &first.asker));
        }
        if let Some((ingress, name)) = wishes.www.as_deref() {
            match self.holder(name.as_str(), allowed) {
                Some(Holder::Redirect(host)) if host == server.name => {
                    server.www = wishes.redirects.then(|| name.clone());
                }
                holder => {
                    let who = match holder {
                        Some(Holder::Alias(host)) => self.alias(ingress, &host),
                        _ => "a host itself".into(),
                    };
                    let message = format!("{name} is {who} and not redirected; remove one of them");
                    let message = who.within(message);
                    problems.push(problem(&ingress.ingress, "from-to-www-redirect", message));
                }
            }
        }
        for problem in &mut problems {
            problem.key = problem.key.take().map(|name| format!("{prefix}/{name}"));
        }
        problems
    }

    /// Gives the first host of an Ingress the aliases that it may have. Its own name is none of them: whoever asks for
    /// it has another host, which cannot have it.
    fn give(
        &self,
        server: &mut Server,
        seen: &Seen,
        allowed: CrossNamespace,
        problems: &mut Vec<Problem>,
    ) {
        let (own, asker) = (server.name.to_string(), &seen.asked.asker);
        for alias in seen.asked.aliases.iter() {
            let text = alias.to_string();
            if seen.alone && text == own {
                continue;
            }
            if let Some(stranger) = self.stranger(asker, alias, allowed) {
                problems.push(self.refused(asker, alias, stranger));
                continue;
            }
            match self.holder(&text, allowed) {
                Some(Holder::Alias(host)) if host == server.name => {
                    server.aliases.push(alias.clone());
                }
                holder => problems.extend(holder.map(|it| self.refused(asker, alias, it))),
            }
        }
    }

    /// Aliases of later Ingresses of the same host do not count.
    fn ignored(
        &self,
        host: &ServerName,
        drafts: &Drafts,
        allowed: CrossNamespace,
        first: &Asker,
    ) -> Vec<Problem> {
        let (own, first) = (host.to_string(), &first.ingress);
        let mut known = self.lost.borrow_mut();
        let later = heard(host, drafts, allowed, Item::Aliases);
        let later = later.filter(|draft| draft.ingress.meta.key != *first);
        let ignored = later.filter_map(|draft| {
            let pair = (first.clone(), draft.ingress.meta.key.clone());
            let lost = known.entry(pair).or_insert_with(|| self.askers.lost(first, draft));
            let lost = lost.iter().find(|alias| **alias != own)?;
            let message = format!(
                "{lost} is ignored: the aliases of host {host} are those of Ingress {}/{}, which comes first; list them there",
                first.namespace, first.name
            );
            Some(problem(&draft.ingress.meta.key, "server-alias", message))
        });
        ignored.collect()
    }

    /// How an alias of a host is called where somebody else wants the name; what others wrote is not told.
    fn alias(&self, asker: &Asker, host: &ServerName) -> Message {
        let other = self.wishes.get(host).and_then(|wishes| wishes.aliases.first());
        match other.map(|asked| &asked.asker) {
            Some(other) if other.ingress.namespace != asker.ingress.namespace => {
                Why::OtherNamespace.says("what an older alias of another namespace has")
            }
            _ => format!("an alias of {host}").into(),
        }
    }

    fn refused(&self, asker: &Asker, alias: &Alias, holder: Holder) -> Problem {
        let foreign = |who: String| Why::OtherNamespace.says(who);
        let who: Message = match holder {
            Holder::Host => "a host itself, which has it".into(),
            Holder::Redirect(host) => {
                let is =
                    if self.redirects_to(&host) { "redirected" } else { "kept to be redirected" };
                format!("{is} to {host} (from-to-www-redirect)").into()
            }
            Holder::Alias(host) => match self.alias(asker, &host) {
                foreign if foreign.why().is_some() => {
                    foreign.within(format!("{foreign}; {}", remedy(Item::Aliases)))
                }
                own => own.within(format!("{own}, which has it")),
            },
            Holder::Below(host) => foreign(format!(
                "also names of host {host}, which another namespace owns; {}",
                remedy(Item::Aliases)
            )),
        };
        let message = format!("{alias} is {who}; remove it from one of them");
        problem(&asker.ingress, "server-alias", who.within(message))
    }
}

/// Names and app roots that Ingresses of other namespaces than the host's owner ask for.
fn unheard_wishes(server: &Server, drafts: &Drafts, allowed: CrossNamespace) -> Vec<Problem> {
    let host = &server.name;
    let mut problems = Vec::new();
    let mut tell = |item: Item, key: &str, asks: &dyn Fn(&Draft) -> bool| {
        let asking = unheard(host, drafts, allowed, item).filter(|draft| asks(draft));
        problems.extend(
            asking.map(|draft| problem(&draft.ingress.meta.key, key, not_heard(host, item))),
        );
    };
    tell(Item::Aliases, "server-alias", &|draft| !draft.names.aliases.is_empty());
    tell(Item::Www, "from-to-www-redirect", &|draft| draft.names.www);
    let has_root = root_owner(server);
    tell(Item::AppRoot, "app-root", &|draft| {
        draft.app_root.is_some() && has_root != Some(&draft.ingress.meta.key.namespace)
    });
    problems
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

fn problem(ingress: &ObjectKey, annotation: &str, message: impl Into<Message>) -> Problem {
    let key = Some(annotation.to_owned());
    Problem { origin: origin(ingress), key, severity: Severity::Warning, message: message.into() }
}

/// The namespace of the path `/` of a host.
fn root_owner(server: &Server) -> Option<&Arc<str>> {
    let mut roots = server.locations.iter().filter(|location| location.path == "/");
    let origin = roots.find_map(|location| location.origin.as_deref());
    origin.map(|origin| &origin.namespace)
}

/// The `app-root` of the owner's Ingress whose policy the implicit `/` of a host has. It counts, too, where another
/// namespace has added the path.
fn of_the_implicit_root(host: &ServerName, owner: &Arc<str>, drafts: &Drafts) -> Option<Template> {
    let mut own = drafts.values().filter(|draft| {
        draft.ingress.meta.key.namespace == *owner && draft.hosts.contains_key(host)
    });
    let first = own.find(|draft| draft.standing != Standing::Canary);
    let first = first.filter(|draft| draft.standing == Standing::Taken);
    first.filter(|_| *host != ServerName::catch_all())?.app_root.clone()
}

/// Of several locations with `app-root` the one with the longest path decides, and of two as long the greater one
/// (compat/decisions.md: parity). The owner of the host is heard first, then that of its path `/`.
fn app_root(server: &Server, drafts: &Drafts, allowed: CrossNamespace) -> Option<Template> {
    let taken = drafts.values().filter(|draft| {
        draft.standing == Standing::Taken && draft.hosts.contains_key(&server.name)
    });
    let asking =
        taken.filter_map(|draft| Some((origin(&draft.ingress.meta.key), draft.app_root.as_ref()?)));
    let asking: BTreeMap<_, _> = asking.collect();
    if asking.is_empty() {
        return None;
    }
    let longest = |namespace: Option<&Arc<str>>| {
        let rank = |path: &'_ str| (path.len(), path.to_owned());
        let mut best: Option<(&str, &Template)> = None;
        for location in &server.locations {
            let Some(own) = &location.origin else { continue };
            if let Some(target) = asking.get(own)
                && namespace.is_none_or(|namespace| *namespace == own.namespace)
                && best.is_none_or(|(path, _)| rank(&location.path) > rank(path))
            {
                best = Some((&location.path, *target));
            }
        }
        best.map(|(_, target)| target.clone())
    };
    if allowed.allows(Item::AppRoot) {
        return longest(None);
    }
    let owner = owner(&server.name, drafts);
    let ours = owner.and_then(|owner| {
        longest(Some(owner)).or_else(|| of_the_implicit_root(&server.name, owner, drafts))
    });
    ours.or_else(|| root_owner(server).and_then(|owner| longest(Some(owner))))
}
