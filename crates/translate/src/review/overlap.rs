//! A host and path belong to one Ingress; a canary stands beside it.

use super::Reviewer;
use crate::config_map::Permissions;
use crate::settings::{normalise, parse};
use model::{Location, Origin, PathKind, Server, ServerName};
use objects::{Ingress, IngressBackend, IngressPath, IngressRule, ObjectKey};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Why a path of the Ingress is somebody else's. Each location of its hosts is looked at once, whatever paths it has,
/// and each other Ingress is read once, however many paths it has of these.
pub(super) fn refusal(reviewer: &Reviewer<'_>, permissions: &Permissions) -> Option<String> {
    let rules = &reviewer.ingress.rules;
    let mut wanted: BTreeMap<ServerName, HashMap<&str, Vec<&Origin>>> = BTreeMap::new();
    for rule in rules {
        wanted.entry(server_name(rule)).or_default().extend(texts(rule).map(|it| (it, Vec::new())));
    }
    for (name, texts) in &mut wanted {
        if let Some(server) = reviewer.served.servers.get(name) {
            find_owners(server, texts);
        }
    }
    let mut met: HashMap<&Origin, Option<Other<'_>>> = HashMap::new();
    for rule in rules {
        let host = host(rule);
        let Some(owners) = wanted.get(&server_name(rule)) else { continue };
        for text in texts(rule) {
            for origin in owners.get(text).into_iter().flatten().copied() {
                let other = met.entry(origin).or_insert_with(|| Other::of(origin, reviewer));
                let Some(other) = other else { continue };
                if other.has_path(host, text) && other.collides(reviewer, permissions) {
                    return Some(taken(reviewer, &other.ingress.meta.key, host, text));
                }
            }
        }
    }
    None
}

fn taken(reviewer: &Reviewer<'_>, other: &ObjectKey, host: &str, path: &str) -> String {
    let ObjectKey { namespace, name } = other;
    let who = if *namespace == reviewer.ingress.meta.key.namespace {
        format!("ingress {namespace}/{name}")
    } else {
        "another namespace".to_owned()
    };
    format!(
        "host {host:?} and path {path:?} is already defined in {who}\n\
         take another host or path, or remove it there"
    )
}

fn host(rule: &IngressRule) -> &str {
    rule.host.as_deref().filter(|host| !host.is_empty()).unwrap_or("_")
}

fn server_name(rule: &IngressRule) -> ServerName {
    ServerName::new(host(rule).to_ascii_lowercase())
}

/// The paths of a rule that lead to Services.
fn texts(rule: &IngressRule) -> impl Iterator<Item = &str> {
    let paths = rule.paths.iter().flatten().filter(|path| is_service(path));
    paths.map(|path| if path.path.is_empty() { "/" } else { path.path.as_str() })
}

/// Notes the Ingresses whose locations have the wanted paths: a prefix `/p` has `/p` and `/p/`.
fn find_owners<'a>(server: &'a Server, wanted: &mut HashMap<&str, Vec<&'a Origin>>) {
    let mut below = String::new();
    let any_below = wanted.keys().any(|text| text.ends_with('/'));
    let mut note = |path: &str, location: &'a Location| {
        if let (Some(owners), Some(origin)) = (wanted.get_mut(path), &location.origin) {
            owners.push(origin);
        }
    };
    for location in &server.locations {
        note(&location.path, location);
        let is_split = location.kind == PathKind::Prefix && !location.whole && !server.regex;
        if any_below && is_split && !location.path.ends_with('/') {
            below.clone_from(&location.path);
            below.push('/');
            note(&below, location);
        }
    }
}

/// Another Ingress that has a wanted path.
struct Other<'a> {
    ingress: &'a Ingress,
    /// The hosts of which it writes the path `/`, in lower case.
    roots: Option<HashSet<String>>,
    collides: Option<bool>,
}

impl<'a> Other<'a> {
    /// The Ingress, if it is another one that there still is.
    fn of(origin: &Origin, reviewer: &Reviewer<'a>) -> Option<Self> {
        let key = ObjectKey::new(Arc::clone(&origin.namespace), Arc::clone(&origin.name));
        let ingress = reviewer.snapshot.ingresses.get(&key)?;
        let is_other = ingress.meta.key != reviewer.ingress.meta.key;
        is_other.then_some(Self { ingress, roots: None, collides: None })
    }

    /// Whether it speaks of this path itself: a host has a `/` by itself, in the name of whoever made it, and gives it
    /// to the first who writes one (ingress-nginx: `IsDefBackend`).
    fn has_path(&mut self, of: &str, path: &str) -> bool {
        let rules = &self.ingress.rules;
        let is_catch_all = of == "_" && rules.is_empty() && self.ingress.default_backend.is_some();
        path != "/" || is_catch_all || {
            let has_root = |rule: &&IngressRule| texts(rule).any(|path| path == "/");
            let roots = rules.iter().filter(has_root).map(|rule| host(rule).to_ascii_lowercase());
            let roots = self.roots.get_or_insert_with(|| roots.collect());
            roots.contains(&of.to_ascii_lowercase())
        }
    }

    /// Whether two Ingresses with a path cannot both be taken: it is not rejected, and neither speaks of a canary or
    /// both are one.
    fn collides(&mut self, reviewer: &Reviewer<'_>, permissions: &Permissions) -> bool {
        let ingress = self.ingress;
        *self.collides.get_or_insert_with(|| {
            are_alike(reviewer, ingress) && reviewer.rejections(ingress, permissions).is_empty()
        })
    }
}

fn is_service(path: &IngressPath) -> bool {
    matches!(path.backend, IngressBackend::Service { .. })
}

/// Whether neither of two Ingresses speaks of a canary, or both are one.
fn are_alike(reviewer: &Reviewer<'_>, other: &Ingress) -> bool {
    let canary = |ingress: &Ingress| {
        let text = ingress.meta.annotations.get(&reviewer.full("canary"))?;
        Some(parse::boolean(&normalise(text)) == Ok(true))
    };
    match (canary(reviewer.ingress), canary(other)) {
        (None, None) => true,
        (own, theirs) => own == Some(true) && theirs == Some(true),
    }
}
