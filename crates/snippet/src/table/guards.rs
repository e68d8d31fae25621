//! Guards: addresses, passwords, authenticators, limits.

use super::row::{Fate, H, HSL, L, LIF, LMT, MANY, Row, S, fate, rows};
use crate::level::Levels;
use crate::read::guards::{
    access, auth_basic, auth_request, auth_request_set, limit_conn, limit_req, rate, real_ip_from,
    referers,
};

pub(super) static ACCESS: &[Row] = rows! { "ngx_http_access_module";
    "allow", HSL | LMT, 1, 1, add(access.rules, access), "Lets a network in, or `all`; the first rule that fits decides.";
    "deny", HSL | LMT, 1, 1, add(access.rules, access), "Keeps a network out, or `all`: 403.";
    "satisfy", HSL, 1, 1, once(access.satisfy, satisfy), "all: every guard must let in; any: one will do.";
};

pub(super) static AUTH_BASIC: &[Row] = rows! { "ngx_http_auth_basic_module";
    "auth_basic", HSL | LMT, 1, 1, whole(access.auth_basic, auth_basic), "off: no password; else the realm, with the passwords of `auth-secret`.";
    "auth_basic_user_file", HSL | LMT, 1, 1, needs_nginx(), "There are no files: name a Secret with `auth-secret`.";
};

pub(super) static AUTH_REQUEST: &[Row] = rows! { "ngx_http_auth_request_module";
    "auth_request", HSL, 1, 1, whole(access.auth_request_off, auth_request), "off: the authenticator is not asked. A path of one's own needs nginx: use `auth-url`.";
    "auth_request_set", HSL, 2, 2, add(access.auth_request_set, auth_request_set), "A variable of what the authenticator answered.";
};

pub(super) static REALIP: &[Row] = rows! { "ngx_http_realip_module";
    "set_real_ip_from", HSL, 1, 1, add(real_ip.trusted, real_ip_from), "Peers whose word about the client's address counts.";
    "real_ip_header", HSL, 1, 1, once(real_ip.header, lower), "The header that names the client.";
    "real_ip_recursive", HSL, 1, 1, once(real_ip.recursive, flag), "Whether trusted addresses in it are skipped.";
};

pub(super) static LIMIT_REQ: &[Row] = rows! { "ngx_http_limit_req_module";
    "limit_req", HSL, 1, 3, add(limits.requests, limit_req), "How many requests of a zone are taken: burst, nodelay, delay.";
    "limit_req_status", HSL, 1, 1, once(limits.request_status, limit_status), "What the others get.";
    "limit_req_log_level", HSL, 1, 1, no_effect(), "Refusals are in the access log and in metrics.";
    "limit_req_dry_run", HSL, 1, 1, once(limits.request_dry_run, flag), "Counts without refusing.";
};

pub(super) static LIMIT_CONN: &[Row] = rows! { "ngx_http_limit_conn_module";
    "limit_conn", HSL, 2, 2, add(limits.connections, limit_conn), "How many requests of a zone there are at once.";
    "limit_conn_status", HSL, 1, 1, once(limits.connection_status, limit_status), "What the others get.";
    "limit_conn_log_level", HSL, 1, 1, no_effect(), "Refusals are in the access log and in metrics.";
    "limit_conn_dry_run", HSL, 1, 1, once(limits.connection_dry_run, flag), "Counts without refusing.";
    "limit_rate", HSL | LIF, 1, 1, whole(limits.rate, rate), "Bytes of an answer in a second.";
    "limit_rate_after", HSL | LIF, 1, 1, whole(limits.rate_after, rate), "Bytes that come without that bound.";
};

pub(super) static REFERER: &[Row] = rows! { "ngx_http_referer_module";
    "valid_referers", S | L, 1, MANY, whole(access.valid_referers, referers), "What `$invalid_referer` is made of: none, blocked, server_names, hosts, ~expressions.";
    "referer_hash_max_size", S | L, 1, 1, no_effect(), "Tables grow as needed.";
    "referer_hash_bucket_size", S | L, 1, 1, no_effect(), "Tables grow as needed.";
    "auth_delay", H | S | L, 1, 1, no_effect(), "Passwords are hashed, and their tries bounded, without it.";
};
