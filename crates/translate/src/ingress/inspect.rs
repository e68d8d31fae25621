//! `--deep-inspect`: Ingresses whose text looks like an attack on nginx's configuration are not taken.

use model::{Message, Why};
use objects::Ingress;

/// Texts that have no place in a host, a path or a Secret's name.
const FORBIDDEN: &[&str] = &[
    "_by_lua",
    "/var/run/secrets",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/group",
    "/etc/nginx",
    "/etc/ingress-controller",
];

/// Directives that have no place there, either, once a `;` follows.
const DIRECTIVES: &[&str] = &["alias", "root"];

/// Where a text stands that looks like an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The host of a rule.
    Host,
    /// A path.
    Path,
    /// The Secret of a TLS section.
    Secret,
    /// A host of a TLS section.
    TlsHost,
}

/// What looks like an attack, as a problem.
pub(super) fn suspicion(ingress: &Ingress) -> Option<Message> {
    let (_, text) = find(ingress)?;
    let message = format!(
        "{text:?} is not accepted (--deep-inspect) and the Ingress not taken: its other hosts and paths answer 503; change it"
    );
    Some(Why::NotTaken.says(message))
}

/// The first text that looks like an attack.
pub(crate) fn find(ingress: &Ingress) -> Option<(Place, &str)> {
    let rules = ingress.rules.iter().flat_map(|rule| {
        let host = rule.host.as_deref().map(|host| (Place::Host, host));
        let paths = rule.paths.iter().flatten().map(|path| (Place::Path, path.path.as_str()));
        host.into_iter().chain(paths)
    });
    let tls = ingress.tls.iter().flat_map(|tls| {
        let secret = tls.secret.as_deref().map(|secret| (Place::Secret, secret));
        let hosts = tls.hosts.iter().map(|host| (Place::TlsHost, host.as_str()));
        secret.into_iter().chain(hosts)
    });
    rules.chain(tls).find(|(_, text)| is_suspicious(text))
}

/// Whether a text looks like an attack.
pub(super) fn is_suspicious(text: &str) -> bool {
    let has_directive = |word: &str| text.find(word).is_some_and(|at| text[at..].contains(';'));
    FORBIDDEN.iter().any(|forbidden| text.contains(forbidden))
        || DIRECTIVES.iter().any(|word| has_directive(word))
}
