//! All families of keys, and the policy that they make.

use super::family::Family;
use super::{
    access, affinity, answer_rewrites, auth_basic, auth_external, balance, body, canary, ciphers,
    client_certificate, connection_header, cors, custom_headers, errors, fastcgi, limit_rate,
    limits, logging, mirror, opentelemetry, passthrough, protocol, raw, redirects, retries,
    rewrite, route_filters, server_alias, timeouts, upstream_tls, upstream_vhost,
};
use crate::settings::{Line, Lines, Settings};
use model::policy::{Balance, Canary, Policy};

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

/// What a policy asks for, as a user writes it, each with the keys that may ask for it. A new field of it does not
/// compile until somebody says how it is shown.
pub(crate) fn lines(policy: &Policy) -> Vec<Line> {
    let Policy {
        protocol,
        http_version,
        fastcgi,
        upstream_tls,
        timeouts,
        retries,
        body,
        tls_redirect,
        client_certificate,
        ciphers,
        redirect,
        relative_redirects,
        upstream_host,
        rewrite,
        errors,
        default_backend,
        mirror,
        logging,
        opentelemetry,
        auth_basic,
        auth_external,
        access,
        limits,
        limit_rate,
        cors,
        answer_rewrites,
        connection_header,
        custom_headers,
        balance: Balance { algorithm, affinity },
        snippet,
        route,
        raw,
    } = policy;
    let mut lines = Lines::default();
    let all = &mut lines;
    protocol::show(*protocol, *http_version, all);
    fastcgi::show(fastcgi, all);
    upstream_vhost::show(upstream_host.as_ref(), all);
    rewrite::show(rewrite.as_ref(), all);
    upstream_tls::show(upstream_tls, all);
    connection_header::show(*connection_header, all);
    timeouts::show(timeouts, all);
    retries::show(retries, all);
    balance::show("balance.algorithm", algorithm, all);
    affinity::show(affinity.as_deref(), all);
    body::show(body, all);
    access::show(access, all);
    limits::show(limits, all);
    limit_rate::show(limit_rate, all);
    auth_basic::show(auth_basic.as_deref(), all);
    auth_external::show(auth_external.as_deref(), all);
    client_certificate::show(client_certificate.as_ref(), all);
    ciphers::show(ciphers.as_ref(), all);
    redirects::show(tls_redirect, redirect.as_ref(), *relative_redirects, all);
    cors::show(cors.as_deref(), all);
    custom_headers::show(custom_headers, all);
    answer_rewrites::show(answer_rewrites, all);
    errors::show(errors.as_ref(), default_backend.as_ref(), all);
    mirror::show(mirror.as_deref(), all);
    logging::show(logging, all);
    opentelemetry::show(opentelemetry.as_ref(), all);
    raw::show(snippet.as_deref(), raw.as_deref(), all);
    route_filters::show(route.as_deref(), all);
    lines.0
}

/// What a canary asks for, likewise.
pub(crate) fn lines_of_canary(asked: &Canary) -> Vec<Line> {
    let mut lines = Lines::default();
    canary::show(asked, &mut lines);
    lines.0
}

/// Names of all keys that are read from annotations.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let keys = FAMILIES.iter().flat_map(|family| family.keys);
    keys.map(|key| key.about()).filter(|about| about.in_annotations()).map(|about| about.name)
}
