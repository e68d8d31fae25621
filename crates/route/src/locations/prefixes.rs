//! Plain hosts: an exact path, else the longest prefix of whole segments.

use super::Found;
use model::{Backend, Location, PathKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The paths of a plain host, sorted bytewise, each knowing the longest other prefix that it starts with. The last
/// path that is not above the requested one, or one that it starts with, is the longest prefix.
#[derive(Debug)]
pub(super) struct Prefixes {
    paths: Box<[Box<[u8]>]>,
    nodes: Box<[Node]>,
}

/// What a path of [`Prefixes::paths`] leads to.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The location of requests for exactly this path.
    exact: Option<u32>,
    /// The location of requests for everything that starts with this path.
    below: Option<u32>,
    /// The location that answers once a slash is added to this path.
    slash: Option<u32>,
    /// The longest path with something below that this path starts with.
    parent: Option<u32>,
}

impl Prefixes {
    pub(super) fn compile(locations: &[Arc<Location>]) -> Self {
        let mut nodes: BTreeMap<Box<[u8]>, Node> = BTreeMap::new();
        let numbered = || (0_u32..).zip(locations);
        for (index, location) in numbered().filter(|(_, location)| location.kind == PathKind::Exact)
        {
            nodes.entry(key(&location.path)).or_default().exact.get_or_insert(index);
        }
        for (index, location) in
            numbered().filter(|(_, location)| location.kind == PathKind::Prefix)
        {
            let path = key(&location.path);
            if path.ends_with(b"/") {
                nodes.entry(path).or_default().below.get_or_insert(index);
            } else {
                let below = [&path, &b"/"[..]].concat().into();
                nodes.entry(below).or_default().below.get_or_insert(index);
                nodes.entry(path).or_default().exact.get_or_insert(index);
            }
        }
        add_slashes(&mut nodes, locations);
        let (paths, mut nodes): (Vec<_>, Vec<_>) = nodes.into_iter().unzip();
        link(&paths, &mut nodes);
        Self { paths: paths.into(), nodes: nodes.into() }
    }

    pub(super) fn find(&self, path: &[u8]) -> Found {
        let after = self.paths.partition_point(|candidate| **candidate <= *path);
        let Some(mut at) = after.checked_sub(1) else { return Found::None };
        let mut node = &self.nodes[at];
        if *self.paths[at] == *path {
            if let Some(index) = node.exact {
                return Found::Location { index: index as usize };
            }
            if let Some(index) = node.slash {
                return Found::AddSlash { index: index as usize };
            }
        }
        loop {
            if let Some(index) = node.below
                && path.starts_with(&self.paths[at])
            {
                return Found::Location { index: index as usize };
            }
            let Some(parent) = node.parent else { return Found::None };
            at = parent as usize;
            node = &self.nodes[at];
        }
    }
}

/// A path as it is compared; the empty one is the root.
fn key(path: &str) -> Box<[u8]> {
    if path.is_empty() { Box::from(*b"/") } else { path.as_bytes().into() }
}

/// nginx redirects `/p` to `/p/` where only the latter exists and is proxied, which a denied location is not.
fn add_slashes(nodes: &mut BTreeMap<Box<[u8]>, Node>, locations: &[Arc<Location>]) {
    let is_proxied =
        |index: &u32| !matches!(locations[*index as usize].backend, Backend::Denied(_));
    let wanted: Vec<(Box<[u8]>, u32)> = nodes
        .iter()
        .filter_map(|(path, node)| {
            let without = path.strip_suffix(b"/").filter(|rest| !rest.is_empty())?;
            let index = node.below.filter(is_proxied)?;
            Some((without.into(), index))
        })
        .collect();
    for (path, index) in wanted {
        nodes.entry(path).or_default().slash = Some(index);
    }
}

/// Sets the parents. In sorted order whatever starts with a path follows it directly, so a stack of open paths suffices.
fn link(paths: &[Box<[u8]>], nodes: &mut [Node]) {
    let mut open: Vec<u32> = Vec::new();
    for (at, path) in (0_u32..).zip(paths) {
        while open.last().is_some_and(|top| !path.starts_with(&paths[*top as usize])) {
            open.pop();
        }
        let node = &mut nodes[at as usize];
        node.parent = open.last().copied();
        if node.below.is_some() {
            open.push(at);
        }
    }
}
