//! What is asked for, or sent, otherwise than by ingress-nginx because of how an annotation is written.

use super::differences::of_config_map;
use super::remark::{Remark, named_of_config_map};
use crate::Options;
use crate::ingress::annotation_of;
use crate::settings::parse;
use objects::{Ingress, ObjectKey, Snapshot};

/// Fields that the question to an authenticator has by itself.
const OF_QUESTION: [&str; 8] = [
    "host",
    "x-auth-request-redirect",
    "x-forwarded-for",
    "x-original-method",
    "x-original-url",
    "x-real-ip",
    "x-request-id",
    "x-sent-from",
];
const PATHLESS_GUARD: &str = "has no path, so that / is asked for; ingress-nginx asked for /_external-auth-…: \
    who answers 404 to that and 200 to / lets people in now. Write the path that is meant";
const PATHLESS_COPY: &str =
    "has no path, so that copies have the path of the request; ingress-nginx asked for /_mirror-…";

/// Where one Ingress asks or sends otherwise.
pub(super) fn of(ingress: &Ingress, snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let value = |name: &str| annotation_of(ingress, name, options);
    let full = |name: &str| format!("{}/{name}", options.annotations_prefix);
    let mut found: Vec<Remark> = Vec::new();
    let mut say = |key: String, message: &str| {
        found.push(Remark { key: Some(key), message: message.to_owned() });
    };
    match value("auth-url") {
        Some(url) if is_pathless(&url) => say(full("auth-url"), PATHLESS_GUARD),
        Some(_) => {}
        None => {
            let url = of_config_map("global-auth-url", snapshot, options);
            let is_off =
                value("enable-global-auth").is_some_and(|text| parse::boolean(&text) == Ok(false));
            if let Some(map) = &options.config_map
                && !is_off
                && url.is_some_and(is_pathless)
            {
                say(named_of_config_map(map, "global-auth-url"), PATHLESS_GUARD);
            }
        }
    }
    if value("mirror-target").is_some_and(|url| is_pathless(&url)) {
        say(full("mirror-target"), PATHLESS_COPY);
    }
    if value("rewrite-target").is_some_and(|target| lacks_slash(&target, ingress)) {
        let message = "gets a slash in front where it has none; ingress-nginx sent it as it was";
        say(full("rewrite-target"), message);
    }
    let fields = value("auth-proxy-set-headers").and_then(|name| {
        let map = snapshot.config_maps.get(&named(&name, ingress))?;
        let names = map
            .data
            .keys()
            .filter(|name| OF_QUESTION.contains(&name.to_ascii_lowercase().as_str()));
        let names: Vec<String> = names.map(ToString::to_string).collect();
        (!names.is_empty()).then(|| names.join(", "))
    });
    if let Some(fields) = fields {
        let message = format!(
            "replaces {fields} of the question to the authenticator; ingress-nginx sent both, its own and these"
        );
        say(full("auth-proxy-set-headers"), &message);
    }
    found
}

/// A ConfigMap as an annotation names it.
fn named(reference: &str, ingress: &Ingress) -> ObjectKey {
    match reference.split_once('/') {
        Some((namespace, name)) => ObjectKey::new(namespace, name),
        None => ObjectKey::new(&*ingress.meta.key.namespace, reference),
    }
}

/// Whether a URL ends with its host. Behind a variable there may be a path.
fn is_pathless(url: &str) -> bool {
    let Some((scheme, rest)) = url.trim().split_once("://") else { return false };
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_http && !rest.is_empty() && !rest.contains(['/', '?', '#', '$'])
}

/// Whether a target may begin with something else than a slash, and leads to no other host.
fn lacks_slash(target: &str, ingress: &Ingress) -> bool {
    let is_text = |first: char| !matches!(first, '/' | '$') && !target.starts_with("http");
    let mut paths = ingress.rules.iter().flat_map(|rule| rule.paths.iter().flatten());
    let group = target.strip_prefix('$').and_then(|rest| rest.chars().next()?.to_digit(10));
    match group.filter(|group| *group > 0) {
        Some(group) => {
            paths.any(|path| !has_slash(&path.path, usize::try_from(group).unwrap_or_default()))
        }
        None => target.chars().next().is_some_and(is_text),
    }
}

/// Whether the group of this number begins with a slash, in so far as it is written at its beginning.
fn has_slash(pattern: &str, number: usize) -> bool {
    let opens = pattern.match_indices('(').filter(|(at, _)| {
        let (before, behind) = (&pattern[..*at], &pattern[at + 1..]);
        !before.ends_with('\\') && !behind.starts_with('?')
    });
    let group = opens.map(|(at, _)| &pattern[at + 1..]).nth(number - 1);
    group.is_some_and(|group| group.trim_start_matches('(').starts_with('/'))
}
