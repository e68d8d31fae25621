//! All families of keys, and the policy that they make.

use super::family::Family;
use super::{
    access, affinity, answer_rewrites, auth_basic, auth_external, balance, body, canary, ciphers,
    client_certificate, connection_header, cors, custom_headers, errors, fastcgi, limit_rate,
    limits, logging, mirror, opentelemetry, passthrough, protocol, redirects, retries, rewrite,
    server_alias, timeouts, upstream_tls, upstream_vhost,
};
use crate::settings::Settings;
use model::policy::Policy;

/// All families, in the order of documentation.
pub(crate) const FAMILIES: &[Family] = &[
    protocol::FAMILY,
    fastcgi::FAMILY,
    timeouts::FAMILY,
    retries::FAMILY,
    body::FAMILY,
    redirects::FAMILY,
    rewrite::FAMILY,
    server_alias::FAMILY,
    upstream_vhost::FAMILY,
    upstream_tls::FAMILY,
    client_certificate::FAMILY,
    ciphers::FAMILY,
    passthrough::FAMILY,
    errors::FAMILY,
    mirror::FAMILY,
    logging::FAMILY,
    opentelemetry::FAMILY,
    auth_basic::FAMILY,
    auth_external::FAMILY,
    access::FAMILY,
    limits::FAMILY,
    limit_rate::FAMILY,
    cors::FAMILY,
    custom_headers::FAMILY,
    answer_rewrites::FAMILY,
    connection_header::FAMILY,
    balance::FAMILY,
    affinity::FAMILY,
    canary::FAMILY,
];

/// The policy that the ConfigMap alone makes; what is wrong with its values stays in `settings`.
pub(crate) fn policy(settings: &mut Settings<'_>) -> Policy {
    let mut policy = Policy::default();
    for family in FAMILIES {
        (family.apply)(settings, &mut policy);
    }
    policy
}

/// Names of all keys that are read from annotations.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let keys = FAMILIES.iter().flat_map(|family| family.keys);
    keys.map(|key| key.about()).filter(|about| about.in_annotations()).map(|about| about.name)
}
