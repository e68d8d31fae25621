//! Who owns a host and its paths: the namespace of the oldest Ingress that names them, whether it is taken or not, so
//! that nobody loses a path by a mistake or a restart (docs/tenancy.md).

use super::{Host, Won};
use crate::ingress::{Draft, Drafts, Standing};
use crate::tenancy::{CrossNamespace, Item, remedy};
use model::{Message, PathKind, ServerName, Severity, Why, may_have_alternatives};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A path as its owner has it.
type Claim = (PathKind, String);

/// The namespace of an Ingress.
pub(super) fn namespace(draft: &Draft) -> &Arc<str> {
    &draft.ingress.meta.key.namespace
}

/// Whether two Ingresses are of different namespaces.
pub(super) fn is_foreign(draft: &Draft, other: &Draft) -> bool {
    namespace(draft) != namespace(other)
}

/// The namespace that owns a host.
pub(crate) fn owner<'a>(name: &ServerName, drafts: &'a Drafts) -> Option<&'a Arc<str>> {
    let claims = |draft: &&Arc<Draft>| draft.claims(name);
    drafts
        .values()
        .filter(claims)
        .min_by(|a, b| a.age().cmp(&b.age()))
        .map(|first| namespace(first))
}

/// The Ingresses that are heard about a host as a whole: those of its owner, or all where that is allowed.
pub(crate) fn heard<'a>(
    name: &ServerName,
    drafts: &'a Drafts,
    allowed: CrossNamespace,
    item: Item,
) -> impl Iterator<Item = &'a Arc<Draft>> {
    let owner = owner(name, drafts).filter(|_| !allowed.allows(item)).cloned();
    let taken = drafts.values().filter(|draft| draft.standing == Standing::Taken);
    taken.filter(move |draft| owner.as_ref().is_none_or(|owner| owner == namespace(draft)))
}

/// Those who ask for something of a host that is another namespace's.
pub(crate) fn unheard<'a>(
    name: &ServerName,
    drafts: &'a Drafts,
    allowed: CrossNamespace,
    item: Item,
) -> impl Iterator<Item = &'a Arc<Draft>> {
    let owner = owner(name, drafts).cloned();
    let taken = drafts.values().filter(|draft| draft.standing == Standing::Taken);
    taken.filter(move |draft| {
        !allowed.allows(item) && owner.as_ref().is_some_and(|owner| owner != namespace(draft))
    })
}

/// The sentence for somebody who is not heard.
pub(crate) fn not_heard(name: &ServerName, item: Item) -> Message {
    let message = format!(
        "has no effect for host {name}, which another namespace owns: ask for it in an Ingress there, or {}",
        remedy(item)
    );
    Why::OtherNamespace.says(message)
}

/// A path of the host, as far as it matters to others.
struct Path<'a> {
    draft: &'a Draft,
    kind: PathKind,
    text: &'a str,
    /// Whether its Ingress asks for regular expressions.
    regex: bool,
}

/// The paths of all Ingresses of a host that more than one namespace has; empty where only one has.
#[derive(Default)]
pub(super) struct Owners<'a> {
    /// All of them, until it is settled who has what.
    paths: Vec<Path<'a>>,
    /// By path, who is oldest.
    oldest: HashMap<Claim, &'a Draft>,
    /// Who is older than the Ingress of a path that would take requests, by where that is written.
    lost: HashMap<(*const Draft, PathKind, &'a str), &'a Draft>,
    /// By path without its final slash, in lower case.
    bare: HashMap<String, Vec<Path<'a>>>,
    /// By what every path that a path matches begins with.
    starts: Oldest<'a>,
    /// The same of patterns that say more than "and what is below".
    closed: Oldest<'a>,
}

/// The oldest Ingress of each start, by namespace: who has many paths costs others little.
type Oldest<'a> = BTreeMap<&'a str, BTreeMap<String, &'a Draft>>;

fn claim<'a>(oldest: &mut HashMap<Claim, &'a Draft>, path: &Path<'a>) {
    let oldest = oldest.entry((path.kind, path.text.to_owned())).or_insert(path.draft);
    if path.draft.age() < oldest.age() {
        *oldest = path.draft;
    }
}

