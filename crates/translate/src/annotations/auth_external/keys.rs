//! The keys of external authentication: those of an Ingress, and those of the ConfigMap for all of them.

use super::values;
use crate::settings::{AnyKey, Key, OnBad, Risk, parse};
use model::Template;
use model::policy::CacheDuration;

pub(super) const ALL: &[&dyn AnyKey] = &[
    &URL,
    &METHOD,
    &SIGN_IN,
    &SIGN_IN_PARAMETER,
    &RESPONSE_HEADERS,
    &REQUEST_HEADERS,
    &REQUEST_REDIRECT,
    &ALWAYS_COOKIE,
    &CACHE_KEY,
    &CACHE_DURATION,
    &GLOBAL_ENABLED,
    &GLOBAL_URL,
    &GLOBAL_METHOD,
    &GLOBAL_SIGN_IN,
    &GLOBAL_SIGN_IN_PARAMETER,
    &GLOBAL_RESPONSE_HEADERS,
    &GLOBAL_REQUEST_REDIRECT,
    &GLOBAL_ALWAYS_COOKIE,
    &GLOBAL_CACHE_KEY,
    &GLOBAL_CACHE_DURATION,
];

/// The authenticator for all, which the first of them switches on: they count together.
pub(crate) const GLOBAL_AUTH: &[&dyn AnyKey] = &[
    &GLOBAL_URL,
    &GLOBAL_METHOD,
    &GLOBAL_SIGN_IN,
    &GLOBAL_SIGN_IN_PARAMETER,
    &GLOBAL_RESPONSE_HEADERS,
    &GLOBAL_REQUEST_REDIRECT,
    &GLOBAL_ALWAYS_COOKIE,
    &GLOBAL_CACHE_KEY,
    &GLOBAL_CACHE_DURATION,
];

pub(super) static URL: Key<String> = Key::annotation("auth-url", values::url)
    .says(
        "URL, perhaps with variables",
        "none",
        "Who is asked before a request is let in: 2xx lets it pass, 401 and 403 are passed on, anything else is 500. A \
         Service of the cluster is reached at its endpoints.",
    )
    .risk(Risk::High)
    .free(parse::line)
    .on_bad(OnBad::Reject);

pub(super) static METHOD: Key<String> = Key::annotation("auth-method", values::method)
    .says(
        "a method",
        "GET",
        "How the authenticator is asked; it is also sent X-Original-URI and X-Scheme then.",
    )
    .on_bad(OnBad::Deny);

pub(super) static SIGN_IN: Key<String> = Key::annotation("auth-signin", values::url)
    .says(
        "URL, perhaps with variables",
        "none",
        "Where clients without authentication are sent (302 in place of 401), with the URL they wanted as a parameter.",
    )
    .free(parse::line)
    .risk(Risk::High);

pub(super) static SIGN_IN_PARAMETER: Key<String> =
    Key::annotation("auth-signin-redirect-param", values::parameter)
        .says(
            "name of a parameter",
            "rd",
            "The parameter of auth-signin with the URL that was wanted.",
        )
        .free(parse::line)
        .risk(Risk::Medium);

pub(super) static RESPONSE_HEADERS: Key<Vec<String>> =
    Key::annotation("auth-response-headers", values::headers)
        .says(
            "names of headers, comma separated, 64 at most",
            "none",
            "Headers of the authenticator's answer that the application gets, in place of what the client sent.",
        )
        .risk(Risk::Medium)
        .on_bad(OnBad::Deny);

pub(super) static REQUEST_HEADERS: Key<String> =
    Key::annotation("auth-proxy-set-headers", values::reference)
        .says(
            "namespace/name of a ConfigMap",
            "none",
            "Headers for the authenticator, in place of those of the client and of our own; values may hold variables.",
        )
        .risk(Risk::Medium)
        .on_bad(OnBad::Deny)
        .passed_over(values::NO_CONFIG_MAP);

