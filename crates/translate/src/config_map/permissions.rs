//! What annotations may be, and settings that reach from one Ingress to another.

use super::Area;
use crate::annotations::Limits;
use crate::settings::{Key, Risk, Settings, parse};

pub(super) const AREA: Area = Area {
    name: "permissions",
    keys: &[&RISK, &SNIPPETS, &WORDS, &CROSS_NAMESPACE, &STRICT_PATHS, &LOCATION_ONLY],
    apply: |_, _| {},
};

static RISK: Key<Risk> = Key::config_map("annotations-risk-level", risk).says(
    "Low, Medium, High or Critical",
    "High",
    "Ingresses with riskier annotations are not taken.",
);
static SNIPPETS: Key<bool> = Key::config_map("allow-snippet-annotations", parse::boolean).says(
    "true or false",
    "false",
    "Annotations may hold raw configuration text.",
);
static WORDS: Key<Vec<String>> = Key::config_map("annotation-value-word-blocklist", parse::list)
    .says(
        "words, comma separated",
        "none",
        "Ingresses with one of these words in the value of an annotation are not taken.",
    );
static CROSS_NAMESPACE: Key<bool> = Key::config_map(
    "allow-cross-namespace-resources",
    parse::boolean,
)
.says("true or false", "false", "Annotations may name Secrets and ConfigMaps of other namespaces.");
static STRICT_PATHS: Key<bool> = Key::config_map("strict-validate-path-type", parse::boolean).says(
    "true or false",
    "true",
    "Ingresses are not admitted if an Exact or Prefix path has other characters than letters, digits, . _ - and /; false: \
     that is a warning.",
);
static LOCATION_ONLY: Key<bool> = Key::config_map("proxy-ssl-location-only", parse::boolean).says(
    "true or false",
    "false",
    "proxy-ssl annotations count for the paths of their Ingress only, not for others of the host.",
);

/// What annotations may be, and what reaches beyond one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// What annotations may be.
    pub(crate) limits: Limits,
    /// `allow-cross-namespace-resources`.
    pub(crate) cross_namespace: bool,
    /// `no-auth-locations`.
    pub(crate) open_paths: Vec<String>,
    /// `strict-validate-path-type`.
    pub(crate) strict_path_type: bool,
    /// `proxy-ssl-location-only`.
    pub(crate) upstream_tls_by_location: bool,
}

pub(super) fn read(settings: &mut Settings<'_>) -> Permissions {
    Permissions {
        limits: Limits {
            risk: settings.get_or(&RISK, Risk::High),
            snippets: settings.get_or(&SNIPPETS, false),
            blocked_words: settings.get_or(&WORDS, Vec::new()),
        },
        cross_namespace: settings.get_or(&CROSS_NAMESPACE, false),
        open_paths: super::authentication::open_paths(settings),
        strict_path_type: settings.get_or(&STRICT_PATHS, true),
        upstream_tls_by_location: settings.get_or(&LOCATION_ONLY, false),
    }
}

/// ingress-nginx reads an unknown text as the strictest level.
fn risk(text: &str) -> Result<Risk, String> {
    Ok(Risk::named(text).unwrap_or(Risk::Low))
}
