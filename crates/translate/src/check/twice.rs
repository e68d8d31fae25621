//! What ingress-nginx's template says already where it pastes a snippet (nginx.tmpl of v1.15.1): nginx calls it a
//! duplicate and takes no configuration with it, whereas here the snippet's counts.

use super::config_map::About;
use super::differences::of_config_map;
use super::remark::{Remark, named_of_config_map};
use crate::Options;
use crate::ingress::annotation_of;
use crate::settings::parse;
use crate::snippets::snippet_named;
use model::{Problem, Severity, Why};
use objects::{Ingress, Snapshot};
use snippet::Context;
use snippet::syntax::Directive;

const TWICE: &str = "is what ingress-nginx says in this place, too, so that its nginx takes no configuration with it, nor \
     any later one; here the snippet's counts";

/// What a text stands among.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// None for what stands around all of them.
    ingress: Option<&'a Ingress>,
    snapshot: &'a Snapshot,
    options: &'a Options,
}

/// When the template has a directive.
enum When {
    Always,
    /// With this annotation.
    With(&'static str),
    /// With this annotation, or this key of the ConfigMap.
    WithEither(&'static str),
    /// Where this switch is on, in an annotation or in the ConfigMap.
    On(&'static str),
    /// Where it is not off.
    UnlessOff(&'static str),
    /// With such a `backend-protocol`.
    Speaking(&'static [&'static str]),
    If(fn(Around<'_>, &Directive) -> bool),
}

use When::{Always, If, On, Speaking, UnlessOff, With, WithEither};

type Rows = &'static [(&'static str, When)];

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
    ("proxy_cookie_domain", If(|it, own| is_off("proxy-cookie-domain", it, own))),
    ("proxy_cookie_path", If(|it, own| is_off("proxy-cookie-path", it, own))),
    ("proxy_redirect", If(|it, own| is_off("proxy-redirect-from", it, own))),
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
    ("limit_rate", WithEither("limit-rate")),
    ("limit_rate_after", WithEither("limit-rate-after")),
    ("fastcgi_index", With("fastcgi-index")),
    ("proxy_intercept_errors", With("custom-http-errors")),
    ("proxy_ssl_server_name", With("proxy-ssl-secret")),
    ("proxy_ssl_verify", With("proxy-ssl-secret")),
    ("proxy_ssl_verify_depth", With("proxy-ssl-secret")),
    ("proxy_ssl_ciphers", With("proxy-ssl-secret")),
    ("proxy_ssl_name", If(|it, _| it.has("proxy-ssl-secret") && it.has("proxy-ssl-name"))),
];

/// The server of a host.
const SERVER: Rows = &[
    ("http2", UnlessOff("use-http2")),
    ("ssl_ciphers", With("ssl-ciphers")),
    ("ssl_prefer_server_ciphers", With("ssl-prefer-server-ciphers")),
    ("ssl_verify_client", With("auth-tls-secret")),
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
    ("proxy_method", If(|it, _| it.has("auth-method") || it.says("global-auth-method"))),
];

/// What all servers have.
const HTTP: Rows = &[
    ("aio", Always),
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
    ("proxy_intercept_errors", WithEither("custom-http-errors")),
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

const GRPC: &[&str] = &["GRPC", "GRPCS"];

impl Around<'_> {
    fn annotation(self, name: &str) -> Option<String> {
        annotation_of(self.ingress?, name, self.options)
    }

    fn has(self, name: &str) -> bool {
        self.annotation(name).is_some()
    }

    /// Whether the ConfigMap has such a key.
    fn says(self, name: &str) -> bool {
        of_config_map(name, self.snapshot, self.options).is_some_and(|text| !text.is_empty())
    }

    /// Of the annotation, else of the ConfigMap.
    fn value(self, name: &str) -> Option<String> {
        let of_all = || of_config_map(name, self.snapshot, self.options).map(str::to_owned);
        self.annotation(name).or_else(of_all)
    }

    /// Whether it stands in the server of hosts that nobody has; the ConfigMap's stands in every one.
    fn is_for_everybody(self) -> bool {
        self.ingress.is_none_or(|it| {
            it.default_backend.is_some() || it.rules.iter().any(|rule| rule.host.is_none())
        })
    }
}

impl When {
    fn holds(&self, around: Around<'_>, own: &Directive) -> bool {
        let switch = |name: &str| around.value(name).and_then(|text| parse::boolean(&text).ok());
        match self {
            Always => true,
            With(name) => around.has(name),
            WithEither(name) => around.value(name).is_some(),
            On(name) => switch(name) == Some(true),
            UnlessOff(name) => switch(name) != Some(false),
            Speaking(words) => speaks(around, words),
            If(holds) => holds(around, own),
        }
    }
}

fn is_true(text: String) -> bool {
    parse::boolean(&text) == Ok(true)
}

/// What is said several times unless it says `off`, which the template says where nothing else is asked for.
fn is_off(name: &str, around: Around<'_>, own: &Directive) -> bool {
    let says_off = own.arguments().first().is_some_and(|word| word.text == "off");
    says_off || around.value(name).is_none_or(|text| text == "off")
}

fn speaks(around: Around<'_>, words: &[&str]) -> bool {
    let protocol = around.value("backend-protocol").unwrap_or_default().to_ascii_uppercase();
    words.contains(&protocol.as_str())
}

/// By `auth_request`: one that connections are kept to is asked by a program.
fn asks_an_authenticator(around: Around<'_>) -> bool {
    if around.has("auth-url") {
        let kept = around.annotation("auth-keepalive").and_then(|text| text.parse::<u32>().ok());
        return kept.is_none_or(|kept| kept == 0);
    }
    let is_out = around.annotation("enable-global-auth");
    around.says("global-auth-url") && is_out.is_none_or(|text| parse::boolean(&text) != Ok(false))
}

/// What one text says twice.
fn said(key: &str, name: &str, text: &str, around: Around<'_>) -> Vec<Remark> {
    let Some((place, snippet)) = snippet_named(name, text) else { return Vec::new() };
    let rows = match place {
        Context::Location => LOCATION,
        Context::Server => SERVER,
        Context::Auth => QUESTION,
        Context::Http => HTTP,
        Context::Main | Context::Stream => return Vec::new(),
    };
    let told = snippet.directives().iter().filter_map(|own| {
        let row = rows.iter().find(|(name, _)| *name == own.name());
        let twice = row.filter(|(_, when)| when.holds(around, own)).map(|_| TWICE.to_owned());
        let message = match place {
            Context::Location => twice.or_else(|| adds(own, around)),
            _ => twice,
        };
        let message = format!("{}: {} {}", own.at(), own.name(), message?);
        Some(Remark { key: Some(key.to_owned()), message })
    });
    told.collect()
}

/// `proxy_next_upstream` may be said twice, and each adds to the other.
fn adds(own: &Directive, around: Around<'_>) -> Option<String> {
    let says = |wanted: &str| own.arguments().iter().any(|word| word.text == wanted);
    if own.name() != "proxy_next_upstream" || says("off") {
        return None;
    }
    let words = around.value("proxy-next-upstream");
    let words = words.unwrap_or_else(|| "error timeout".to_owned());
    let more: Vec<&str> = words.split_whitespace().filter(|word| !says(word)).collect();
    (!more.is_empty()).then(|| {
        format!(
            "stands beside the controller's in nginx, which counts {}, too; here it replaces that",
            more.join(" ")
        )
    })
}

/// Of what an Ingress says, and of what the ConfigMap says in its place.
pub(super) fn of_ingress(
    ingress: &Ingress,
    snapshot: &Snapshot,
    options: &Options,
    counts: impl Fn(&str) -> bool,
) -> Vec<Remark> {
    let around = Around { ingress: Some(ingress), snapshot, options };
    let asks = around.has("auth-url");
    let own = ingress.meta.annotations.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(options.annotations_prefix.as_str())?.strip_prefix('/')?;
        // Nobody pastes the other.
        let is_pasted = counts(key) && (name != "auth-snippet" || asks);
        is_pasted.then(|| said(key, name, text, around))
    });
    let mut found: Vec<Remark> = own.flatten().collect();
    found.extend(of_config_maps(around, &["location-snippet"]));
    found
}

