//! What a canary asks for, which stands beside the paths of others.

use super::Hosts;
use crate::annotations::CanaryAsked;
use objects::Ingress;

/// Annotations that close the paths of an Ingress. Those of a canary count for nothing, since it has no paths.
const GUARDS: [&str; 6] = [
    "auth-type",
    "auth-url",
    "auth-tls-secret",
    "allowlist-source-range",
    "whitelist-source-range",
    "denylist-source-range",
];

/// That an Ingress is a canary.
#[derive(Debug)]
pub(crate) struct BesideOthers {
    /// Who goes there.
    pub(crate) asked: CanaryAsked,
    /// The paths of others that it names, by host.
    pub(crate) hosts: Hosts,
    /// The first annotation that would close paths if it had any.
    pub(crate) guard: Option<String>,
}

/// The first annotation that closes the paths of an Ingress.
pub(super) fn guard(ingress: &Ingress) -> Option<&String> {
    let last = |name: &'_ str| name.rfind('/').map_or(0, |slash| slash + 1);
    ingress.meta.annotations.keys().find(|name| GUARDS.contains(&&name[last(name)..]))
}
