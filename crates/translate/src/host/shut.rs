//! Guarded paths that are not served: what they would have had must not be that of a location behind them that lets
//! others in.

use super::Host;
use model::{Backend, Location, PathKind, fixed_start};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Guarded paths of a namespace on a host that are told apart (docs/limits.md). Where there are more, all that comes
/// behind the first of them and has other guards is closed.
const MOST: usize = 32;

/// A guarded path that is left out, and why.
#[derive(Debug)]
pub(super) struct Shut {
    location: Arc<Location>,
    reason: String,
    /// What every path begins with that it matches, in lower case.
    start: String,
}

impl Shut {
    /// One for a path that is left out, if it is guarded.
    pub(super) fn of(location: &Arc<Location>, reason: &str) -> Option<Self> {
        let is_guarded =
            location.policy.is_guarded() || matches!(location.backend, Backend::Denied(_));
        is_guarded.then(|| {
            let whose = location.origin.as_ref().map(|origin| format!(" of {origin}"));
            let (path, whose) = (&location.path, whose.unwrap_or_default());
            let reason = format!(
                "path {path}{whose} is guarded, and cannot be served ({reason}), so nobody else gets its requests; \
                 write it in another way"
            );
            let start = fixed_start(path).to_ascii_lowercase();
            Self { location: Arc::clone(location), reason, start }
        })
    }

    /// The path that closes what a host of plain paths would give to a shorter one; none where that would be all.
    fn area(&self) -> Option<String> {
        let path = &self.location.path;
        let start = fixed_start(path);
        let area = if start.len() == path.len() {
            if self.location.kind == PathKind::Exact {
                return None;
            }
            format!("{}/", path.strip_suffix('/').unwrap_or(path))
        } else {
            start[..=start.rfind('/')?].to_owned()
        };
        (area.len() > 1).then_some(area)
    }

    /// A location that answers 503 at a path.
    fn at(&self, path: String) -> Arc<Location> {
        let backend = Backend::Denied(self.reason.clone());
        let kind = PathKind::Prefix;
        let canary = None;
        Arc::new(Location { path, kind, backend, canary, ..Location::clone(&self.location) })
    }
}

/// What is left out of a namespace, for locations of it.
struct OfNamespace<'s> {
    shut: Vec<&'s Shut>,
    /// Whether they are too many to be told apart.
    all: bool,
    /// Starts at which a location stands in for all that is behind it.
    shields: HashSet<&'s str>,
}

impl<'s> OfNamespace<'s> {
    fn of(mut shut: Vec<&'s Shut>) -> Self {
        shut.sort_by(|one, other| order(&one.location).cmp(&order(&other.location)));
        let all = shut.len() > MOST;
        if all {
            // The first of all and the first with other guards say as much.
            let first = shut[0];
            let is_other = |other: &&&Shut| !is_alike(first, &other.location);
            let second = shut.iter().find(is_other).copied();
            shut = [Some(first), second].into_iter().flatten().collect();
        }
        Self { shut, all, shields: HashSet::new() }
    }

    /// Why a location is closed, if it may get requests now whom it would not have let in.
    fn closes(&self, location: &Location) -> Option<&'s Shut> {
        if matches!(location.backend, Backend::Denied(_)) {
            return None;
        }
        let start = fixed_start(&location.path);
        self.shut.iter().copied().find(|shut| {
            let is_behind_shield =
                || self.shields.contains(&*shut.start) && location.path.len() < shut.start.len();
            order(&shut.location) < order(location)
                && (self.all || may_agree(&shut.start, start) && !is_behind_shield())
                && !is_alike(shut, location)
        })
    }
}

impl Host<'_> {
    /// Notes that a path is left out.
    pub(super) fn shut(&mut self, location: &Arc<Location>, reason: &str) {
        self.shut.extend(Shut::of(location, reason));
    }

    /// Closes what may get requests of guarded paths that are left out. It is their namespace's: what others have is
    /// theirs to guard.
    pub(super) fn close(&mut self) {
        let shut = std::mem::take(&mut self.shut);
        if shut.is_empty() {
            return;
        }
        if !self.regex {
            return self.close_areas(&shut);
        }
        let mut taken = self.prefixes(str::to_ascii_lowercase);
        let mut of: HashMap<Option<Arc<str>>, Vec<&Shut>> = HashMap::new();
        for shut in &shut {
            of.entry(namespace(&shut.location)).or_default().push(shut);
        }
        let mut of: HashMap<_, _> =
            of.into_iter().map(|(namespace, shut)| (namespace, OfNamespace::of(shut))).collect();
        for namespace in of.values_mut().filter(|namespace| !namespace.all) {
            for shut in namespace.shut.iter().filter(|shut| shut.start.len() > 1) {
                // Whose location of that text it is does not matter to those behind it.
                namespace.shields.insert(&shut.start);
                if taken.insert(shut.start.clone()) {
                    let start = fixed_start(&shut.location.path);
                    self.locations.push(shut.at(start.to_owned()));
                }
            }
        }
        for location in &mut self.locations {
            let closed = of.get(&namespace(location)).and_then(|shut| shut.closes(location));
            if let Some(shut) = closed {
                Arc::make_mut(location).backend = Backend::Denied(shut.reason.clone());
            }
        }
    }

    /// The same on a host of plain paths, where the longest one counts.
    fn close_areas(&mut self, shut: &[Shut]) {
        let bare = |path: &str| path.strip_suffix('/').unwrap_or(path).to_owned();
        let mut taken = self.prefixes(bare);
        for shut in shut {
            if let Some(area) = shut.area().filter(|area| taken.insert(bare(area))) {
                self.locations.push(shut.at(area));
            }
        }
    }

    /// The paths of the host that are prefixes, each in a form in which it can be compared.
    fn prefixes(&self, form: impl Fn(&str) -> String) -> HashSet<String> {
        let all = self.locations.iter().filter(|location| location.kind == PathKind::Prefix);
        all.map(|location| form(&location.path)).collect()
    }
}

fn namespace(location: &Location) -> Option<Arc<str>> {
    location.origin.as_ref().map(|origin| Arc::clone(&origin.namespace))
}

/// Whether a location lets in whom a path that is left out would have let in.
fn is_alike(shut: &Shut, location: &Location) -> bool {
    shut.location.policy.is_guarded_as(&location.policy)
}

/// The order in which paths of a host of regular expressions are tried.
fn order(location: &Location) -> (Reverse<usize>, Reverse<&str>) {
    (Reverse(location.path.len()), Reverse(&location.path))
}

/// Whether a path may begin with both.
fn may_agree(one: &str, other: &str) -> bool {
    let both = one.bytes().zip(other.bytes());
    both.into_iter().all(|(one, other)| one.eq_ignore_ascii_case(&other))
}