/// Of those of the ConfigMap, whatever an Ingress says.
pub(super) fn of_all(snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let around = Around { ingress: None, snapshot, options };
    let mut names = vec!["http-snippet", "server-snippet", "location-snippet"];
    names.extend(Some("global-auth-snippet").filter(|_| around.says("global-auth-url")));
    of_config_maps(around, &names)
}

fn of_config_maps(around: Around<'_>, names: &[&str]) -> Vec<Remark> {
    let Some(map) = &around.options.config_map else { return Vec::new() };
    let of = |name: &&str| {
        let text = of_config_map(name, around.snapshot, around.options)?;
        Some(said(&named_of_config_map(map, name), name, text, around))
    };
    names.iter().filter_map(of).flatten().collect()
}

/// What the ConfigMap's snippets say that nginx heeds, or takes no configuration with, while it means something else
/// here.
pub(super) fn pasted(about: &[About<'_>], snapshot: &Snapshot, options: &Options) -> Vec<Remark> {
    let twice = of_all(snapshot, options);
    let is_heeded = |(problem, remark): &&About<'_>| {
        problem.severity == Severity::Notice
            && problem.is(Why::TookIt)
            && !twice.iter().any(|other| is_about(remark, other))
    };
    let heeded: Vec<Remark> =
        about.iter().filter(is_heeded).map(|(_, remark)| remark.clone()).collect();
    heeded.into_iter().chain(twice).collect()
}

/// Whether a snippet with these problems counts, or some of it.
pub(super) fn counts(key: &str, problems: &[Problem]) -> bool {
    let is_out = |it: &Problem| it.severity == Severity::Error || it.is(Why::NotAllowed);
    !problems.iter().any(|it| it.key.as_deref() == Some(key) && is_out(it))
}

/// Whether both are about the same directive of a snippet.
pub(super) fn is_about(one: &Remark, other: &Remark) -> bool {
    let directive = |it: &Remark| {
        let (line, rest) = it.message.strip_prefix("line ")?.split_once(", column ")?;
        let name = rest.split_once(": ")?.1.split(' ').next()?;
        Some((it.key.clone(), line.to_owned(), name.to_owned()))
    };
    directive(one).is_some_and(|one| directive(other) == Some(one))
}
