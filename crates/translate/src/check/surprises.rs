//! Hosts that depend on what surprises many users of ingress-nginx. It is the same here, and changes nothing.

use super::remark::Remark;
use model::{Configuration, Location, Origin, Part, PathKind, Pattern, Server};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be known about the Ingresses with locations.
pub(super) fn by_ingress(configuration: &Configuration) -> BTreeMap<Origin, Vec<Remark>> {
    let mut found: BTreeMap<Origin, Vec<Remark>> = BTreeMap::new();
    for server in configuration.servers.values() {
        for location in &server.locations {
            let Some(origin) = location.origin.as_deref() else { continue };
            let remarks = about(server, location)
                .into_iter()
                .chain(rewritten(location))
                .map(|message| Remark { key: Some("spec.rules".to_owned()), message });
            found.entry(origin.clone()).or_default().extend(remarks);
        }
    }
    found
}

fn about(server: &Server, location: &Arc<Location>) -> Option<String> {
    let (path, host) = (&location.path, &server.name);
    if server.regex && !location.whole && path != "/" {
        return Some(format!(
            "path {path} of host {host} is a regular expression without regard to case, because another path of the \
             host is one (use-regex or rewrite-target)"
        ));
    }
    if !server.regex && path.contains(['(', '[', '*', '\\', '|', '^', '$']) {
        return Some(format!(
            "path {path} of host {host} looks like a regular expression and is none without use-regex: it matches only \
             what begins with these very characters"
        ));
    }
    if server.regex {
        return None;
    }
    if let Some((what, instead)) = unheard_of(path) {
        return Some(format!(
            "path {path} of host {host} {what}, which hardly any request has when paths are compared: write {instead}"
        ));
    }
    let slash = location.kind == PathKind::Prefix && path.len() > 1 && path.ends_with('/');
    let bare = path.trim_end_matches('/');
    (slash && server.locations.iter().all(|other| other.path != bare))
        .then(|| format!("{bare} of host {host} is redirected to {path} (301)"))
}

/// What a path has that the canonical path of a request never has, and what to write instead.
fn unheard_of(path: &str) -> Option<(&'static str, &'static str)> {
    let is_escape = |at: usize| {
        path.as_bytes().get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    };
    if path.contains("//") {
        return Some(("has two slashes in a row", "one"));
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Some(("has a dot segment", "the path that it leads to"));
    }
    if path.contains('?') {
        return Some(("has a question mark", "the path alone, the query is no part of it"));
    }
    if path.match_indices('%').any(|(at, _)| is_escape(at)) {
        return Some(("has an escape (%)", "the character that it stands for"));
    }
    None
}

/// A rewrite that sends everything to one place.
fn rewritten(location: &Location) -> Option<String> {
    let rewrite = location.policy.rewrite.as_ref().filter(|_| !location.is_of_host())?;
    let path = &location.path;
    let target = &rewrite.target;
    let takes_groups = target.parts().iter().any(|part| matches!(part, Part::Capture(_)));
    if takes_groups && !path.contains('(') {
        // A path begins with a slash, so there the slash is no group.
        let such = match path.trim_end_matches('/') {
            "" => "/(.*) and $1".to_owned(),
            path => format!("{path}(/|$)(.*) and $2"),
        };
        return Some(format!(
            "rewrite-target {target} takes a group of path {path}, which has none: it is empty, so that every request \
             goes to the same path; write one such as {such}, with pathType: ImplementationSpecific"
        ));
    }
    if let Some(lacks) = lacking_group(location, target.parts()) {
        return Some(lacks);
    }
    (target.literal().is_some() && location.kind == PathKind::Prefix && path != "/").then(|| {
        format!("every request below {path} goes to {target} itself, what follows {path} is lost")
    })
}

/// A group that a rewrite takes and that its path, which is an expression with groups, does not have.
fn lacking_group(location: &Location, parts: &[Part]) -> Option<String> {
    let group = |part: &Part| match part {
        Part::Capture(group) => Some(*group),
        Part::Text(_) | Part::Variable(_) => None,
    };
    let highest = parts.iter().filter_map(group).max()?;
    let path = &location.path;
    let there = Pattern::names(path).len();
    (highest > there && there > 0).then(|| {
        let groups = if there == 1 { "one group alone" } else { "fewer groups" };
        format!("rewrite-target takes ${highest} of path {path}, which has {groups}: it is empty; write ${there}, say")
    })
}
