//! `--deep-inspect`: Ingresses whose text looks like an attack on nginx's configuration are left out.

use kubernetes::objects::Ingress;

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

/// What looks like an attack, as a problem.
pub(super) fn suspicion(ingress: &Ingress) -> Option<String> {
    let hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
    let paths = ingress
        .rules
        .iter()
        .flat_map(|rule| rule.paths.iter().flatten())
        .map(|path| path.path.as_str());
    let names =
        ingress.tls.iter().flat_map(|tls| tls.hosts.iter().chain(&tls.secret)).map(String::as_str);
    let text = hosts.chain(paths).chain(names).find(|text| is_suspicious(text))?;
    Some(format!("{text:?} is not accepted (--deep-inspect), the Ingress is left out; change it"))
}

fn is_suspicious(text: &str) -> bool {
    let has_directive = |word: &str| text.find(word).is_some_and(|at| text[at..].contains(';'));
    FORBIDDEN.iter().any(|forbidden| text.contains(forbidden))
        || DIRECTIVES.iter().any(|word| has_directive(word))
}
