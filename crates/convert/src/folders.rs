//! `/p` and `/p/` of a host, which a route takes for one place, as hosts of Ingresses do. Of two routes that name it
//! other rules decide than of two Ingresses, so that each path is said as what it has, and no more.

use crate::keys::NO_ACTION;
use crate::lost::{Ledger, Weight};
use model::{Location, PathKind, Server};
use objects::ObjectKey;
use std::borrow::Cow;
use std::collections::HashMap;

/// Who has what of each place of a host.
pub(crate) struct Folders<'s> {
    /// The exact paths.
    exact: HashMap<&'s str, &'s Location>,
    /// By paths without a slash at the end: the prefix that has all that is below, which is the first one.
    first: HashMap<&'s str, &'s Location>,
}

impl<'s> Folders<'s> {
    pub(crate) fn of(server: &'s Server) -> Self {
        let mut folders = Self { exact: HashMap::new(), first: HashMap::new() };
        // Expressions share nothing.
        let locations = server.locations.iter().filter(|_| !server.regex);
        for location in locations.map(|location| &**location) {
            match location.kind {
                PathKind::Exact => folders.exact.entry(&location.path).or_insert(location),
                PathKind::Prefix => folders.first.entry(bare(&location.path)).or_insert(location),
            };
        }
        folders
    }

    /// What a location has beside those that come first; nothing if they have all of it.
    pub(crate) fn left_to(
        &self,
        ledger: &mut Ledger<'_>,
        location: &'s Location,
        of: &ObjectKey,
    ) -> Option<Cow<'s, Location>> {
        let path = &location.path;
        let first = self.first.get(bare(path)).filter(|_| location.kind == PathKind::Prefix);
        let Some(first) = first.filter(|first| !std::ptr::eq(**first, location)) else {
            return Some(Cow::Borrowed(location));
        };
        // The first one has its own path, and what is below: the name itself may be left to another one.
        let has_all = path.ends_with('/') || first.path == *path;
        let before = if has_all { Some(first) } else { self.exact.get(path.as_str()) };
        let (other, has, remedy) = match before {
            Some(before) => (before, "has all of its requests", "leave it out"),
            None => (first, "has what is below: it is Exact now", NO_ACTION),
        };
        let whose = other.origin.as_ref().map(|origin| format!(" of {origin}")).unwrap_or_default();
        let reason = format!("path {}{whose} goes first, and {has}", other.path);
        ledger.add(Some(of), &format!("path {path}"), Weight::Note, reason, remedy);
        let is_left = before.is_none();
        is_left.then(|| Cow::Owned(Location { kind: PathKind::Exact, ..location.clone() }))
    }
}

/// A path without the slash at its end.
fn bare(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}
