//! Paths that nginx does not take as they are: whatever they could mean is closed, so that nobody else serves what was
//! to be guarded. Who writes such a path gets no more of a host than a path that nginx takes would give him.

use super::super::quote::quote;
use super::super::tree::put;
use super::super::{Block, Scope, Word};
use super::names::{self, Name, path};
use model::{Location, RESERVED_PATHS, Server};
use std::collections::HashSet;

/// Bytes of what a path of a pattern begins with, at most.
const BEGINNING: usize = 1000;

/// Whether a location has other paths than it asks for: its Ingress was blamed for them, or they are reserved.
pub(super) fn is_closed(scope: &Scope<'_>, server: &Server, location: &Location) -> bool {
    let is_blamed = || location.origin.as_deref().is_some_and(|it| scope.closed.contains(it));
    is_reserved(server, location) || is_blamed()
}

fn is_reserved(server: &Server, location: &Location) -> bool {
    !server.regex && location.path.starts_with(RESERVED_PATHS)
}

/// What nginx calls it: at least all that it could match.
pub(super) fn names(server: &Server, location: &Location, taken: &HashSet<Name>) -> Vec<Name> {
    let path = path(location);
    if server.regex {
        // Its place among the patterns stays that of the whole path.
        return vec![("~*", format!("^{}", beginning(path)))];
    }
    if is_reserved(server, location) {
        return vec![("", RESERVED_PATHS.to_owned())];
    }
    if path.contains('\0') {
        // nginx answers 400 before it looks for a location.
        return Vec::new();
    }
    let names = names::names(server, location);
    if names.iter().all(|(_, path)| quote(path).is_some()) {
        return names;
    }
    // As much of the beginning as nginx reads, unless somebody else has just that.
    let ends = path.char_indices().rev().map(|(end, _)| end).filter(|end| *end > 0);
    let mut beginnings = ends.map(|end| ("", path[..end].to_owned()));
    let free = |name: &Name| quote(&name.1).is_some() && !taken.contains(name);
    beginnings.find(free).into_iter().collect()
}

/// What the paths of a pattern begin with at least, as a pattern.
fn beginning(path: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-~".contains(c);
    let start = model::fixed_start(path);
    let length = start.find(|c| !is_plain(c)).unwrap_or(start.len()).min(BEGINNING);
    if length == 0 { "/" } else { &start[..length] }
}

/// What is in it.
pub(super) fn body(location: &Location) -> Block {
    let mut block = Block::default();
    if let Some(origin) = &location.origin {
        put!(block, "set", "$namespace", Word::literal(&origin.namespace));
        put!(block, "set", "$ingress_name", Word::literal(&origin.name));
    }
    put!(block, "return", 503_u16);
    block
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn a_beginning_is_that_of_everything_a_pattern_could_match() {
        for (path, expected) in [
            ("/a/\\p{Letter}", "/a/"),
            ("/a/b?c", "/a/"),
            ("/?", "/"),
            ("/ab{2}", "/a"),
            ("/a|/b", "/"),
            ("/app(/|$)(.*)", "/app"),
            ("/é", "/"),
            ("(", "/"),
        ] {
            assert_eq!(beginning(path), expected, "{path}");
        }
    }
}
