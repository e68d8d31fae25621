//! Who owns a host and its paths: the namespace of the oldest Ingress that names them, whether it is taken or not, so
//! that nobody loses a path by a mistake or a restart (docs/tenancy.md).

use super::starts::{Sought, Starts, TooMany};
use super::{Host, Won};
use crate::ingress::{Draft, Drafts, Standing};
use crate::tenancy::{CrossNamespace, Item, remedy};
use model::{Message, PathKind, ServerName, Severity, Why, start_with_dots};
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

/// The Ingresses that are heard about a host as a whole: those of its owner, or all where that is allowed. Who has no
/// rule for it, but a `spec.defaultBackend` alone, has no word in the host of all others (createServers).
pub(crate) fn heard<'a>(
    name: &ServerName,
    drafts: &'a Drafts,
    allowed: CrossNamespace,
    item: Item,
) -> impl Iterator<Item = &'a Arc<Draft>> {
    let owner = owner(name, drafts).filter(|_| !allowed.allows(item)).cloned();
    with_a_word(name, drafts)
        .filter(move |draft| owner.as_ref().is_none_or(|owner| owner == namespace(draft)))
}

/// Those that would be heard about a host if every Ingress were taken: those that are, and then the others.
pub(crate) fn heard_or_not<'a>(
    name: &ServerName,
    drafts: &'a Drafts,
    allowed: CrossNamespace,
    item: Item,
) -> impl Iterator<Item = &'a Arc<Draft>> {
    let owner = owner(name, drafts).filter(|_| !allowed.allows(item)).cloned();
    let name = name.clone();
    drafts.values().filter(move |draft| {
        matches!(draft.standing, Standing::Taken | Standing::Rejected)
            && draft.hosts.contains_key(&name)
            && owner.as_ref().is_none_or(|owner| owner == namespace(draft))
    })
}

/// Those who would ask for something of a host that is another namespace's if every Ingress were taken, by namespace
/// and the older first.
pub(super) fn unheard_or_not<'a>(
    name: &ServerName,
    drafts: &'a Drafts,
    allowed: CrossNamespace,
    item: Item,
) -> BTreeMap<&'a Arc<str>, Vec<&'a Arc<Draft>>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let owner = owner(name, drafts).filter(|_| !allowed.allows(item));
    let has_rule = |draft: &&Arc<Draft>| {
        matches!(draft.standing, Standing::Taken | Standing::Rejected)
            && draft.hosts.contains_key(name)
    };
    for draft in drafts.values().filter(has_rule) {
        if owner.is_some_and(|owner| owner != namespace(draft)) {
            all.entry(namespace(draft)).or_default().push(draft);
        }
    }
    all.values_mut().for_each(|drafts| drafts.sort_by_cached_key(|draft| draft.age()));
    all
}

/// The Ingresses that are taken and have a rule for a host.
pub(super) fn with_a_word<'a>(
    name: &ServerName,
    drafts: &'a Drafts,
) -> impl Iterator<Item = &'a Arc<Draft>> {
    let taken = drafts.values().filter(|draft| draft.standing == Standing::Taken);
    let name = name.clone();
    taken.filter(move |draft| draft.hosts.contains_key(&name))
}

