//! Hosts whose snippets have locations of their own: nginx's whole way of choosing (ngx_http_core_find_location).

use super::{Found, Matcher};
use crate::path::Canonical;
use model::snippet::LocationKind;
use model::{Location, PathKind, Pattern, Spent, Steps};
use std::collections::HashMap;
use std::sync::Arc;

/// A location that a snippet has, for matching.
#[derive(Clone, Debug)]
pub struct Own {
    /// For which paths.
    pub kind: LocationKind,
    /// Its number, beyond those of [`model::Server::locations`].
    pub index: usize,
    /// The number of the location that it stands in, none in the server.
    pub within: Option<usize>,
    /// Whether it passes requests on: then its path without the slash at its end is redirected to it.
    pub passes: bool,
}

/// Locations of Ingresses with those of snippets beside them and in them.
#[derive(Debug)]
pub(super) struct Mixed {
    ingresses: Matcher,
    paths: Vec<(Box<str>, PathKind)>,
    top: Shelf,
    within: HashMap<usize, Shelf>,
}

/// The locations of snippets that stand at one place.
#[derive(Debug, Default)]
struct Shelf {
    exact: HashMap<Box<[u8]>, (usize, bool)>,
    /// The longest first.
    prefixes: Vec<Prefix>,
    /// In order.
    patterns: Vec<(Pattern, usize)>,
}

#[derive(Debug)]
struct Prefix {
    path: Box<[u8]>,
    index: usize,
    /// `^~`
    last: bool,
    passes: bool,
}

/// What a look at one place finds.
enum Look {
    /// The location, whatever else there is.
    Here(usize),
    /// The location, once a slash is added.
    Slash(usize),
    /// The location with the longest prefix; an expression around it may still have the path.
    Prefix(usize),
    Nothing,
}

impl Mixed {
    pub(super) fn new(ingresses: Matcher, locations: &[Arc<Location>], own: &[Own]) -> Self {
        let paths = locations.iter().map(|location| (location.path.as_str().into(), location.kind));
        let mut mixed = Self {
            ingresses,
            paths: paths.collect(),
            top: Shelf::default(),
            within: HashMap::new(),
        };
        for own in own {
            match own.within {
                None => mixed.top.put(own),
                Some(around) => mixed.within.entry(around).or_default().put(own),
            }
        }
        let shelves = mixed.within.values_mut().chain([&mut mixed.top]);
        shelves
            .for_each(|shelf| shelf.prefixes.sort_by_key(|prefix| usize::MAX - prefix.path.len()));
        mixed
    }

    pub(super) fn find(&self, path: &Canonical<'_>, steps: &Steps) -> Found {
        let look = match &self.ingresses {
            Matcher::Patterns(patterns) => {
                let look = self.look(&self.top, None, &path.path, steps);
                match look {
                    Ok((Look::Nothing | Look::Prefix(_), false)) => {
                        match patterns.find(path, steps) {
                            Found::Location { index } => self.look_within(index, &path.path, steps),
                            Found::None => look.map(|(look, _)| look),
                            found => return found,
                        }
                    }
                    look => look.map(|(look, _)| look),
                }
            }
            ingresses => {
                let found = ingresses.find(path, steps);
                self.look(&self.top, Some(found), &path.path, steps).map(|(look, _)| look)
            }
        };
        match look {
            Ok(Look::Here(index) | Look::Prefix(index)) => Found::Location { index },
            Ok(Look::Slash(index)) => Found::AddSlash { index },
            Ok(Look::Nothing) => Found::None,
            Err(index) => Found::TooHard { index },
        }
    }

