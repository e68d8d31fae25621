//! Annotations of Ingresses, one file per family; the names are those of the files in `model/policy`.

mod access;
mod affinity;
mod allowed;
mod answer_rewrites;
mod auth_basic;
mod auth_external;
mod balance;
mod body;
mod canary;
mod ciphers;
mod client_certificate;
mod companions;
mod connection_header;
mod cors;
mod custom_headers;
mod errors;
mod families;
mod family;
mod fastcgi;
mod foreign;
mod guards;
mod idle;
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
mod route_filters;
mod server_alias;
mod timeouts;
mod twice;
mod upstream_tls;
mod upstream_vhost;

pub(crate) use allowed::Limits;
pub use auth_external::cache_durations;
pub(crate) use auth_external::{GLOBAL_AUTH, exempt_from_global_auth, global as global_auth};
pub(crate) use balance::by_cluster_ip;
pub(crate) use canary::CanaryAsked;
pub(crate) use families::{FAMILIES, lines, lines_of_canary, policy};
pub(crate) use guards::{asks_for_modsecurity, deny_by_config_map, is_guard};
pub(crate) use known::is_known as is_annotation;
pub(crate) use passthrough::is_passed_through;
pub(crate) use raw::{global as raw_global, is_key as is_raw_key};
pub(crate) use redirects::redirecting;
pub(crate) use rewrite::{Rewriting, RewritingOfPath};
pub(crate) use server_alias::{Names, WrittenNames, refuse_wildcard, with_aliases};

use crate::settings::Settings;
use crate::snippets::{self, OfIngress};
use family::Family;
use model::Template;
use model::policy::Policy;

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
    pub(crate) names: WrittenNames,
    /// That it stands beside another Ingress.
    pub(crate) canary: Option<CanaryAsked>,
}

/// Reads all annotations; what is wrong with them stays in `settings`.
pub(crate) fn read(settings: &mut Settings<'_>, limits: &Limits) -> Asked {
    let mut suggestions = known::SUGGESTIONS;
    known::check(settings, limits, &mut suggestions);
    foreign::check(settings, &mut suggestions);
    guards::check(settings);
    companions::check(settings);
    twice::check(settings);
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

/// What counts of an Ingress that waits for room: how its paths match, and other names of its hosts, but for patterns.
/// None of a canary.
pub(crate) fn read_waiting(settings: &mut Settings<'_>) -> Option<(Rewriting, Names)> {
    if canary::is_canary(settings) {
        return None;
    }
    let names = server_alias::read(settings).without_patterns();
    Some((rewrite::read(settings), with_aliases(settings, names)))
}
