//! What annotations may be, and settings that reach from one Ingress to another.

use super::Area;
use crate::annotations::Limits;
use crate::budget::{self, Changes};
use crate::settings::{Items, Key, Risk, Scope, Settings, parse, quote};
use crate::tenancy::{self, CrossNamespace, Item};
use model::Severity;

pub(super) const AREA: Area = Area {
    name: "permissions",
    keys: &[
        &RISK,
        &SNIPPETS,
        &WORDS,
        &RESOURCES,
        &CROSS_NAMESPACE,
        &BUDGET,
        &STRICT_PATHS,
        &LOCATION_ONLY,
    ],
    apply: |_, _| {},
};

static RISK: Key<Risk> = Key::config_map("annotations-risk-level", risk).says(
    "Low, Medium, High or Critical",
    "High",
    "Ingresses with riskier annotations are not taken.",
);
static SNIPPETS: Key<bool> = Key::config_map("allow-snippet-annotations", parse::boolean)
    .switch(false, "Annotations may hold raw configuration text.");
static WORDS: Key<Vec<String>> =
    Key::config_map("annotation-value-word-blocklist", parse::list).items(Items::Names).says(
        "words, comma separated",
        "none",
        "Ingresses with one of these words in the value of an annotation are not taken.",
    );
static RESOURCES: Key<bool> = Key::config_map("allow-cross-namespace-resources", parse::boolean)
    .switch(false, "Annotations may name Secrets and ConfigMaps of other namespaces.");
static CROSS_NAMESPACE: Key<CrossNamespace> = Key::config_map(tenancy::KEY, tenancy::parse).says(
    "items, comma separated: aliases, app-root, canary, certificate, ciphers, client-certificate, custom-headers, \
     passthrough, paths, regex, server-snippet, www; or all",
    "none",
    "What Ingresses may do to hosts and paths that another namespace owns, as all of them could in ingress-nginx \
     (docs/tenancy.md).",
);
static BUDGET: Key<Changes> = Key::config_map(budget::KEY, budget::changes).says(
    "name=number, comma separated: ingresses, hosts, paths, patterns, pattern-bytes, certificate-bytes, problems, \
     snippet-bytes, snippet-settings, route-places, listeners, endpoints, \
     named-bytes, gateway-ports",
    "20000, 50000, 100000, 20000, 8388608, 268435456, 20000, 4194304, 4000000, 20000, 256, 100000, 67108864, 256, or \
     as --namespace-budget says",
    "What the Ingresses, routes and ListenerSets of one namespace may take together. Those for whom the older ones leave too \
     little wait.",
);
static STRICT_PATHS: Key<bool> = Key::config_map("strict-validate-path-type", parse::boolean).switch(
    true,
    "Ingresses are not admitted if an Exact or Prefix path has other characters than letters, digits, . _ - and /; false: \
     that is a warning.",
);
static LOCATION_ONLY: Key<bool> = Key::config_map("proxy-ssl-location-only", parse::boolean).switch(
    false,
    "proxy-ssl annotations count for the paths of their Ingress only, not for others of the host.",
);

/// What annotations may be, and what reaches beyond one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// What annotations may be.
    pub(crate) limits: Limits,
    /// `allow-cross-namespace`, and `allow-cross-namespace-resources` as one item more.
    pub(crate) cross_namespace: CrossNamespace,
    /// `namespace-budget`.
    pub(crate) budget: Changes,
    /// `no-auth-locations`.
    pub(crate) open_paths: Vec<String>,
    /// `strict-validate-path-type`.
    pub(crate) strict_path_type: bool,
    /// `proxy-ssl-location-only`.
    pub(crate) upstream_tls_by_location: bool,
}

impl Permissions {
    /// What is looked at besides annotations, with what they may be.
    pub(crate) fn within<'a>(&self, scope: Scope<'a>) -> Scope<'a> {
        let allows_snippets = self.limits.allow_snippets();
        Scope { cross_namespace: self.cross_namespace, allows_snippets, ..scope }
    }
}

pub(super) fn read(settings: &mut Settings<'_>) -> Permissions {
    let allowed = settings.get_or(&CROSS_NAMESPACE, CrossNamespace::default());
    let cross_namespace =
        if settings.get_or(&RESOURCES, false) { allowed.and(Item::Resources) } else { allowed };
    Permissions {
        limits: Limits {
            risk: risk_level(settings),
            snippets: settings.get_or(&SNIPPETS, false),
            blocked_words: settings.get_or(&WORDS, Vec::new()),
        },
        cross_namespace,
        budget: settings.get_or(&BUDGET, Changes::new()),
        open_paths: super::authentication::open_paths(settings),
        strict_path_type: settings.get_or(&STRICT_PATHS, true),
        upstream_tls_by_location: settings.get_or(&LOCATION_ONLY, false),
    }
}

/// The level that counts; it is told if it is none. One that is empty, or has space around it, is none, too: the value
/// counts as it is written.
fn risk_level(settings: &mut Settings<'_>) -> Risk {
    let data = settings.scope().config_map.map(|(_, data)| data);
    let Some(text) = data.and_then(|data| data.get(RISK.about.name)) else { return Risk::High };
    if let Some(level) = Risk::named(text) {
        return level;
    }
    let message = format!(
        "{} is no level: write Low, Medium, High or Critical; it counts as Low, the strictest, as in ingress-nginx",
        quote(text)
    );
    settings.note(RISK.about.name, Severity::Warning, message);
    Risk::Low
}

/// ingress-nginx reads an unknown text as the strictest level.
fn risk(text: &str) -> Result<Risk, String> {
    Ok(Risk::named(text).unwrap_or(Risk::Low))
}