    /// Looks at one place, where plain locations of Ingresses may stand, too; and whether no expression may be asked
    /// any more. The error is the expression that took all steps.
    fn look(
        &self,
        shelf: &Shelf,
        ingress: Option<Found>,
        path: &[u8],
        steps: &Steps,
    ) -> Result<(Look, bool), usize> {
        if let Some((index, _)) = shelf.exact.get(path) {
            return Ok((Look::Here(*index), true));
        }
        let (ingress, length) = match ingress {
            Some(Found::Location { index }) if self.is_whole(index, path) => {
                return Ok((self.look_within(index, path, steps)?, true));
            }
            Some(Found::Location { index }) => (Some(index), self.length(index)),
            Some(Found::AddSlash { index }) => (Some(index), path.len() + 1),
            Some(found @ Found::TooHard { .. }) => return Err(number(found)),
            Some(Found::None) | None => (None, 0),
        };
        let own = shelf.prefixes.iter().find(|prefix| path.starts_with(&prefix.path));
        let own = own.filter(|own| ingress.is_none() || own.path.len() > length);
        let whole = own.is_some_and(|own| own.path.len() == path.len());
        if !whole && length > path.len() {
            return Ok((ingress.map_or(Look::Nothing, Look::Slash), true));
        }
        if !whole && let Some(index) = shelf.slash(path) {
            return Ok((Look::Slash(index), true));
        }
        let found = own.map(|own| own.index).or(ingress);
        let mut look = found.map_or(Look::Nothing, Look::Prefix);
        if let Some(index) = found
            && let Some(shelf) = self.within.get(&index)
        {
            match self.look(shelf, None, path, steps)?.0 {
                Look::Nothing => {}
                Look::Prefix(inner) => look = Look::Prefix(inner),
                found => return Ok((found, true)),
            }
        }
        if own.is_some_and(|own| own.last) {
            return Ok((look, true));
        }
        for (pattern, index) in &shelf.patterns {
            if pattern.try_match(path, steps).map_err(|Spent| *index)? {
                return Ok((self.look_within(*index, path, steps)?, true));
            }
        }
        Ok((look, false))
    }

    /// What of a location that is found stands within it.
    fn look_within(&self, index: usize, path: &[u8], steps: &Steps) -> Result<Look, usize> {
        let Some(shelf) = self.within.get(&index) else { return Ok(Look::Here(index)) };
        Ok(match self.look(shelf, None, path, steps)?.0 {
            Look::Nothing => Look::Here(index),
            look => look,
        })
    }

    /// Whether a location of an Ingress has exactly this path (`location =`): that of a prefix has one beside it, also
    /// where it ends in a slash, but for the root.
    fn is_whole(&self, index: usize, path: &[u8]) -> bool {
        let (own, kind) = &self.paths[index];
        *kind == PathKind::Exact || (own.as_bytes() == path && path != b"/")
    }

    /// Bytes of the prefix that a location of an Ingress is.
    fn length(&self, index: usize) -> usize {
        self.paths[index].0.trim_end_matches('/').len() + 1
    }
}

impl Shelf {
    fn put(&mut self, own: &Own) {
        match &own.kind {
            LocationKind::Exact(path) => {
                let path = path.as_bytes().into();
                self.exact.entry(path).or_insert((own.index, own.passes));
            }
            LocationKind::Prefix { path, final_prefix } => self.prefixes.push(Prefix {
                path: path.as_bytes().into(),
                index: own.index,
                last: *final_prefix,
                passes: own.passes,
            }),
            LocationKind::Regex(regex) => self.patterns.push((regex.pattern.clone(), own.index)),
            LocationKind::Named(_) => {}
        }
    }

    /// The location whose path only lacks its slash, where it passes requests on.
    fn slash(&self, path: &[u8]) -> Option<usize> {
        let is = |own: &[u8]| own.strip_suffix(b"/") == Some(path);
        let exact = self.exact.iter().find(|(own, (_, passes))| *passes && is(own));
        let prefix = || self.prefixes.iter().find(|own| own.passes && is(&own.path));
        exact.map(|(_, (index, _))| *index).or_else(|| prefix().map(|own| own.index))
    }
}

fn number(found: Found) -> usize {
    match found {
        Found::Location { index } | Found::AddSlash { index } | Found::TooHard { index } => index,
        Found::None => 0,
    }
}
