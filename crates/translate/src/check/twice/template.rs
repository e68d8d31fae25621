//! What ingress-nginx's template says (nginx.tmpl of v1.15.1), by the place of the snippet that is pasted there.

use super::around::{Around, CLIENTS};
use super::together::is_off;
use crate::ingress::annotation_of;
use crate::settings::parse;
use model::{Brotli, Eligible, Gzip};
use snippet::Context;
use snippet::syntax::Directive;

/// When the template has a directive.
enum When {
    Always,
    /// With this annotation.
    With(&'static str),
    /// With this annotation, or this key of the ConfigMap.
    WithEither(&'static str),
    /// With this annotation of its authenticator; with the key for that of all, where it is.
    Asked(&'static str),
    /// With this annotation of an Ingress of the host.
    OfHost(&'static str),
    /// Where this number is more than none.
    Above(&'static str),
    /// Where this switch is on, in an annotation or in the ConfigMap.
    On(&'static str),
    /// Where it is not off.
    UnlessOff(&'static str),
    /// With such a `backend-protocol`.
    Speaking(&'static [&'static str]),
    If(fn(Around<'_>, &Directive) -> bool),
}

use When::{Above, Always, Asked, If, OfHost, On, Speaking, UnlessOff, With, WithEither};

type Rows = &'static [(&'static str, When)];

const GRPC: &[&str] = &["GRPC", "GRPCS"];
/// Where upstreams of the location are verified.
const VERIFIED: When = If(|it, _| it.verifier().is_some());
/// Where those of the host are.
const VERIFIED_THERE: When = If(|it, _| it.verifier_of_host().is_some());
/// Where the template says whose name the host gives its upstreams.
const NAMED_THERE: When = If(|it, _| {
    let verifier = Around { ingress: it.verifier_of_host(), ..it };
    verifier.has("proxy-ssl-name")
});
/// Where addresses of clients are told by somebody.
const TOLD: When = If(|it, _| {
    let keys = ["use-forwarded-headers", "use-proxy-protocol", "enable-real-ip"];
    keys.iter().any(|key| it.switch(key) == Some(true))
});

/// The location of an Ingress's path.
const LOCATION: Rows = &[
    ("client_max_body_size", Always),
    ("client_body_buffer_size", With("client-body-buffer-size")),
    ("proxy_connect_timeout", Always),
    ("proxy_send_timeout", Always),
    ("proxy_read_timeout", Always),
    ("proxy_buffering", Always),
    ("proxy_buffer_size", Always),
    ("proxy_buffers", Always),
    ("proxy_busy_buffers_size", WithEither("proxy-busy-buffers-size")),
    ("proxy_max_temp_file_size", Always),
    ("proxy_request_buffering", Always),
    ("proxy_http_version", Always),
    ("proxy_next_upstream_timeout", Always),
    ("proxy_next_upstream_tries", Always),
    ("port_in_redirect", Always),
    ("proxy_cookie_domain", If(|it, own| is_never("proxy-cookie-domain", it, own))),
    ("proxy_cookie_path", If(|it, own| is_never("proxy-cookie-path", it, own))),
    ("proxy_redirect", If(|it, own| is_never(FROM, it, own) && is_redirect(it))),
    ("proxy_pass", If(|it, _| !speaks(it, &["GRPC", "GRPCS", "FCGI"]))),
    ("grpc_pass", Speaking(GRPC)),
    ("grpc_connect_timeout", Speaking(GRPC)),
    ("grpc_send_timeout", Speaking(GRPC)),
    ("grpc_read_timeout", Speaking(GRPC)),
    ("auth_basic", If(|it, _| it.value("auth-type").is_some_and(|kind| kind == "basic"))),
    ("auth_request", If(|it, _| asks_an_authenticator(it))),
    ("satisfy", With("satisfy")),
    ("absolute_redirect", If(|it, _| it.annotation("relative-redirects").is_some_and(is_true))),
    ("rewrite_log", On("enable-rewrite-log")),
    ("limit_rate", Above("limit-rate")),
    ("limit_rate_after", Above("limit-rate-after")),
    ("fastcgi_index", With("fastcgi-index")),
    ("proxy_intercept_errors", If(|it, _| it.has(ERRORS) && !is_left(it.annotation(NO_ERRORS)))),
    ("proxy_ssl_server_name", With("proxy-ssl-secret")),
    ("proxy_ssl_verify", VERIFIED),
    ("proxy_ssl_verify_depth", VERIFIED),
    ("proxy_ssl_ciphers", VERIFIED),
    ("proxy_ssl_name", If(|it, _| it.has("proxy-ssl-secret") && it.has("proxy-ssl-name"))),
];

/// The server of a host.
const SERVER: Rows = &[
    ("http2", UnlessOff("use-http2")),
    ("ssl_ciphers", OfHost("ssl-ciphers")),
    ("ssl_prefer_server_ciphers", OfHost("ssl-prefer-server-ciphers")),
    ("ssl_verify_client", OfHost(CLIENTS)),
    ("proxy_ssl_verify", VERIFIED_THERE),
    ("proxy_ssl_verify_depth", VERIFIED_THERE),
    ("proxy_ssl_ciphers", VERIFIED_THERE),
    ("proxy_ssl_name", NAMED_THERE),
    ("proxy_ssl_server_name", NAMED_THERE),
    ("ssl_reject_handshake", If(|it, _| it.is_for_everybody())),
];

/// The location that asks an authenticator.
const QUESTION: Rows = &[
    ("proxy_intercept_errors", Always),
    ("proxy_pass_request_body", Always),
    ("proxy_buffering", Always),
    ("proxy_buffer_size", Always),
    ("proxy_buffers", Always),
    ("proxy_request_buffering", Always),
    ("proxy_ssl_server_name", Always),
    ("proxy_pass_request_headers", Always),
    ("client_max_body_size", Always),
    ("proxy_http_version", Always),
    ("proxy_pass", Always),
    ("proxy_busy_buffers_size", WithEither("proxy-busy-buffers-size")),
    ("client_body_buffer_size", With("client-body-buffer-size")),
    ("proxy_method", Asked("auth-method")),
    ("proxy_cache", Asked("auth-cache-key")),
];

/// What all servers have.
const HTTP: Rows = &[
    ("aio", Always),
    ("aio_write", UnlessOff("enable-aio-write")),
    ("real_ip_header", TOLD),
    ("real_ip_recursive", TOLD),
    ("grpc_buffer_size", Above("grpc-buffer-size-kb")),
    ("log_format", If(|_, own| is_called(own, "upstreaminfo"))),
    ("tcp_nopush", Always),
    ("tcp_nodelay", Always),
    ("log_subrequest", Always),
    ("reset_timedout_connection", Always),
    ("keepalive_timeout", Always),
    ("keepalive_requests", Always),
    ("client_body_temp_path", Always),
    ("fastcgi_temp_path", Always),
    ("proxy_temp_path", Always),
    ("client_header_buffer_size", Always),
    ("client_header_timeout", Always),
    ("large_client_header_buffers", Always),
    ("client_body_buffer_size", Always),
    ("client_body_timeout", Always),
    ("http2_max_concurrent_streams", Always),
    ("types_hash_max_size", Always),
    ("server_names_hash_max_size", Always),
    ("server_names_hash_bucket_size", Always),
    ("map_hash_bucket_size", Always),
    ("proxy_headers_hash_max_size", Always),
    ("proxy_headers_hash_bucket_size", Always),
    ("variables_hash_bucket_size", Always),
    ("variables_hash_max_size", Always),
    ("underscores_in_headers", Always),
    ("ignore_invalid_headers", Always),
    ("limit_req_status", Always),
    ("limit_conn_status", Always),
    ("default_type", Always),
    ("server_tokens", Always),
    ("uninitialized_variable_warn", Always),
    ("resolver", Always),
    ("server_name_in_redirect", Always),
    ("port_in_redirect", Always),
    ("ssl_early_data", Always),
    ("ssl_session_timeout", UnlessOff("ssl-session-cache")),
    ("ssl_session_tickets", Always),
    ("ssl_buffer_size", Always),
    ("ssl_ciphers", Always),
    ("ssl_prefer_server_ciphers", Always),
    ("ssl_ecdh_curve", Always),
    ("proxy_ssl_session_reuse", Always),
    (
        "proxy_intercept_errors",
        If(|it, _| it.of_all(ERRORS).is_some() && !is_left(it.value(NO_ERRORS))),
    ),
    ("absolute_redirect", On("relative-redirects")),
    ("gzip", On("use-gzip")),
    ("gzip_comp_level", On("use-gzip")),
    ("gzip_http_version", On("use-gzip")),
    ("gzip_min_length", On("use-gzip")),
    ("gzip_vary", On("use-gzip")),
    ("brotli", On("enable-brotli")),
    ("brotli_comp_level", On("enable-brotli")),
    ("brotli_min_length", On("enable-brotli")),
];

/// What stands around everything.
const MAIN: Rows = &[
    ("worker_processes", Always),
    ("worker_rlimit_nofile", Always),
    ("worker_shutdown_timeout", Always),
    ("worker_cpu_affinity", WithEither("worker-cpu-affinity")),
];

/// Beside TCP and UDP services.
const STREAM: Rows =
    &[("resolver", Always), ("log_format", If(|_, own| is_called(own, "log_stream")))];

const FROM: &str = "proxy-redirect-from";
const ERRORS: &str = "custom-http-errors";
const NO_ERRORS: &str = "disable-proxy-intercept-errors";

/// Whether the template says a directive, too, where a snippet has it.
pub(super) fn says(own: &Directive, place: Context, around: Around<'_>) -> bool {
    let rows = match place {
        Context::Location => LOCATION,
        Context::Server => SERVER,
        Context::Auth => QUESTION,
        Context::Http => HTTP,
        Context::Main => MAIN,
        Context::Stream => STREAM,
    };
    let row = rows.iter().find(|(name, _)| *name == own.name());
    row.is_some_and(|(_, when)| when.holds(around, own))
}

/// What the template says of a directive that may be said again, so that each adds to the other.
pub(super) fn adds(name: &str, place: Context, around: Around<'_>) -> Option<String> {
    let verified = |verifier: Option<_>| {
        let words = annotation_of(verifier?, "proxy-ssl-protocols", around.options);
        Some(words.unwrap_or_else(|| "TLSv1.2".to_owned()))
    };
    // text/html always counts.
    let types = |key: &str, usual: Eligible| {
        let usual = || usual.types.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let all = around.value(key).unwrap_or_else(usual);
        all.split_whitespace().filter(|word| *word != "text/html").collect::<Vec<_>>().join(" ")
    };
    let is_on = |switch: &str| around.switch(switch) == Some(true);
    match (name, place) {
        ("proxy_next_upstream", Context::Location) => {
            let words = around.value("proxy-next-upstream");
            Some(words.unwrap_or_else(|| "error timeout".to_owned()))
        }
        ("proxy_ssl_protocols", Context::Location) => verified(around.verifier()),
        ("proxy_ssl_protocols", Context::Server) => verified(around.verifier_of_host()),
        ("gzip_proxied", Context::Http) if is_on("use-gzip") => Some("any".to_owned()),
        ("gzip_types", Context::Http) if is_on("use-gzip") => {
            Some(types("gzip-types", Gzip::default().eligible))
        }
        ("brotli_types", Context::Http) if is_on("enable-brotli") => {
            Some(types("brotli-types", Brotli::default().eligible))
        }
        _ => None,
    }
}

impl When {
    fn holds(&self, around: Around<'_>, own: &Directive) -> bool {
        match self {
            Always => true,
            With(name) => around.has(name),
            WithEither(name) => around.value(name).is_some(),
            Asked(name) if around.ingress.is_some() => around.has(name),
            Asked(name) => around.of_all(&format!("global-{name}")).is_some(),
            OfHost(name) => around.of_host(name).is_some(),
            Above(name) => around.is_above_zero(name),
            On(name) => around.switch(name) == Some(true),
            UnlessOff(name) => around.switch(name) != Some(false),
            Speaking(words) => speaks(around, words),
            If(holds) => holds(around, own),
        }
    }
}

/// Whether errors of upstreams are left as they are.
fn is_left(switch: Option<String>) -> bool {
    switch.is_some_and(is_true)
}

fn is_true(text: String) -> bool {
    parse::boolean(&text) == Ok(true)
}

/// Of two formats with one name nginx takes none.
fn is_called(format: &Directive, name: &str) -> bool {
    format.arguments().first().is_some_and(|word| word.text == name)
}

/// What is said several times unless it says `off`, which the template says where nothing else is asked for.
fn is_never(name: &str, around: Around<'_>, own: &Directive) -> bool {
    is_off(own) || around.value(name).is_none_or(|text| text == "off")
}

/// Whether the template has a `proxy_redirect`: from something it leads somewhere.
fn is_redirect(around: Around<'_>) -> bool {
    let is_whole = |from: String| ["off", "default"].contains(&&*from);
    around.value(FROM).is_none_or(is_whole)
        || around.value("proxy-redirect-to").is_some_and(|to| to != "off")
}

fn speaks(around: Around<'_>, words: &[&str]) -> bool {
    let protocol = around.value("backend-protocol").unwrap_or_default().to_ascii_uppercase();
    words.contains(&protocol.as_str())
}

/// By `auth_request`: one that connections are kept to is asked by a program, where nobody speaks HTTP/2.
fn asks_an_authenticator(around: Around<'_>) -> bool {
    if around.has("auth-url") {
        let is_kept = around.is_above_zero("auth-keepalive");
        return !is_kept || around.switch("use-http2") != Some(false);
    }
    let is_out = around.annotation("enable-global-auth");
    around.of_all("global-auth-url").is_some()
        && is_out.is_none_or(|text| parse::boolean(&text) != Ok(false))
}
