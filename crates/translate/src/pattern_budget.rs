//! How much memory the compiled paths of an Ingress may take, and those of a host: by how much is written, and no
//! so much at all.

use model::{Origin, Pattern, PatternError, fixed_start};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes that every Ingress may have.
const FLOOR: usize = 256 << 10;
/// Bytes for each pattern, and for each byte of its text. Patterns of usual applications take half of that.
const FOR_EACH: usize = 16 << 10;
const FOR_EACH_BYTE: usize = 256;
/// Bytes that no Ingress has.
const OF_INGRESS: usize = 16 << 20;
/// Bytes that no owner of a host has there, nor all others together.
const OF_HOST: usize = 32 << 20;

/// What may be compiled yet. A pattern that is there several times is shared, and counts once.
#[derive(Debug)]
pub(crate) struct PatternBudget {
    used: usize,
    allowed: usize,
    most: usize,
    seen: HashSet<(String, usize)>,
    /// Why nothing more is compiled: what is too much costs no time, either.
    full: Option<String>,
    told: bool,
    closed: HashSet<(usize, String)>,
}

impl PatternBudget {
    /// That of an Ingress.
    pub(crate) fn of_ingress() -> Self {
        let (seen, closed) = (HashSet::new(), HashSet::new());
        Self { used: 0, allowed: FLOOR, most: OF_INGRESS, seen, full: None, told: false, closed }
    }

    /// That of an Ingress on a host where others have used so much.
    fn beside(used: usize) -> Self {
        Self { most: OF_INGRESS.min(OF_HOST.saturating_sub(used)), ..Self::of_ingress() }
    }

    /// Why nothing more is compiled.
    pub(crate) fn full(&self) -> Option<&String> {
        self.full.as_ref()
    }

    /// Whether the owner was not told yet that there is no more memory.
    pub(crate) fn is_news(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }

    /// Whether a start of paths was not closed yet at a place.
    pub(crate) fn closes(&mut self, place: usize, start: &str) -> bool {
        self.closed.insert((place, start.to_owned()))
    }

    /// Compiles a path as its host matches it; none if that takes no pattern.
    pub(crate) fn path(&mut self, path: &str) -> Result<Option<Pattern>, Refused> {
        if fixed_start(path) == path {
            return Ok(None);
        }
        if let Some(reason) = &self.full {
            return Err(Refused::TooLarge(reason.clone()));
        }
        let source = format!("^{path}");
        match Pattern::new(&source, true) {
            Ok(pattern) => self.take(&pattern).map(|()| Some(pattern)),
            Err(error) => {
                if Pattern::check(&source).is_ok() {
                    // It was compiled up to where that is too much.
                    self.used += FLOOR / 4;
                    self.full =
                        Some(self.reason()).filter(|_| self.used > self.allowed.min(self.most));
                    // What it may guard is closed, not left to others.
                    return Err(Refused::TooLarge(error.reason));
                }
                Err(Refused::Invalid(error))
            }
        }
    }

    /// Counts a pattern.
    pub(crate) fn take(&mut self, pattern: &Pattern) -> Result<(), Refused> {
        let size = pattern.size();
        if !self.seen.insert((pattern.source().to_owned(), size)) {
            return Ok(());
        }
        self.allowed += FOR_EACH + FOR_EACH_BYTE * pattern.source().len();
        self.used += size;
        if self.used <= self.allowed.min(self.most) {
            return Ok(());
        }
        Err(Refused::TooLarge(self.full.insert(self.reason()).clone()))
    }

    fn reason(&self) -> String {
        if self.most < self.allowed.min(OF_INGRESS) {
            return format!(
                "the regular expressions of the host take more than {} MiB of memory, those of its owner or those of \
                 everybody else; write simpler ones, or divide them among several hosts",
                OF_HOST >> 20
            );
        }
        format!(
            "the regular expressions of the Ingress take more than {} KiB of memory; write simpler ones, or divide \
             them among several Ingresses",
            self.allowed.min(self.most) >> 10
        )
    }
}

/// The budgets of the Ingresses of a host. Those of its owner have one sum, everybody else's another: what one of these
/// fills is no more what the other needs.
#[derive(Debug, Default)]
pub(crate) struct HostBudgets {
    of: HashMap<Option<Arc<Origin>>, PatternBudget>,
    used_by_owner: usize,
    used_by_others: usize,
}