fn note<'a>(all: &mut Oldest<'a>, start: String, draft: &'a Draft) {
    let oldest = all.entry(namespace(draft)).or_default().entry(start).or_insert(draft);
    if draft.age() < oldest.age() {
        *oldest = draft;
    }
}

/// Those of other namespaces than that of `draft`.
fn foreign<'o, 'a>(
    all: &'o Oldest<'a>,
    draft: &Draft,
) -> impl Iterator<Item = &'o BTreeMap<String, &'a Draft>> {
    let own = namespace(draft).clone();
    all.iter().filter(move |(namespace, _)| ***namespace != *own).map(|(_, starts)| starts)
}

impl<'a> Owners<'a> {
    pub(super) fn of(name: &ServerName, drafts: &'a Drafts, allowed: CrossNamespace) -> Self {
        let mut owners = Self::default();
        let claiming = || drafts.values().filter(|draft| draft.claims(name));
        let mut namespaces = claiming().map(|draft| namespace(draft));
        let Some(first) = namespaces.next() else { return owners };
        if allowed.allows(Item::Paths) || namespaces.all(|other| other == first) {
            return owners;
        }
        let host = owner(name, drafts);
        let is_catch_all = *name == ServerName::catch_all();
        for draft in claiming() {
            let catch_all = draft.catch_all.as_deref().into_iter().filter(|_| is_catch_all);
            for route in draft.hosts.get(name).into_iter().flatten().chain(catch_all) {
                let (kind, text) = (route.location.kind, route.location.path.as_str());
                owners.paths.push(Path { draft, kind, text, regex: route.regex });
            }
            // What it says for everything else is its path /.
            if draft.default.is_some() && !is_catch_all && Some(namespace(draft)) == host {
                let root = Path { draft, kind: PathKind::Prefix, text: "/", regex: false };
                owners.paths.push(root);
            }
        }
        for path in &owners.paths {
            claim(&mut owners.oldest, path);
        }
        owners
    }

    /// Settles who has what, the oldest first: a path that somebody else has, or that would take requests from an older
    /// one, is served to nobody, and so takes nothing from a younger one either.
    fn settle(&mut self, host: &Host<'_>) {
        let mut paths = std::mem::take(&mut self.paths);
        paths.sort_by_cached_key(|path| path.draft.age());
        for path in paths {
            let Path { draft, kind, text, .. } = path;
            if self.stranger(draft, kind, text).is_some() || host.would_make_patterns(&path) {
                continue;
            }
            if let Some(older) = self.taken_from(&path, host.regex) {
                self.lost.insert((std::ptr::from_ref(draft), kind, text), older);
                continue;
            }
            let (start, rest) = split(text);
            if rest.bytes().any(|byte| !b"()$^?/|.*+".contains(&byte)) {
                note(&mut self.closed, bare(start), draft);
            }
            note(&mut self.starts, bare(start), draft);
            self.bare.entry(bare(text)).or_default().push(path);
        }
    }

    /// Whose path it is, if it is that of another namespace.
    pub(super) fn stranger(&self, draft: &Draft, kind: PathKind, path: &str) -> Option<&'a Draft> {
        if self.oldest.is_empty() {
            return None;
        }
        let oldest = *self.oldest.get(&(kind, path.to_owned()))?;
        is_foreign(oldest, draft).then_some(oldest)
    }

    /// Whose requests a path would take, if they are those of an older Ingress of another namespace. `regex`: whether
    /// the paths of the host are regular expressions.
    fn taken_from(&self, path: &Path<'_>, regex: bool) -> Option<&'a Draft> {
        let is_older =
            |other: &Draft| is_foreign(other, path.draft) && other.age() < path.draft.age();
        let same = self.bare.get(&bare(path.text)).into_iter().flatten();
        let mut same = same.filter(|other| is_older(other.draft) && overlap(path, other, regex));
        if let Some(other) = same.next() {
            return Some(other.draft);
        }
        if !regex || is_literal(path.text) {
            return None;
        }
        let start = bare(split(path.text).0);
        let literal = start.split('.').next().unwrap_or_default();
        let from = literal.strip_suffix('/').unwrap_or(literal);
        let near = foreign(&self.starts, path.draft).flat_map(|starts| {
            let near = starts.range(from.to_owned()..);
            near.take_while(|(other, _)| other.starts_with(from))
        });
        let near = near.filter(|(other, _)| reaches(&start, other));
        let closed = foreign(&self.closed, path.draft).flatten();
        let closed = closed.filter(|(other, _)| agree(&start, other));
        near.chain(closed).map(|(_, draft)| *draft).find(|draft| is_older(draft))
    }
}

