//! Whether ingress-nginx refused, too, what is refused here (compat/annotations.csv); a test asks the recordings.

use crate::settings::NOT_TAKEN;
use crate::snippets;
use crate::upstream::NOT_OUTSIDE;
use model::Problem;
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

/// What ingress-nginx passed over, and dropped a guard for or served without.
const PASSED_OVER: &[(&str, &str)] = &[
    // The whole authenticator is dropped (decisions.md row 1).
    ("auth-always-set-cookie", ""),
    ("auth-request-redirect", "holds other signs"),
    ("auth-proxy-set-headers", "is not the name of a ConfigMap"),
    ("proxy-ssl-verify", ""),
    // Without validation a limit that is none is no limit; with it, the Ingress is not taken.
    ("limit-connections", ""),
    ("limit-rps", ""),
    ("limit-rpm", ""),
    // Bounds of our own.
    ("auth-tls-secret", " revocation lists in ca.crl: leave "),
    ("auth-tls-secret", " authorities in ca.crt, and "),
    ("server-alias", "takes too long for a pattern"),
    ("server-alias", "is too much: "),
];

/// Who refuses what is closed by a mistake in the ConfigMap; `text` is what its key says.
pub(super) fn of_config_map(name: &str, message: &str, text: &str) -> RefusedBy {
    match name {
        // This machine was asked, any number of headers was passed on, and what is no address was passed over.
        "global-auth-url"
            if message.contains(NOT_OUTSIDE)
                || message.starts_with("global-auth-response-headers ")
                || !has_host(text) =>
        {
            RefusedBy::Fairway
        }
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
    let says = |words: &str| problem.message.contains(words);
    let is_passed_over =
        |name: &str| PASSED_OVER.iter().any(|(known, words)| *known == name && says(words));
    let field = problem.key.as_deref().unwrap_or_default();
    Some(match annotation {
        _ if says(NOT_TAKEN) || says("(--deep-inspect)") => RefusedBy::Both,
        // Both send everybody to the main side.
        Some("canary-by-header-pattern") => return None,
        _ if of_canary || says(NOT_OUTSIDE) => RefusedBy::Fairway,
        Some(name) if snippets::ANNOTATIONS.contains(&name) => RefusedBy::Unknown,
        // With a certificate in it, the host was open; else it was closed.
        Some("auth-tls-secret") if says("has no ca.crt") => RefusedBy::Unknown,
        Some(name) if is_passed_over(name) => RefusedBy::Fairway,
        Some(_) => RefusedBy::Both,
        None if field.starts_with("spec.rules[") && says("its backend is not a Service") => {
            return None;
        }
        // nginx took no configuration with it.
        None if says("are regular expressions, and it is none") => RefusedBy::Both,
        None => RefusedBy::Fairway,
    })
}