impl HostBudgets {
    /// Compiles a path of an Ingress, which may be one of the owner of the host; returns its budget, too.
    pub(crate) fn path(
        &mut self,
        ingress: &Option<Arc<Origin>>,
        is_owners: bool,
        path: &str,
    ) -> (Result<Option<Pattern>, Refused>, &mut PatternBudget) {
        let sum = if is_owners { &mut self.used_by_owner } else { &mut self.used_by_others };
        let budget = self.of.entry(ingress.clone()).or_insert_with(|| PatternBudget::beside(*sum));
        let before = budget.used;
        let compiled = budget.path(path);
        *sum += budget.used - before;
        (compiled, budget)
    }
}

/// Why there is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The text is no regular expression.
    Invalid(PatternError),
    /// There is no memory for it.
    TooLarge(String),
}

/// Why a path that takes a pattern makes none, whatever the budget.
pub(crate) fn not_a_pattern(path: &str) -> Option<String> {
    let is_plain = fixed_start(path) == path;
    Pattern::check(&format!("^{path}")).err().filter(|_| !is_plain).map(|error| error.reason)
}

/// What stands for a path that has no pattern: everything with its fixed start is closed. None where that would be
/// everything.
pub(crate) fn stand_in(path: &str) -> Option<&str> {
    Some(fixed_start(path)).filter(|start| start.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::{HostBudgets, OF_HOST, OF_INGRESS, PatternBudget, Refused};
    use model::{Kind, Origin};
    use std::sync::Arc;

    #[test]
    fn memory_goes_with_what_is_written() {
        let mut budget = PatternBudget::of_ingress();
        let usual = (0..2000).map(|number| format!("/api/v{number}/users(/|$)(.*)"));
        for path in usual {
            let taken = budget.path(&path).map(|pattern| pattern.is_some());
            if budget.used < OF_INGRESS * 9 / 10 {
                assert_eq!(taken, Ok(true), "{path}");
            }
        }
        let mut budget = PatternBudget::of_ingress();
        let hungry = (0..200).map(|number| format!(r"/x\w{{500}}{number}$"));
        let (mut bytes, mut kept) = (0, Vec::new());
        for path in hungry {
            bytes += path.len();
            kept.push(budget.path(&path));
        }
        assert!(matches!(kept.last(), Some(Err(Refused::TooLarge(_)))));
        assert!(budget.used < 1500 * bytes, "{} for {bytes}", budget.used);
    }

    #[test]
    fn the_same_path_counts_once() {
        let mut budget = PatternBudget::of_ingress();
        let patterns: Vec<_> =
            (0..9).map(|_| budget.path("/a(.*)").expect("it is small")).collect();
        assert_eq!(budget.used, patterns[0].as_ref().expect("a pattern").size());
        assert_eq!(budget.path("/plain/path"), Ok(None));
        assert!(matches!(budget.path("/("), Err(Refused::Invalid(_))));
    }

    fn of(number: usize) -> Option<Arc<Origin>> {
        Some(Arc::new(Origin::new(Kind::Ingress, "demo", format!("i{number}"))))
    }

    /// If each looked at all that came before it, these would be 5,000,000,000 steps.
    #[test]
    fn a_host_of_a_hundred_thousand_ingresses_is_gone_through_once() {
        let mut budgets = HostBudgets::default();
        for number in 0..100_000 {
            let (compiled, budget) = budgets.path(&of(number), number % 2 == 0, "/plain");
            assert_eq!((compiled, budget.most), (Ok(None), OF_INGRESS));
        }
    }

    #[test]
    fn what_the_owner_uses_leaves_his_other_ingresses_less_and_nobody_else() {
        let mut budgets = HostBudgets::default();
        let (hungry, plain) = (r"/x\w{500}$", "/plain");
        let used: usize =
            [1, 1, 2].map(|it| budgets.path(&of(it), true, hungry).1.used)[1..].iter().sum();
        assert_eq!((budgets.used_by_owner, budgets.used_by_others), (used, 0));
        budgets.used_by_owner += OF_HOST - OF_INGRESS;
        assert_eq!(budgets.path(&of(3), true, plain).1.most, OF_INGRESS - used);
        assert_eq!(budgets.path(&of(4), false, plain).1.most, OF_INGRESS);
        assert_eq!(budgets.path(&of(1), true, plain).1.most, OF_INGRESS, "it was there before");
    }
}
