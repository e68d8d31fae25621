//! Hosts that depend on what surprises many users of ingress-nginx. It is the same here, and changes nothing.

use super::remark::Remark;
use model::{Configuration, Location, Origin, Part, PathKind, Server};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be known about the Ingresses with locations.
pub(super) fn by_ingress(configuration: &Configuration) -> BTreeMap<Origin, Vec<Remark>> {
    let mut found: BTreeMap<Origin, Vec<Remark>> = BTreeMap::new();
    for server in configuration.servers.values() {
        for location in &server.locations {
            let Some(origin) = &location.origin else { continue };
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
    let slash = location.kind == PathKind::Prefix && path.len() > 1 && path.ends_with('/');
    (slash && !server.regex).then(|| {
        format!("{} of host {host} is redirected to {path} (301)", path.trim_end_matches('/'))
    })
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
             goes to the same path; write one such as {such}"
        ));
    }
    (target.literal().is_some() && location.kind == PathKind::Prefix && path != "/").then(|| {
        format!("every request below {path} goes to {target} itself, what follows {path} is lost")
    })
}
