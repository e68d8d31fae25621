//! What becomes of answers on their way to the client.

use super::inherit::settings;
use super::{Regex, Template};
use serde::Serialize;
use std::sync::Arc;

settings! {
    /// Answers: pages of errors, bodies, cookies, redirects.
    pub struct Answers {
        /// `error_page`
        pub error_pages: Vec<ErrorPage>,
        /// `recursive_error_pages`
        pub recursive_error_pages: Option<bool>,
        /// `default_type`
        pub default_type: Option<String>,
        /// `types`: extensions of paths, and the types of answers that are made here.
        pub types: Option<Vec<(String, String)>>,
        /// `charset`: `off` or a name.
        pub charset: Option<Template>,
        /// `charset_types`; `*` is any.
        pub charset_types: Option<Vec<String>>,
        /// `override_charset`
        pub override_charset: Option<bool>,
        /// `etag`
        pub etag: Option<bool>,
        /// `absolute_redirect`
        pub absolute_redirect: Option<bool>,
        /// `server_name_in_redirect`
        pub server_name_in_redirect: Option<bool>,
        /// `port_in_redirect`
        pub port_in_redirect: Option<bool>,
        /// `chunked_transfer_encoding`
        pub chunked: Option<bool>,
        /// `server_tokens`: whether the version is in pages and headers.
        pub server_tokens: Option<bool>,
        /// `sub_filter`
        pub sub_filters: Vec<SubFilter>,
        /// `sub_filter_once`
        pub sub_filter_once: Option<bool>,
        /// `sub_filter_types`; `*` is any.
        pub sub_filter_types: Option<Vec<String>>,
        /// `sub_filter_last_modified`
        pub sub_filter_last_modified: Option<bool>,
        /// `proxy_cookie_domain`; `off` is a list with nothing in it.
        pub cookie_domain: Option<Vec<Replaced>>,
        /// `proxy_cookie_path`
        pub cookie_path: Option<Vec<Replaced>>,
        /// `proxy_cookie_flags`
        pub cookie_flags: Option<Vec<CookieFlags>>,
        /// `proxy_redirect`
        pub redirects: Option<Vec<ProxyRedirect>>,
        /// What is replaced where nothing is said, in a location that passes requests on.
        pub default_redirect: Option<Replaced>,
        /// `gzip…`
        pub gzip: Gzip,
        /// `brotli…`
        pub brotli: Brotli,
        /// `access_log off`, and `access_log` with anything else.
        pub access_log: Option<bool>,
    }

    /// `gzip…`.
    pub struct Gzip {
        /// `gzip`
        pub enabled: Option<bool>,
        /// `gzip_types`
        pub types: Option<Vec<String>>,
        /// `gzip_min_length`
        pub min_length: Option<u64>,
        /// `gzip_comp_level`
        pub level: Option<u32>,
        /// `gzip_vary`
        pub vary: Option<bool>,
        /// `gzip_proxied`
        pub proxied: Option<Vec<String>>,
        /// `gzip_disable`
        pub disable: Option<Vec<Regex>>,
        /// `gzip_http_version`: whether 1.1.
        pub http_1_1: Option<bool>,
    }

    /// `brotli…`.
    pub struct Brotli {
        /// `brotli`
        pub enabled: Option<bool>,
        /// `brotli_types`
        pub types: Option<Vec<String>>,
        /// `brotli_min_length`
        pub min_length: Option<u64>,
        /// `brotli_comp_level`
        pub level: Option<u32>,
    }
}

/// `error_page 502 503 =200 /sorry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorPage {
    /// For which status.
    pub statuses: Vec<u16>,
    /// Which status the client sees.
    pub code: ErrorCode,
    /// What is answered.
    pub target: ErrorTarget,
    /// The namespace that says so; see [`Scope::belong_to`](super::Scope::belong_to).
    #[serde(skip)]
    pub owner: Option<Arc<str>>,
}

/// The status of an answer that an `error_page` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ErrorCode {
    /// That of the error.
    Same,
    /// `=`: that of what is answered.
    OfTarget,
    /// `=code`
    Code(u16),
}

/// What an `error_page` answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ErrorTarget {
    /// `@name`
    Named(String),
    /// A path of this server, found anew through every guard.
    Path(Template),
    /// A redirect.
    Url(Template),
}

/// `sub_filter from to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubFilter {
    /// What is looked for, without regard to case.
    pub from: Template,
    /// What is written instead.
    pub to: Template,
}

/// What is replaced in a cookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// What is looked for.
    pub from: Replacement,
    /// What is written instead.
    pub to: Template,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Replacement {
    /// Text.
    Text(Template),
    /// `~` and `~*`
    Regex(Regex),
}

/// `proxy_cookie_flags name flag …`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CookieFlags {
    /// Which cookies.
    pub name: Replacement,
    /// Flags: `secure`, `nosecure`, `httponly`, `samesite=strict` and so on, without regard to case; others mean
    /// nothing.
    pub flags: Vec<Template>,
}

/// `proxy_redirect`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ProxyRedirect {
    /// `default`
    Default,
    /// From and to.
    Replace(Replaced),
}
