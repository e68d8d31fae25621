//! Plain hosts: an exact path, else the longest prefix of whole segments.

use super::Found;
use foldhash::fast::FixedState;
use model::{Backend, Location, PathKind};
use std::collections::HashMap;
use std::sync::Arc;

/// The paths of a plain host, found by hash: a request costs one look for its whole path and one for each of its
/// folders that is not deeper than the deepest path of the host, however many paths there are.
#[derive(Debug)]
pub(super) struct Prefixes {
    /// By path without its final slash, so that `/p` and `/p/` are found together and the root has the empty key.
    /// The keys come from the configuration, so the hash need not be keyed.
    nodes: HashMap<Box<[u8]>, Node, FixedState>,
    /// The location of everything that nothing else matches.
    root: Option<u32>,
    /// Bytes of the longest key.
    longest: usize,
    /// Slashes of the key that has most of them.
    deepest: usize,
}

/// What the paths `/p` and `/p/` and those below lead to.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The location of exactly `/p`.
    file: Option<u32>,
    /// The location of exactly `/p/`.
    folder: Option<u32>,
    /// The location of everything that starts with `/p/`.
    below: Option<u32>,
    /// The location that answers `/p` with the redirect to `/p/`.
    slash: Option<u32>,
}

impl Prefixes {
    pub(super) fn compile(locations: &[Arc<Location>]) -> Self {
        let mut nodes: HashMap<Box<[u8]>, Node, FixedState> = HashMap::default();
        let numbered = || (0_u32..).zip(locations);
        for (index, location) in numbered().filter(|(_, location)| location.kind == PathKind::Exact)
        {
            let (key, is_folder) = split(&location.path);
            let node = nodes.entry(key.into()).or_default();
            let place = if is_folder { &mut node.folder } else { &mut node.file };
            place.get_or_insert(index);
        }
        for (index, location) in
            numbered().filter(|(_, location)| location.kind == PathKind::Prefix)
        {
            let (key, is_folder) = split(&location.path);
            let node = nodes.entry(key.into()).or_default();
            node.below.get_or_insert(index);
            if !is_folder {
                node.file.get_or_insert(index);
            }
        }
        for node in nodes.values_mut() {
            node.slash = slash(node, locations);
        }
        let slashes = |key: &[u8]| key.iter().filter(|byte| **byte == b'/').count();
        Self {
            root: nodes.get(&b""[..]).and_then(|root| root.below),
            longest: nodes.keys().map(|key| key.len()).max().unwrap_or(0),
            deepest: nodes.keys().map(|key| slashes(key)).max().unwrap_or(0),
            nodes,
        }
    }

    pub(super) fn find(&self, path: &[u8]) -> Found {
        let (key, is_folder) = split_bytes(path);
        if key.len() <= self.longest
            && let Some(node) = self.nodes.get(key)
        {
            let index = if is_folder { node.folder.or(node.below) } else { node.file };
            if let Some(index) = index {
                return location(index);
            }
            if let Some(index) = node.slash.filter(|_| !is_folder) {
                return Found::AddSlash { index: index as usize };
            }
        }
        match self.find_below(key).or(self.root) {
            Some(index) => location(index),
            None => Found::None,
        }
    }

    /// The location of the deepest folder that `path` is in, the root excepted.
    fn find_below(&self, path: &[u8]) -> Option<u32> {
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
            // A long segment is not worth its hash: no key is that long.
            let node = if end <= self.longest { self.nodes.get(folder) } else { None };
            if let Some(index) = node.and_then(|node| node.below) {
                return Some(index);
            }
            end = folder.iter().rposition(|byte| *byte == b'/')?;
        }
        None
    }
}

fn location(index: u32) -> Found {
    Found::Location { index: index as usize }
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
fn slash(node: &Node, locations: &[Arc<Location>]) -> Option<u32> {
    let is_proxied = |index: u32| !matches!(locations[index as usize].backend, Backend::Denied(_));
    let mut owners = node.folder.into_iter().chain(node.below);
    owners.clone().any(is_proxied).then(|| owners.next()).flatten()
}
