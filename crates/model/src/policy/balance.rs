//! Which endpoint is next (compat/behaviour.md sections 8 and 9). It hangs on the route, not on the upstream: another
//! Ingress of the same Service is not concerned (compat/decisions.md row 5a).

use crate::Template;
use serde::Serialize;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// How requests of a location are spread over the endpoints of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// The rule, where no session decides.
    pub algorithm: Algorithm,
    /// `affinity: cookie`: clients stay with an endpoint.
    pub affinity: Option<Arc<Affinity>>,
}

impl Balance {
    /// Whether it hangs on how long endpoints took.
    pub fn is_measured(&self) -> bool {
        matches!(self.algorithm, Algorithm::Ewma) && self.affinity.is_none()
    }
}

/// Which endpoint is next (`load-balance`, `upstream-hash-by*`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Algorithm {
    /// `round_robin`: each in turn.
    #[default]
    RoundRobin,
    /// `ewma`: the better one of two, by moving averages of their response times.
    Ewma,
    /// `sticky_balanced` and `sticky_persistent` without sessions: any one.
    Random,
    /// `upstream-hash-by`: the same text, the same endpoint.
    Hash(Template),
    /// `upstream-hash-by-subset`: the same text, the same few endpoints (so many, `upstream-hash-by-subset-size`).
    HashSubset(Template, NonZeroU32),
}

/// A cookie that keeps clients with an endpoint (`affinity`, `affinity-mode`, `session-cookie-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Affinity {
    /// What the cookie means.
    pub mode: AffinityMode,
    /// Name of the cookie.
    pub name: String,
    /// Always `Secure`; else on TLS connections only.
    pub secure: bool,
    /// `Expires`: seconds from now.
    pub expires: Option<i64>,
    /// `Max-Age`, in seconds.
    pub max_age: Option<i64>,
    /// `Path`; the location's path as the Ingress has it where there is none.
    pub path: Option<String>,
    /// `Domain`.
    pub domain: Option<String>,
    /// `SameSite`.
    pub same_site: Option<SameSite>,
    /// `SameSite=None` is left out for browsers that mistake it for `Strict`.
    pub conditional_same_site_none: bool,
    /// A try after a failed one goes elsewhere, whatever the client's cookie says, and the client learns of it.
    pub change_on_failure: bool,
    /// What else holds for a rule of the Gateway API (`sessionPersistence`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_rule: Option<RuleSession>,
}

/// What sessions of a rule of the Gateway API are besides: nobody else's, and not for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleSession {
    /// Which rule it is: another one knows nothing of its sessions.
    pub rule: String,
    /// A field of the name says it in both directions in place of a cookie.
    pub in_header: bool,
    /// How long one lasts (`absoluteTimeout`).
    pub lasts: Option<Duration>,
    /// How long one lasts after the last request (`idleTimeout`).
    pub idle: Option<Duration>,
}

/// What an affinity cookie means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum AffinityMode {
    /// A text that is hashed onto the endpoints: some sessions move when their number changes.
    Balanced,
    /// The name of one endpoint: sessions stay until it is gone.
    Persistent,
}

/// Values of the cookie attribute `SameSite`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SameSite {
    /// `None`.
    None,
    /// `Lax`.
    Lax,
    /// `Strict`.
    Strict,
}

impl SameSite {
    /// As it is written in a cookie.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Lax => "Lax",
            Self::Strict => "Strict",
        }
    }
}
