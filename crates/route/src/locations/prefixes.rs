//! Plain hosts: an exact path, else the longest prefix of whole segments.

use super::Found;
use model::{Backend, Location, PathKind};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

/// The paths of a plain host in their order: a request costs one search for its whole path and one for each of its
/// folders that is not deeper than the deepest path of the host. Nearly all hosts have a few paths, and there may be
/// ten thousands of hosts: in order they take half the memory of a hash map.
#[derive(Debug)]
pub(super) struct Prefixes {
    /// By path without its final slash, so that `/p` and `/p/` are found together and the root has the empty key.
    /// Short ones come first: most comparisons are of two numbers then.
    nodes: Box<[(Box<[u8]>, Node)]>,
    /// The location of everything that nothing else matches.
    root: Option<Place>,
    /// Bytes of the longest key.
    longest: usize,
    /// Slashes of the key that has most of them.
    deepest: usize,
}

/// A place in [`model::Server::locations`], counted from 1, so that none needs no room of its own.
type Place = NonZero<u32>;

/// What the paths `/p` and `/p/` and those below lead to.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The location of exactly `/p`.
    file: Option<Place>,
    /// The location of exactly `/p/`.
    folder: Option<Place>,
    /// The location of everything that starts with `/p/`.
    below: Option<Place>,
    /// The location that answers `/p` with the redirect to `/p/`.
    slash: Option<Place>,
}

impl Prefixes {
    pub(super) fn compile(locations: &[Arc<Location>]) -> Self {
        let mut nodes: BTreeMap<&[u8], Node> = BTreeMap::new();
        let of_kind = |kind| {
            let places = (1..).filter_map(NonZero::new).zip(locations);
            places.filter(move |(_, location)| location.kind == kind)
        };
        for (place, location) in of_kind(PathKind::Exact) {
            let (key, is_folder) = split(&location.path);
            let node = nodes.entry(key).or_default();
            let exactly = if is_folder { &mut node.folder } else { &mut node.file };
            exactly.get_or_insert(place);
        }
        for (place, location) in of_kind(PathKind::Prefix) {
            let (key, is_folder) = split(&location.path);
            let node = nodes.entry(key).or_default();
            node.below.get_or_insert(place);
            if !is_folder {
                node.file.get_or_insert(place);
            }
        }
        for node in nodes.values_mut() {
            node.slash = slash(node, locations);
        }
        let mut sorted: Vec<(Box<[u8]>, Node)> =
            nodes.iter().map(|(key, node)| ((*key).into(), *node)).collect();
        sorted.sort_by_key(|(key, _)| key.len());
        let slashes = |key: &[u8]| key.iter().filter(|byte| **byte == b'/').count();
        Self {
            root: nodes.get(&b""[..]).and_then(|root| root.below),
            longest: nodes.keys().map(|key| key.len()).max().unwrap_or(0),
            deepest: nodes.keys().map(|key| slashes(key)).max().unwrap_or(0),
            nodes: sorted.into(),
        }
    }

    fn node(&self, key: &[u8]) -> Option<&Node> {
        let place = self
            .nodes
            .binary_search_by(|(own, _)| own.len().cmp(&key.len()).then_with(|| (**own).cmp(key)));
        let place = place.ok()?;
        Some(&self.nodes[place].1)
    }

    pub(super) fn find(&self, path: &[u8]) -> Found {
        let (key, is_folder) = split_bytes(path);
        if key.len() <= self.longest
            && let Some(node) = self.node(key)
        {
            let index = if is_folder { node.folder.or(node.below) } else { node.file };
            if let Some(index) = index {
                return location(index);
            }
            if let Some(index) = node.slash.filter(|_| !is_folder) {
                return Found::AddSlash { index: number(index) };
            }
        }
        match self.find_below(key).or(self.root) {
            Some(index) => location(index),
            None => Found::None,
        }
    }

    /// The location of the deepest folder that `path` is in, the root excepted.
    fn find_below(&self, path: &[u8]) -> Option<Place> {
        if self.deepest == 0 {
            return None;
        }
        let mut slashes =
            path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut end = match slashes.nth(self.deepest) {
            Some(at) => at,
            None => path.iter().rposition(|byte| *byte == b'/')?,
        };
        while end > 0 {
            let folder = &path[..end];
            // A long segment is not worth its search: no key is that long.
            let node = if end <= self.longest { self.node(folder) } else { None };
            if let Some(index) = node.and_then(|node| node.below) {
                return Some(index);
            }
            end = folder.iter().rposition(|byte| *byte == b'/')?;
        }
        None
    }
}

fn location(place: Place) -> Found {
    Found::Location { index: number(place) }
}

/// The number of a location, counted from 0.
fn number(place: Place) -> usize {
    place.get() as usize - 1
}

/// The key of a path and whether it ends in a slash; the empty path is the root.
fn split(path: &str) -> (&[u8], bool) {
    if path.is_empty() { (b"", true) } else { split_bytes(path.as_bytes()) }
}

fn split_bytes(path: &[u8]) -> (&[u8], bool) {
    match path.strip_suffix(b"/") {
        Some(key) => (key, true),
        None => (path, false),
    }
}

/// nginx redirects `/p` to `/p/` where only the latter exists, even as an exact path, and is proxied, which a denied
/// location is not.
fn slash(node: &Node, locations: &[Arc<Location>]) -> Option<Place> {
    let is_proxied = |place: Place| !matches!(locations[number(place)].backend, Backend::Denied(_));
    let mut owners = node.folder.into_iter().chain(node.below);
    owners.clone().any(is_proxied).then(|| owners.next()).flatten()
}
