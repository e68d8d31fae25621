//! What only the nginx engine understands: raw configuration (`*-snippet`), ModSecurity, and how nginx is set up.
//! Opaque to everything else; it is here only if that engine asked for it, and denied otherwise.

use crate::{Origin, Secret, Tuning};
use serde::Serialize;
use std::sync::Arc;

/// What one Ingress says in nginx's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Raw {
    /// `configuration-snippet`: for its locations.
    pub configuration: Option<Secret<String>>,
    /// `server-snippet`: for its hosts. The one that counts for a host stands there ([`RawServer`]).
    pub server: Option<Secret<String>>,
    /// `auth-snippet`: for the location that asks the authenticator.
    pub auth: Option<Secret<String>>,
    /// `enable-modsecurity` and its companions.
    pub modsecurity: ModSecurity,
    /// `proxy-busy-buffers-size`: bytes of an answer that may be on their way to the client.
    pub busy_buffers: Option<usize>,
    /// `proxy-max-temp-file-size`: bytes of an answer that a file takes.
    pub temporary_file: Option<u64>,
}

/// What one Ingress, or the ConfigMap, says about ModSecurity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModSecurity {
    /// `enable-modsecurity`; none: as the ConfigMap says.
    pub enabled: Option<bool>,
    /// `enable-owasp-core-rules`.
    pub core_rules: bool,
    /// `modsecurity-snippet`: rules in place of the recommended ones.
    pub rules: Option<Secret<String>>,
    /// `modsecurity-transaction-id`.
    pub transaction_id: Option<Secret<String>>,
}

/// What a host has in nginx's own words, and of which Ingress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RawServer {
    /// The Ingress, which may have none of the host's locations.
    pub origin: Arc<Origin>,
    /// Its `server-snippet`.
    pub text: Secret<String>,
}

/// What the ConfigMap says in nginx's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RawGlobal {
    /// The ConfigMap.
    pub origin: Option<Origin>,
    /// `main-snippet`.
    pub main: Option<Secret<String>>,
    /// `http-snippet`.
    pub http: Option<Secret<String>>,
    /// `server-snippet`: for every server.
    pub server: Option<Secret<String>>,
    /// `location-snippet`: for every location of an Ingress.
    pub location: Option<Secret<String>>,
    /// `global-auth-snippet`: for the location that asks the authenticator of everybody.
    pub auth: Option<Secret<String>>,
    /// `enable-modsecurity`, `enable-owasp-modsecurity-crs`, `modsecurity-snippet`.
    pub modsecurity: ModSecurity,
    /// How nginx is set up.
    pub tuning: Tuning,
}

impl Raw {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
