//! Annotations under another prefix that were most probably meant for us: a misspelt prefix takes a guard away without
//! a word. Prefixes that other controllers read are theirs.

use super::known::{is_known, meant};
use crate::options::ANNOTATIONS_PREFIX;
use crate::settings::Settings;
use model::Severity;
use strsim::osa_distance;

/// Letters of the usual prefix that may be wrong; of one's own, whose neighbours may be other people's, one may.
const MOST_WRONG: usize = 3;

/// Prefixes that no controller reads names of ours under.
const NOBODYS: &[&str] = &[
    "kubernetes.io",
    "nginx.kubernetes.io",
    "nginx.ingress.k8s.io",
    "nginx.ingress.io",
    "ingress-nginx.kubernetes.io",
    "ingress.nginx.kubernetes.io",
];

/// The prefix of the first ingress-nginx, which HAProxy Ingress, Traefik 1, Contour and GKE have read, too.
const SHARED: &str = "ingress.kubernetes.io";

/// How names begin that none of those ever had.
const ONLY_OURS: &[&str] = &[
    "auth-cache-",
    "auth-snippet",
    "canary",
    "client-body-buffer-size",
    "configuration-snippet",
    "custom-http-errors",
    "enable-modsecurity",
    "enable-opentelemetry",
    "fastcgi-",
    "from-to-www-redirect",
    "global-rate-limit",
    "limit-rpm",
    "limit-burst-multiplier",
    "mirror-target",
    "modsecurity-",
    "permanent-redirect",
    "proxy-buffer",
    "proxy-cookie-",
    "proxy-next-upstream",
    "proxy-read-timeout",
    "proxy-request-buffering",
    "proxy-send-timeout",
    "proxy-ssl-",
    "satisfy",
    "server-snippet",
    "temporal-redirect",
    "upstream-hash-by",
    "upstream-vhost",
    "use-regex",
];

/// Notes those that have no effect because of their prefix.
pub(super) fn check(settings: &mut Settings<'_>, suggestions: &mut usize) {
    let ours = settings.scope().prefix;
    let foreign: Vec<&str> = settings.foreign().collect();
    for full in foreign {
        let Some((prefix, name)) = full.split_once('/') else {
            without_slash(settings, full, ours);
            continue;
        };
        if prefix == ANNOTATIONS_PREFIX && is_known(name) {
            usual(settings, full, name, ours);
            continue;
        }
        if !is_misspelt(prefix, ours) && !is_of_nobody_else(prefix, name) {
            continue;
        }
        let name = if is_known(name) { Some(name) } else { meant(name, suggestions) };
        let message = format!(
            "unknown prefix of an annotation, it has no effect; did you mean {ours}/{}?",
            name.unwrap_or("...")
        );
        settings.note_of(full, Severity::Warning, message);
    }
}

/// Another prefix was chosen, maybe with a mistake, and the Ingress has names of the usual one alone: its guards are
/// off.
fn usual(settings: &mut Settings<'_>, full: &str, name: &str, ours: &str) {
    if settings.annotations().next().is_none() {
        let message = format!(
            "has no effect: --annotations-prefix is {ours}; write {ours}/{name}, or take the flag away"
        );
        settings.note_of(full, Severity::Warning, message);
    }
}

/// The prefix was forgotten, or a dot stands between it and the name. Names of one word may be anybody's.
fn without_slash(settings: &mut Settings<'_>, full: &str, ours: &str) {
    let behind = full.strip_prefix(ours).and_then(|rest| rest.strip_prefix('.'));
    let (what, name) = match behind {
        Some(name) => ("has a dot instead of the slash", name),
        None if full.contains('-') => ("has no prefix", full),
        None => return,
    };
    if is_known(name) {
        let message = format!("{what}, so that it has no effect; did you mean {ours}/{name}?");
        settings.note_of(full, Severity::Warning, message);
    }
}

fn is_misspelt(prefix: &str, ours: &str) -> bool {
    let is_extended = || {
        let rest = ours.split('.').next().and_then(|label| prefix.strip_prefix(label));
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    let most = if ours == ANNOTATIONS_PREFIX { MOST_WRONG } else { 1 };
    let is_close =
        || osa_distance(&prefix.to_ascii_lowercase(), &ours.to_ascii_lowercase()) <= most;
    // A number, or a word behind the first one, tells several controllers of one kind apart.
    let is_numbered = || digits(prefix) != digits(ours);
    prefix != ANNOTATIONS_PREFIX
        && prefix.len().abs_diff(ours.len()) <= most
        && !is_numbered()
        && !is_extended()
        && is_close()
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

fn is_of_nobody_else(prefix: &str, name: &str) -> bool {
    let is_only_ours = || ONLY_OURS.iter().any(|begin| name.starts_with(begin));
    (NOBODYS.contains(&prefix) || prefix == SHARED && is_only_ours()) && is_known(name)
}

#[cfg(test)]
mod tests {
    use super::{ANNOTATIONS_PREFIX, is_misspelt, is_of_nobody_else, meant};

    #[test]
    fn of_many_misspelt_names_only_a_few_are_compared() {
        let mut left = 1;
        assert_eq!(meant("rewrite-targt", &mut left), Some("rewrite-target"));
        assert_eq!(meant("rewrite-targt", &mut left), None);
    }

    #[test]
    fn prefixes_of_other_controllers_are_theirs() {
        for prefix in [
            "ingress.kubernetes.io",
            "haproxy.org",
            "haproxy-ingress.github.io",
            "traefik.ingress.kubernetes.io",
            "alb.ingress.kubernetes.io",
            "nginx.org",
            "nginx.com",
            "nginx2.ingress.kubernetes.io",
            "nginx-internal.ingress.kubernetes.io",
            "nginx-b.ingress.kubernetes.io",
            ANNOTATIONS_PREFIX,
        ] {
            assert!(!is_misspelt(prefix, ANNOTATIONS_PREFIX), "{prefix}");
            assert!(!is_of_nobody_else(prefix, "ssl-redirect"), "{prefix}");
        }
        assert!(!is_misspelt(ANNOTATIONS_PREFIX, "nginx.ingress.kubernetes.com"));
        assert!(!is_misspelt("external.ingress.example", "internal.ingress.example"));
        assert!(is_misspelt("internal.ingres.example", "internal.ingress.example"));
    }
}
