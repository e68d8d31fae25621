//! `auth-url` and its companions: somebody else is asked whether a request may pass (ngx_http_auth_request_module as
//! ingress-nginx uses it, compat/behaviour.md section 16).

use crate::snippet::Scope;
use crate::{Secret, Template, Url, UrlText};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// An authenticator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthExternal {
    /// `auth-url`: where it is asked.
    pub url: Url,
    /// `auth-method`; none: GET, and the original request is described by fewer headers.
    pub method: Option<String>,
    /// `auth-signin` with its parameter: where clients are sent that it refuses with 401.
    pub sign_in: Option<UrlText>,
    /// `auth-response-headers`: what it says about the client, for the application; nobody else can say it.
    pub response_headers: Vec<String>,
    /// `auth-proxy-set-headers`: what it is told besides.
    pub request_headers: Vec<(String, Secret<Template>)>,
    /// `auth-request-redirect`: the value of `X-Auth-Request-Redirect`; none: the target of the request.
    pub request_redirect: Option<UrlText>,
    /// `auth-always-set-cookie`: its cookies reach the client whatever the status of the answer.
    pub always_set_cookie: bool,
    /// `auth-cache-key`: what it says is remembered.
    pub cache: Option<AuthCache>,
    /// What `auth-snippet` means for the location that asks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Arc<Scope>>,
}

/// What is remembered of an authenticator's answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthCache {
    /// `auth-cache-key`: requests that agree in it get the same answer.
    pub key: Template,
    /// `auth-cache-duration`: how long, by status; the first that names the status counts, else the first for any.
    pub durations: Vec<CacheDuration>,
}

/// How long answers with some statuses are remembered (ngx_http_proxy_module, proxy_cache_valid).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheDuration {
    /// The statuses; none is any that no other one names.
    pub statuses: Vec<u16>,
    /// How long.
    pub time: Duration,
}