/// Whether two texts are the same as far as both go; a dot is any character.
fn agree(one: &str, other: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || a == b'.' || b == b'.';
    one.bytes().zip(other.bytes()).all(same)
}

/// Whether a pattern that begins with `start` may have what is at or right below `other`, rather than something with a
/// name of its own there.
fn reaches(start: &str, other: &str) -> bool {
    if !agree(start, other) || other.len() >= start.len() {
        return agree(start, other);
    }
    let (within, beyond) = start.as_bytes().split_at(other.len());
    within.contains(&b'.') || beyond.iter().all(|byte| matches!(byte, b'/' | b'.'))
}

/// Whether a path, written like another one but for case, kind and final slash, has requests of the other one.
fn overlap(path: &Path<'_>, other: &Path<'_>, regex: bool) -> bool {
    if regex {
        return true;
    }
    let bare = |text: &'_ str| text.strip_suffix('/').unwrap_or(text).to_owned();
    if bare(path.text) != bare(other.text) {
        return false;
    }
    match (path.kind, other.kind) {
        (_, PathKind::Prefix) => true,
        // Who has exactly `/p/` also has the redirect from `/p`, and nothing below.
        (kind, PathKind::Exact) => {
            other.text.len() > path.text.len()
                || (kind == PathKind::Exact && path.text == other.text)
        }
    }
}

fn bare(path: &str) -> String {
    path.strip_suffix('/').unwrap_or(path).to_ascii_lowercase()
}

impl Host<'_> {
    /// Leaves out the paths that would take requests from older ones of other namespaces, and those that would make
    /// the paths of another namespace's host regular expressions.
    pub(super) fn leave_to_owners<'a>(
        &mut self,
        owners: &mut Owners<'a>,
        won: Vec<Won<'a>>,
    ) -> Vec<Won<'a>> {
        owners.settle(self);
        let mut stay = Vec::new();
        for (draft, route) in won {
            let (kind, text) = (route.location.kind, route.location.path.as_str());
            let path = Path { draft, kind, text, regex: route.regex };
            let (item, why) = if self.would_make_patterns(&path) {
                let why = "it is a regular expression, which would make all paths of the host such"
                    .to_owned();
                (Item::Regex, why)
            } else if let Some(other) = owners.lost.get(&(std::ptr::from_ref(draft), kind, text)) {
                let other = &other.ingress.meta.key;
                let why = format!(
                    "it would take requests from Ingress {}/{}, which is older",
                    other.namespace, other.name
                );
                (Item::Paths, why)
            } else {
                stay.push((draft, route));
                continue;
            };
            let message = format!(
                "path {text} ({kind:?}) of host {}, which another namespace has a part in, is not served: {why}; take a \
                 path of its own, or {}",
                self.name,
                remedy(item)
            );
            let message = Why::OtherNamespace.says(message);
            self.problem(&draft.ingress.meta.key, "spec.rules", Severity::Error, message);
        }
        stay
    }

    /// Whether a path would make all paths of another namespace's host regular expressions.
    fn would_make_patterns(&self, path: &Path<'_>) -> bool {
        let is_pattern = path.regex && !is_literal(path.text);
        is_pattern && !self.regex && !self.is_heard(path.draft, Item::Regex)
    }
}

/// Whether a path means the same as a regular expression.
fn is_literal(path: &str) -> bool {
    !path.contains(|character: char| "\\.+*?()[]{}|^$".contains(character))
}

/// A path as a regular expression: what every path that it matches begins with, where a dot is any character, and the
/// rest.
fn split(path: &str) -> (&str, &str) {
    let special = |character: char| "\\+*?()[]{}|^$".contains(character);
    let Some(end) = path.find(special) else { return (path, "") };
    if may_have_alternatives(path) {
        return ("", path);
    }
    // What may be repeated zero times does not belong to the beginning.
    let end = if path[end..].starts_with(['*', '?', '{']) {
        path[..end].char_indices().next_back().map_or(0, |(at, _)| at)
    } else {
        end
    };
    path.split_at(end)
}
