//! Whether ingress-nginx refused, too, what is refused here (compat/annotations.csv); a test asks the recordings.

use crate::ingress::NO_SERVICE;
use crate::snippets;
use model::{Problem, Why};
use serde::Serialize;

/// Who refuses an Ingress. Of several reasons the last in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedBy {
    /// Fairway, and nobody knows whether ingress-nginx did: a text that nginx alone could judge, a Secret of two forms.
    Unknown,
    /// Fairway alone: ingress-nginx served it.
    Fairway,
    /// ingress-nginx as well: it left the Ingress out, answered 403 or 503, or nginx took no configuration with it.
    Both,
}

/// Annotations of which ingress-nginx passed over whatever is wrong: it dropped a guard, or served without.
const PASSED_OVER: [&str; 5] = [
    // The whole authenticator is dropped (decisions.md row 1).
    "auth-always-set-cookie",
    "proxy-ssl-verify",
    // Without validation a limit that is none is no limit; with it, the Ingress is not taken.
    "limit-connections",
    "limit-rps",
    "limit-rpm",
];

/// Who refuses what is closed by a mistake in the ConfigMap; `text` is what its key says.
pub(super) fn of_config_map(name: &str, problem: &Problem, text: &str) -> RefusedBy {
    match name {
        // This machine was asked, any number of headers was passed on, and what is no address was passed over.
        "global-auth-url" if problem.is(Why::TookIt) || !has_host(text) => RefusedBy::Fairway,
        // nginx alone could judge the text.
        _ => RefusedBy::Unknown,
    }
}

/// Whether ingress-nginx took an address of the authenticator for all: whatever has a scheme and a host.
fn has_host(url: &str) -> bool {
    url.trim().split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        is_scheme && !scheme.is_empty() && !host.is_empty() && !host.contains("..")
    })
}

/// Who refuses what a Problem is about; none where both leave out the same part. `annotation` is its key, unprefixed,
/// where it is one; that of a canary counts with ingress-nginx only where it refuses the object.
pub(super) fn of(
    problem: &Problem,
    annotation: Option<&str>,
    of_canary: bool,
) -> Option<RefusedBy> {
    Some(match annotation {
        _ if problem.is(Why::NotTaken) || problem.is(Why::NotAllowed) => RefusedBy::Both,
        // Both send everybody to the main side.
        Some("canary-by-header-pattern") => return None,
        _ if of_canary || problem.is(Why::TookIt) => RefusedBy::Fairway,
        _ if problem.is(Why::OtherNamespace) => RefusedBy::Fairway,
        Some(name) if snippets::ANNOTATIONS.contains(&name) => RefusedBy::Unknown,
        _ if problem.is(Why::Unknown) => RefusedBy::Unknown,
        Some(name) if PASSED_OVER.contains(&name) => RefusedBy::Fairway,
        Some(_) => RefusedBy::Both,
        None if *problem.message == *NO_SERVICE => return None,
        // A host that is none, a path without a slash in front: no API server takes such an Ingress.
        None if problem.is(Why::LeftOut) => RefusedBy::Both,
        None => RefusedBy::Fairway,
    })
}
