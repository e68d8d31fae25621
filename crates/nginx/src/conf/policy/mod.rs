//! What a location asks for, one file per family; the names are those of `model/policy`. Each takes its policy apart
//! without `..`, so that a new field does not compile until this engine says what it does with it.

pub(super) mod access;
pub(super) mod answer_rewrites;
pub(super) mod auth_basic;
pub(super) mod auth_external;
pub(super) mod body;
pub(super) mod client_certificate;
pub(super) mod cors;
pub(super) mod custom_headers;
pub(super) mod errors;
pub(super) mod fastcgi;
pub(super) mod global;
pub(super) mod hsts;
pub(super) mod limit_rate;
pub(super) mod limits;
pub(super) mod logging;
pub(super) mod mirror;
pub(super) mod protocol;
pub(super) mod raw;
pub(super) mod real_ip;
pub(super) mod redirects;
pub(super) mod request_headers;
pub(super) mod retries;
pub(super) mod rewrite;
pub(super) mod timeouts;
pub(super) mod upstream_tls;
