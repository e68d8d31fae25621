//! A host and path belong to one Ingress; a canary stands beside it.

use super::Reviewer;
use crate::config_map::Permissions;
use crate::settings::{normalise, parse};
use model::{Location, PathKind, Server, ServerName};
use objects::{Ingress, IngressBackend, IngressPath, ObjectKey};
use std::sync::Arc;

/// Why a path of the Ingress is somebody else's.
pub(super) fn refusal(reviewer: &Reviewer<'_>, permissions: &Permissions) -> Option<String> {
    for rule in &reviewer.ingress.rules {
        let host = rule.host.as_deref().filter(|host| !host.is_empty()).unwrap_or("_");
        let name = ServerName::new(host.to_ascii_lowercase());
        let Some(server) = reviewer.served.servers.get(&name) else { continue };
        for path in rule.paths.iter().flatten().filter(|path| is_service(path)) {
            let text = if path.path.is_empty() { "/" } else { &path.path };
            let others = owners(server, text)
                .filter_map(|key| reviewer.snapshot.ingresses.get(&key))
                .filter(|other| other.meta.key != reviewer.ingress.meta.key);
            for other in others {
                if has_path(other, host, text)
                    && collide(reviewer, other)
                    && reviewer.rejections(other, permissions).is_empty()
                {
                    let ObjectKey { namespace, name } = &other.meta.key;
                    let who = if *namespace == reviewer.ingress.meta.key.namespace {
                        format!("ingress {namespace}/{name}")
                    } else {
                        "another namespace".to_owned()
                    };
                    return Some(format!(
                        "host {host:?} and path {text:?} is already defined in {who}\n\
                         take another host or path, or remove it there"
                    ));
                }
            }
        }
    }
    None
}

/// Whether an Ingress speaks of this path itself: a host has a `/` by itself, in the name of whoever made it, and gives
/// it to the first who writes one (ingress-nginx: `IsDefBackend`).
fn has_path(ingress: &Ingress, host: &str, path: &str) -> bool {
    let is_of_host =
        |of: Option<&str>| of.filter(|of| !of.is_empty()).unwrap_or("_").eq_ignore_ascii_case(host);
    let is_root = |one: &IngressPath| is_service(one) && matches!(one.path.as_str(), "" | "/");
    let has_root = || {
        let rules = ingress.rules.iter().filter(|rule| is_of_host(rule.host.as_deref()));
        rules.flat_map(|rule| rule.paths.iter().flatten()).any(is_root)
    };
    let is_catch_all = host == "_" && ingress.rules.is_empty() && ingress.default_backend.is_some();
    path != "/" || is_catch_all || has_root()
}

fn is_service(path: &IngressPath) -> bool {
    matches!(path.backend, IngressBackend::Service { .. })
}

/// The Ingresses whose locations have this path: a prefix `/p` has `/p` and `/p/`.
fn owners<'a>(server: &'a Server, path: &'a str) -> impl Iterator<Item = ObjectKey> + 'a {
    let has = move |location: &&Arc<Location>| {
        let is_split = location.kind == PathKind::Prefix && !location.whole && !server.regex;
        let below = || location.path.strip_suffix('/').unwrap_or(&location.path);
        location.path == path
            || (is_split && path.strip_suffix('/').is_some_and(|bare| bare == below()))
    };
    let origins =
        server.locations.iter().filter(has).filter_map(|location| location.origin.as_deref());
    origins.map(|origin| ObjectKey::new(Arc::clone(&origin.namespace), Arc::clone(&origin.name)))
}

/// Two Ingresses collide if neither speaks of a canary, or both are one.
fn collide(reviewer: &Reviewer<'_>, other: &Ingress) -> bool {
    let canary = |ingress: &Ingress| {
        let text = ingress.meta.annotations.get(&reviewer.full("canary"))?;
        Some(parse::boolean(&normalise(text)) == Ok(true))
    };
    match (canary(reviewer.ingress), canary(other)) {
        (None, None) => true,
        (own, theirs) => own == Some(true) && theirs == Some(true),
    }
}
