//! The list of problems, kept by object so that it costs nothing when nothing changed.

use imbl::OrdMap;
use model::{Origin, Problem};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

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

/// Who found which problems, so that one finder's list can be replaced without asking the others again.
#[derive(Debug)]
pub(crate) struct Ledger<Finder> {
    found: BTreeMap<Finder, Vec<Problem>>,
    by_origin: BTreeMap<Origin, BTreeMap<Problem, usize>>,
    changed: BTreeSet<Origin>,
    published: Problems,
}

impl<Finder> Default for Ledger<Finder> {
    fn default() -> Self {
        Self {
            found: BTreeMap::new(),
            by_origin: BTreeMap::new(),
            changed: BTreeSet::new(),
            published: Problems::default(),
        }
    }
}

impl<Finder: Ord> Ledger<Finder> {
    /// Replaces what `finder` found.
    pub(crate) fn set(&mut self, finder: Finder, problems: Vec<Problem>) {
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

    /// The list as it is now.
    pub(crate) fn publish(&mut self) -> Problems {
        for origin in std::mem::take(&mut self.changed) {
            match self.by_origin.get(&origin) {
                Some(problems) => {
                    self.published.0.insert(origin, problems.keys().cloned().collect())
                }
                None => self.published.0.remove(&origin),
            };
        }
        self.published.clone()
    }
}
