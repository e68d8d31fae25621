//! What was asked for at a location, one file per family. The names are those of the files in
//! `translate/annotations` and `proxy/phases`. Engines take [`Policy`] apart without `..`, so that a new field does
//! not compile until each of them says what it does with it.

mod access;
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
mod limit_rate;
mod limits;
mod logging;
mod mirror;
mod opentelemetry;
mod protocol;
mod raw;
mod redirects;
mod retries;
mod rewrite;
mod route_filters;
mod texts;
mod timeouts;
mod upstream_tls;

pub use access::{Access, Satisfy};
pub use answer_rewrites::{AnswerRewrites, RedirectRewrite, Replaced, Replacement};
pub use auth_basic::{AuthBasic, AuthScheme, Password, Users};
pub use auth_external::{AuthCache, AuthExternal, CacheDuration};
pub use balance::{Affinity, AffinityMode, Algorithm, Balance, RuleSession, SameSite};
pub use body::Body;
pub use canary::{Canary, CanaryHeader, CanaryRules, CanaryTest};
pub use ciphers::Ciphers;
pub use client_certificate::{
    ClientCertificate, ClientDemand, ClientErrorPage, ClientVerification,
};
pub use connection_header::ConnectionHeader;
pub use cors::{AllowedOrigin, Cors, Origins};
pub use custom_headers::CustomHeaders;
pub use errors::Errors;
pub use fastcgi::FastCgi;
pub use guards::{guard, guard_of_host};
pub use limit_rate::LimitRate;
pub use limits::{LimitKey, Limits, RequestLimit};
pub use logging::Logging;
pub use mirror::Mirror;
pub use opentelemetry::OpenTelemetry;
pub use protocol::{HttpVersion, Protocol};
pub use raw::{ModSecurity, Raw, RawGlobal, RawServer};
pub use redirects::{Redirect, TlsRedirect};
pub use retries::{Condition, Retries};
pub use rewrite::Rewrite;
pub use route_filters::{
    GuardAsked, HeaderEdits, PathChange, RouteFilters, RouteGuard, RouteMirror, RouteRedirect,
};
pub use timeouts::Timeouts;
pub use upstream_tls::{Identity, SubjectName, UpstreamTls};

use crate::snippet::Scope;
use crate::{Template, UpstreamId};
use serde::Serialize;
use std::sync::Arc;

/// All policies of a location; the default is what an Ingress without annotations gets. What may be large is shared by
/// copies: each path of an Ingress may have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// How the upstream is spoken to.
    pub protocol: Protocol,
    /// HTTP version towards upstreams that speak HTTP/1.
    pub http_version: HttpVersion,
    /// What a FastCGI responder is told.
    pub fastcgi: FastCgi,
    /// TLS towards the upstream.
    pub upstream_tls: UpstreamTls,
    /// How long each step towards the upstream may take.
    pub timeouts: Timeouts,
    /// When another endpoint is tried.
    pub retries: Retries,
    /// Bounds and buffering of request bodies, buffering of answers.
    pub body: Body,
    /// Redirects from HTTP to HTTPS.
    pub tls_redirect: TlsRedirect,
    /// What its Ingress asks of clients; the host as a whole asks for [`crate::Server::client_certificate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// Cipher suites that its Ingress asks for; [`crate::Server::ciphers`] counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ciphers: Option<Ciphers>,
    /// The answer to every request (`permanent-redirect`, `temporal-redirect`).
    pub redirect: Option<Redirect>,
    /// Redirects name no host (`relative-redirects`).
    pub relative_redirects: bool,
    /// The host that the upstream is told, if not the client's (`upstream-vhost`).
    pub upstream_host: Option<Template>,
    /// Another path towards the upstream.
    pub rewrite: Option<Rewrite>,
    /// Who answers in place of errors.
    pub errors: Option<Errors>,
    /// `default-backend`: stands in while the backend has no endpoints.
    pub default_backend: Option<UpstreamId>,
    /// Copies of requests.
    pub mirror: Option<Arc<Mirror>>,
    /// What is logged about its requests.
    pub logging: Logging,
    /// Its requests are traced.
    pub opentelemetry: Option<OpenTelemetry>,
    /// A password is asked for.
    pub auth_basic: Option<Arc<AuthBasic>>,
    /// Somebody else is asked.
    pub auth_external: Option<Arc<AuthExternal>>,
    /// Address lists, and how the guards of the access phase are combined.
    pub access: Access,
    /// How many requests a client may make, and how many at once.
    pub limits: Limits,
    /// How fast an answer is sent.
    pub limit_rate: LimitRate,
    /// Which origins may read answers.
    pub cors: Option<Arc<Cors>>,
    /// Addresses in the upstream's answers.
    pub answer_rewrites: AnswerRewrites,
    /// A fixed Connection header towards the upstream.
    pub connection_header: Option<ConnectionHeader>,
    /// Header fields of every answer.
    pub custom_headers: CustomHeaders,
    /// Which endpoint is next.
    pub balance: Balance,
    /// What `configuration-snippet`, behind the ConfigMap's `location-snippet`, means beyond the fields above; none if
    /// the nginx engine reads them itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Arc<Scope>>,
    /// Filters of a route of the Gateway API; none at what is of an Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Box<RouteFilters>>,
    /// What only the nginx engine understands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<Raw>>,
}

impl Policy {
    /// The same for a path that nobody has to authenticate for (`no-auth-locations`).
    pub fn unauthenticated(self) -> Self {
        Self { auth_basic: None, auth_external: None, ..self }
    }

    /// Whether something decides who may have a request.
    pub fn is_guarded(&self) -> bool {
        !self.is_guarded_as(&Self::default())
    }

    /// Whether the same decides who may have a request as at another location.
    pub fn is_guarded_as(&self, other: &Self) -> bool {
        self.auth_external == other.auth_external
            && self.auth_basic == other.auth_basic
            && self.access == other.access
            && self.client_certificate == other.client_certificate
            && Scope::are_guarded_alike(self.snippet.as_deref(), other.snippet.as_deref())
            && self.raw == other.raw
    }

    /// The same without `affinity`, for what no path of a rule leads to.
    pub fn without_sessions(self) -> Self {
        let balance = Balance { affinity: None, ..self.balance };
        Self { balance, ..self }
    }
}