/// Those who ask for something of a host that is another namespace's.
pub(crate) fn unheard<'a>(
    name: &ServerName,
    drafts: &'a Drafts,
    allowed: CrossNamespace,
    item: Item,
) -> impl Iterator<Item = &'a Arc<Draft>> {
    let owner = owner(name, drafts).cloned();
    with_a_word(name, drafts).filter(move |draft| {
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
    lost: HashMap<(*const Draft, PathKind, &'a str), Older<'a>>,
    /// Those that another one may overlap, by path without its final slash; in lower case on a host of regular
    /// expressions. Each has a few at most, however many are written.
    bare: HashMap<String, Vec<Path<'a>>>,
    /// By what every path that a path matches begins with.
    starts: Starts<'a, &'a Draft>,
    /// The same of patterns that say more than "and what is below".
    closed: Starts<'a, &'a Draft>,
    /// Steps that each namespace may take yet to compare starts with dots.
    steps: HashMap<&'a str, usize>,
}

/// Steps to compare starts with dots that the paths of a namespace may take together on a host (docs/limits.md). Those
/// that begin with a text of their own take some each.
const STEPS: usize = 1_000_000;

/// Whose requests a path would take.
#[derive(Clone, Copy)]
enum Older<'a> {
    /// Those of an Ingress of another namespace.
    Of(&'a Draft),
    /// It took too many steps to tell, so nobody's are risked.
    Unknown,
}

impl Older<'_> {
    /// Why the path is not served.
    fn why(self) -> String {
        match self {
            Self::Of(other) => {
                let other = &other.ingress.meta.key;
                let (namespace, name) = (&other.namespace, &other.name);
                format!("it would take requests from Ingress {namespace}/{name}, which is older")
            }
            Self::Unknown => "too many older paths begin alike but for dots, which are any \
                              character, to tell whether it would take requests from one"
                .to_owned(),
        }
    }
}

fn claim<'a>(oldest: &mut HashMap<Claim, &'a Draft>, path: &Path<'a>) {
    let oldest = oldest.entry((path.kind, path.text.to_owned())).or_insert(path.draft);
    if path.draft.age() < oldest.age() {
        *oldest = path.draft;
    }
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
            let (start, of) = (bare(start), &**namespace(draft));
            if rest.bytes().any(|byte| !b"()$^?/|.*+".contains(&byte)) {
                self.closed.note(&start, of, draft);
            }
            self.starts.note(&start, of, draft);
            self.note(path, host.regex);
        }
    }

    /// Notes a path for those that are younger. One of a kind of each of two namespaces is enough: whoever asks, the
    /// older one of these that is foreign is the oldest that is.
    fn note(&mut self, path: Path<'a>, regex: bool) {
        let all = self.bare.entry(alike(path.text, regex)).or_default();
        let is_same = |other: &Path<'_>| {
            other.kind == path.kind && other.text.ends_with('/') == path.text.ends_with('/')
        };
        let mut same = all.iter().filter(|other| is_same(other)).map(|other| other.draft);
        let is_known = same.clone().any(|other| !is_foreign(other, path.draft));
        if !is_known && same.nth(1).is_none() {
            all.push(path);
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

    /// Whose requests a path would take, if they are those of an Ingress of another namespace that was settled before,
    /// and so is older. `regex`: whether the paths of the host are regular expressions.
    fn taken_from(&mut self, path: &Path<'a>, regex: bool) -> Option<Older<'a>> {
        let same = self.bare.get(&alike(path.text, regex)).into_iter().flatten();
        let mut same =
            same.filter(|other| is_foreign(other.draft, path.draft) && overlap(path, other, regex));
        if let Some(other) = same.next() {
            return Some(Older::Of(other.draft));
        }
        if !regex || is_literal(path.text) {
            return None;
        }
        let start = bare(split(path.text).0);
        let own = &**namespace(path.draft);
        let steps = self.steps.entry(own).or_insert(STEPS);
        let near = self.starts.find(Sought::near(&start), own, steps);
        let found = near.and_then(|near| match near {
            Some(_) => Ok(near),
            None => self.closed.find(Sought::alike(&start), own, steps),
        });
        match found {
            Ok(found) => found.map(Older::Of),
            Err(TooMany) => {
                // Younger ones would find no more than this one.
                *steps = 0;
                Some(Older::Unknown)
            }
        }
    }
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

/// What paths that overlap have in common.
fn alike(path: &str, regex: bool) -> String {
    if regex { bare(path) } else { path.strip_suffix('/').unwrap_or(path).to_owned() }
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
                (Item::Paths, other.why())
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
            if draft.may_guard() {
                self.shut(&route.location, route.regex, &why);
            }
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
    path.split_at(start_with_dots(path).len())
}
