//! The list of problems, kept by object so that it costs nothing when nothing changed.

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use model::{Kind, Origin, Problem, Severity};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Stands in the message of a Problem about a mistake in the ConfigMap that closes everything.
pub(crate) const ALL_CLOSED: &str = "every location answers 503";

/// All problems, by the object that has to change. A copy costs a pointer; two lists are compared by what differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(OrdMap<Origin, Arc<[Problem]>>);

impl Problems {
    /// Every problem: by object, then by key.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.values().flat_map(|list| list.iter())
    }

    /// The problems of one object.
    pub fn of(&self, origin: &Origin) -> &[Problem] {
        self.0.get(origin).map_or(&[], |list| list)
    }

    /// The problems by object.
    pub fn by_origin(&self) -> &OrdMap<Origin, Arc<[Problem]>> {
        &self.0
    }

    /// Of each object with which it is not the same: those before, and those now.
    pub fn differences<'a>(
        &'a self,
        now: &'a Self,
    ) -> impl Iterator<Item = (&'a [Problem], &'a [Problem])> {
        self.0.diff(&now.0).map(|item| -> (&[Problem], &[Problem]) {
            match item {
                DiffItem::Add(_, now) => (&[], now),
                DiffItem::Remove(_, before) => (before, &[]),
                DiffItem::Update { old: (_, before), new: (_, now) } => (before, now),
            }
        })
    }

    /// These, and what an engine found besides.
    #[must_use]
    pub fn with(&self, more: &[Problem]) -> Self {
        let mut all = self.0.clone();
        for problem in more {
            let mut list = self.of(&problem.origin).to_vec();
            list.extend(more.iter().filter(|other| other.origin == problem.origin).cloned());
            list.sort();
            all.insert(problem.origin.clone(), list.into());
        }
        Self(all)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    /// One line for each problem, the severity first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|problem| writeln!(f, "{:?}: {problem}", problem.severity))
    }
}

/// Problems of one object at most, as each finder has them and as they are published where that goes on and on.
pub(crate) const OF_ONE: usize = 100;
/// Bytes of a message or key at most.
pub(crate) const LONGEST: usize = 2048;

/// Who found which problems, so that one finder's list can be replaced without asking the others again.
#[derive(Debug)]
pub(crate) struct Ledger<Finder> {
    found: BTreeMap<Finder, Vec<Problem>>,
    by_origin: BTreeMap<Origin, BTreeMap<Problem, usize>>,
    changed: BTreeSet<Origin>,
    published: Problems,
    /// By Ingress and by namespace, how many there would be to publish.
    known: BTreeMap<Origin, usize>,
    counts: BTreeMap<Arc<str>, usize>,
    /// How many of a namespace were published at most.
    most: usize,
    /// Whether nothing is left out, whatever the bounds are.
    whole: bool,
}

impl<Finder> Default for Ledger<Finder> {
    fn default() -> Self {
        Self {
            found: BTreeMap::new(),
            by_origin: BTreeMap::new(),
            changed: BTreeSet::new(),
            published: Problems::default(),
            known: BTreeMap::new(),
            counts: BTreeMap::new(),
            most: usize::MAX,
            whole: false,
        }
    }
}

impl<Finder: Ord> Ledger<Finder> {
    /// One that leaves nothing out: for whoever judges objects by their problems, once.
    pub(crate) fn whole() -> Self {
        Self { whole: true, ..Self::default() }
    }

    /// Replaces what `finder` found; of one object it keeps [`OF_ONE`], the gravest.
    pub(crate) fn set(&mut self, finder: Finder, mut problems: Vec<Problem>) {
        if !self.whole {
            bound(&mut problems);
        }
        problems.iter_mut().for_each(shorten);
        if self.found.get(&finder).map_or(&[][..], Vec::as_slice) == problems {
            return;
        }
        self.forget(&finder);
        if problems.is_empty() {
            return;
        }
        for problem in &problems {
            self.changed.insert(problem.origin.clone());
            let of_origin = self.by_origin.entry(problem.origin.clone()).or_default();
            *of_origin.entry(problem.clone()).or_default() += 1;
        }
        self.found.insert(finder, problems);
    }

    fn forget(&mut self, finder: &Finder) {
        for problem in self.found.remove(finder).unwrap_or_default() {
            self.changed.insert(problem.origin.clone());
            let Some(of_origin) = self.by_origin.get_mut(&problem.origin) else { continue };
            if let Some(count) = of_origin.get_mut(&problem) {
                *count -= 1;
                if *count == 0 {
                    of_origin.remove(&problem);
                }
            }
            if of_origin.is_empty() {
                self.by_origin.remove(&problem.origin);
            }
        }
    }

