//! Annotations of Ingresses, one file per family; the names are those of the files in `model/policy`.

mod access;
mod affinity;
mod answer_rewrites;
mod auth_basic;
mod auth_external;
mod balance;
mod body;
mod canary;
mod ciphers;
mod client_certificate;
mod connection_header;
mod cors;
mod custom_headers;
mod errors;
mod fastcgi;
mod guards;
mod known;
mod limit_rate;
mod limits;
mod logging;
mod mirror;
mod opentelemetry;
mod passthrough;
mod protocol;
mod raw;
mod redirects;
mod retries;
mod rewrite;
mod server_alias;
mod timeouts;
mod upstream_tls;
mod upstream_vhost;

pub use auth_external::cache_durations;
pub(crate) use auth_external::exempt_from_global_auth;
pub(crate) use balance::by_cluster_ip;
pub(crate) use canary::CanaryAsked;
pub(crate) use guards::{deny_by_config_map, is_guard};
pub(crate) use known::Limits;
pub(crate) use opentelemetry::NO_SPANS;
pub(crate) use passthrough::is_passed_through;
pub(crate) use raw::{global as raw_global, is_key as is_raw_key};
pub(crate) use rewrite::{Rewriting, RewritingOfPath};
pub(crate) use server_alias::{Names, refuse_wildcard, with_aliases};

use crate::settings::{AnyKey, Settings};
use crate::snippets::{self, OfIngress};
use model::Template;
use model::policy::Policy;

/// Keys that belong together, and what they do to the policy of a location.
pub(crate) struct Family {
    /// Name of the family: of its file, and of its folder of cases.
    pub(crate) name: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static dyn AnyKey],
    /// Turns the settings into policy.
    apply: fn(&mut Settings<'_>, &mut Policy),
}

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

/// What the annotations of one Ingress ask for.
#[derive(Debug)]
pub(crate) struct Asked {
    /// For every path alike.
    pub(crate) policy: Policy,
    /// What its snippets mean beyond that.
    pub(crate) snippets: OfIngress,
    /// What depends on the path.
    pub(crate) rewriting: Rewriting,
    /// For the host: where requests for exactly `/` are redirected to.
    pub(crate) app_root: Option<Template>,
    /// For the host: other names of it.
    pub(crate) names: Names,
    /// That it stands beside another Ingress.
    pub(crate) canary: Option<CanaryAsked>,
}

/// Reads all annotations; what is wrong with them stays in `settings`.
pub(crate) fn read(settings: &mut Settings<'_>, limits: &Limits) -> Asked {
    known::check(settings, limits);
    guards::check(settings);
    let mut policy = Policy { raw: raw::read(settings, limits), ..policy(settings) };
    let counts =
        |settings: &Settings<'_>, name: &str| known::snippet_counts(settings, name, limits);
    let snippets = snippets::read(settings, counts, &mut policy);
    let canary = canary::read(settings, &policy);
    Asked {
        policy,
        snippets,
        canary,
        rewriting: rewrite::read(settings),
        app_root: rewrite::read_app_root(settings),
        names: server_alias::read(settings),
    }
}

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
