//! What nginx calls a location.

use super::super::pattern::{limit_of_paths, pattern_for};
use model::{Location, PathKind, Server};

/// Modifier and path.
pub(in crate::conf) type Name = (&'static str, String);

/// What nginx calls the location (compat/behaviour.md section 5).
pub(super) fn names(server: &Server, location: &Location) -> Vec<Name> {
    let path = path(location);
    if server.regex {
        let source = pattern_for(location, path);
        let path = source.as_str();
        let splits = location.kind == PathKind::Prefix
            && !location.whole
            && path != "/"
            && !path.ends_with('/');
        let limit = limit_of_paths(server);
        let limit = limit.as_str();
        let own = ("~*", format!("{limit}^{path}"));
        return if splits { vec![("~*", format!("{limit}^{path}/")), own] } else { vec![own] };
    }
    match location.kind {
        PathKind::Exact => vec![("=", path.to_owned())],
        PathKind::Prefix if path.ends_with('/') => vec![("", path.to_owned())],
        PathKind::Prefix => vec![("=", path.to_owned()), ("", format!("{path}/"))],
    }
}

/// The path of a location, as far as it has one.
pub(super) fn path(location: &Location) -> &str {
    if location.path.is_empty() { "/" } else { &location.path }
}