    /// The list as it is now: of the Ingresses of one namespace, the gravest, and of these the first in order, that are
    /// no more than `most`.
    pub(crate) fn publish(&mut self, most: usize) -> Problems {
        let most = if self.whole { usize::MAX } else { most };
        let all = self.most != most;
        self.most = most;
        let mut changed = std::mem::take(&mut self.changed);
        if all {
            changed.extend(self.by_origin.keys().cloned());
        }
        let mut full = BTreeSet::new();
        for origin in changed {
            let now = self.by_origin.get(&origin).map(|all| self.of_object(all));
            let now = now.unwrap_or_default();
            if origin.kind == Kind::Ingress && self.count(&origin, now.len()) > most {
                full.insert(Arc::clone(&origin.namespace));
            }
            self.show(origin, now);
        }
        for namespace in full {
            self.cut(&namespace, most);
        }
        self.published.clone()
    }

    /// Notes how many an Ingress has; returns how many its namespace has or had, whichever is more.
    fn count(&mut self, origin: &Origin, now: usize) -> usize {
        let before = self.known.remove(origin).unwrap_or(0);
        if now > 0 {
            self.known.insert(origin.clone(), now);
        }
        let count = self.counts.entry(Arc::clone(&origin.namespace)).or_default();
        let all = *count;
        *count = all + now - before;
        let most = all.max(*count);
        if *count == 0 {
            self.counts.remove(&origin.namespace);
        }
        most
    }

    fn show(&mut self, origin: Origin, problems: Vec<Problem>) {
        if problems.is_empty() {
            self.published.0.remove(&origin);
        } else if self.published.of(&origin) != problems {
            self.published.0.insert(origin, problems.into());
        }
    }

    /// Shows of a namespace what fits.
    fn cut(&mut self, namespace: &Arc<str>, most: usize) {
        let from = Origin::new(Kind::Ingress, Arc::clone(namespace), "");
        let of_it =
            |origin: &Origin| origin.kind == Kind::Ingress && origin.namespace == *namespace;
        let all = self.by_origin.range(from..).take_while(|(origin, _)| of_it(origin));
        let mut shown: Vec<_> =
            all.map(|(origin, problems)| (origin.clone(), self.of_object(problems))).collect();
        let mut left = most;
        let room = GRAVEST_FIRST.map(|severity| {
            let of_it = |problem: &&Problem| problem.severity == severity;
            let there = shown.iter().flat_map(|(_, problems)| problems).filter(of_it).count();
            let fits = there.min(left);
            left -= fits;
            (severity, fits)
        });
        let mut room = BTreeMap::from(room);
        for (_, problems) in &mut shown {
            problems.retain(|problem| {
                let left = room.get_mut(&problem.severity).filter(|left| **left > 0);
                left.map(|left| *left -= 1).is_some()
            });
        }
        shown.into_iter().for_each(|(origin, problems)| self.show(origin, problems));
    }

    /// The problems of one object.
    fn of_object(&self, problems: &BTreeMap<Problem, usize>) -> Vec<Problem> {
        let mut all: Vec<&Problem> = problems.keys().collect();
        if !self.whole && all.len() > OF_ONE {
            all.sort_by_key(|problem| Reverse(problem.severity));
            all.truncate(OF_ONE);
            all.sort();
        }
        all.into_iter().cloned().collect()
    }
}

/// What a bound takes away last comes first.
const GRAVEST_FIRST: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Notice];

/// The beginning of a text that is too long.
fn shortened(text: &str) -> Option<String> {
    (text.len() > LONGEST).then(|| format!("{}…", &text[..text.floor_char_boundary(LONGEST)]))
}

/// Keeps of each object the gravest, and of these the first ones.
fn bound(problems: &mut Vec<Problem>) {
    let mut counts: BTreeMap<Origin, usize> = BTreeMap::new();
    for problem in problems.iter() {
        *counts.entry(problem.origin.clone()).or_default() += 1;
    }
    if counts.values().all(|count| *count <= OF_ONE) {
        return;
    }
    problems.sort_by_key(|problem| Reverse(problem.severity));
    counts.clear();
    problems.retain(|problem| {
        let count = counts.entry(problem.origin.clone()).or_default();
        *count += 1;
        *count <= OF_ONE
    });
}

/// No text is longer than [`LONGEST`].
fn shorten(found: &mut Problem) {
    if let Some(short) = shortened(&found.message) {
        found.message = found.message.within(short);
    }
    if let Some(short) = found.key.as_deref().and_then(shortened) {
        found.key = Some(short);
    }
}