pub(super) static REQUEST_REDIRECT: Key<Template> =
    Key::annotation("auth-request-redirect", values::redirect)
        .says(
            "text",
            "path and query of the request",
            "X-Auth-Request-Redirect for the authenticator.",
        )
        .free(|text| values::known(&parse::line(text)?))
        .risk(Risk::Medium)
        .on_bad(OnBad::Deny)
        .passed_over(values::OTHER_SIGNS);

pub(super) static ALWAYS_COOKIE: Key<bool> =
    Key::annotation("auth-always-set-cookie", parse::boolean)
        .switch(
            false,
            "Cookies of the authenticator reach the client with every answer, not only with 200, 201, 204, 206, 301-304, \
             307 and 308.",
        )
        .on_bad(OnBad::Deny);

pub(super) static CACHE_KEY: Key<String> = Key::annotation("auth-cache-key", values::cache_key)
    .says(
        "text with variables",
        "none",
        "What the authenticator says is remembered, for requests of the same path that agree in this.",
    )
    .free(parse::line)
    .risk(Risk::Medium);

pub(super) static CACHE_DURATION: Key<Vec<CacheDuration>> = Key::annotation(
    "auth-cache-duration",
    values::durations,
)
.says(
    "items such as 200 202 5m or any 1m, comma separated",
    "200 202 401 5m",
    "How long it is remembered, by status, unless the authenticator says something about caching.",
)
.risk(Risk::Medium)
.on_bad(OnBad::Deny);

pub(super) static GLOBAL_ENABLED: Key<bool> = Key::annotation("enable-global-auth", parse::boolean)
    .exact()
    .switch(true, "Whether the authenticator of the ConfigMap (global-auth-url) is asked.");

pub(super) static GLOBAL_URL: Key<String> = Key::config_map("global-auth-url", parse::text).says(
    "URL, perhaps with variables",
    "none",
    "auth-url for every Ingress that has none. If it cannot be used, their paths answer 503.",
);

pub(super) static GLOBAL_METHOD: Key<String> = Key::config_map(
    "global-auth-method",
    values::method,
)
.says("a method", "GET", "auth-method for it.");

pub(super) static GLOBAL_SIGN_IN: Key<String> = Key::config_map(
    "global-auth-signin",
    values::whole_url,
)
.says("URL", "none", "auth-signin for it.");

pub(super) static GLOBAL_SIGN_IN_PARAMETER: Key<String> = Key::config_map(
    "global-auth-signin-redirect-param",
    values::parameter,
)
.says("name of a parameter", "rd", "auth-signin-redirect-param for it.");

pub(super) static GLOBAL_RESPONSE_HEADERS: Key<Vec<String>> =
    Key::config_map("global-auth-response-headers", parse::list).says(
        "names of headers, comma separated, 64 at most",
        "none",
        "auth-response-headers for it; what is no name is left out. With more, the paths that ask answer 503.",
    );

pub(super) static GLOBAL_REQUEST_REDIRECT: Key<Template> = Key::config_map(
    "global-auth-request-redirect",
    values::known,
)
.says("text with variables", "path and query of the request", "auth-request-redirect for it.");

pub(super) static GLOBAL_ALWAYS_COOKIE: Key<bool> =
    Key::config_map("global-auth-always-set-cookie", parse::boolean)
        .switch(false, "auth-always-set-cookie for it.");

pub(super) static GLOBAL_CACHE_KEY: Key<Template> = Key::config_map(
    "global-auth-cache-key",
    values::known,
)
.says("text with variables", "none", "auth-cache-key for it.");

pub(super) static GLOBAL_CACHE_DURATION: Key<Vec<CacheDuration>> =
    Key::config_map("global-auth-cache-duration", values::durations).says(
        "items such as 200 202 5m, comma separated",
        "none: what the authenticator says about caching counts",
        "auth-cache-duration for it; 200 202 401 5m where it cannot be read.",
    );
