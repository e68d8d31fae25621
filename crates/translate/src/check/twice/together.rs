//! What two texts both say that ingress-nginx pastes into one place, and nginx takes there once.

use snippet::syntax::Directive;

/// What nginx takes again, beside names with an end of [`ENDS`] and those of headers-more.
const AGAIN: &[&str] = &[
    "access_log",
    "add_header",
    "add_trailer",
    "allow",
    "auth_request_set",
    "break",
    "dav_methods",
    "deny",
    "early_hints",
    "empty_gif",
    "error_log",
    "error_page",
    "fastcgi_catch_stderr",
    "fastcgi_param",
    "fastcgi_split_path_info",
    "http2_idle_timeout",
    "http2_max_field_size",
    "http2_max_header_size",
    "http2_max_requests",
    "http2_push",
    "http2_push_preload",
    "http2_recv_timeout",
    "if",
    "index",
    "keepalive_disable",
    "return",
    "rewrite",
    "server_name",
    "set",
    "set_real_ip_from",
    "ssl_protocols",
    "ssl_session_cache",
    "stub_status",
    "sub_filter",
    "types",
];

const ENDS: [&str; 5] =
    ["_cache_bypass", "_hide_header", "_no_cache", "_pass_header", "_set_header"];

/// Of these all words count together, wherever they stand.
const ADDING: [&str; 3] = ["gzip_disable", "gzip_proxied", "valid_referers"];
const ENDS_OF_ADDING: [&str; 4] = ["_ignore_headers", "_next_upstream", "_ssl_protocols", "_types"];

/// Whether nginx refuses one of two directives of a place as a duplicate of the other.
pub(super) fn clash(one: &Directive, other: &Directive) -> bool {
    one.name() == other.name()
        && match one.name() {
            "location" => location(one).is_some_and(|own| location(other) == Some(own)),
            "limit_req" | "limit_conn" => zone(one) == zone(other),
            "valid_referers" => {
                words(one).filter(is_host).any(|word| words(other).any(|it| it == word))
            }
            "proxy_redirect"
            | "proxy_cookie_domain"
            | "proxy_cookie_path"
            | "proxy_cookie_flags" => is_off(one) || is_off(other),
            name => {
                let is_again = AGAIN.contains(&name)
                    || name.starts_with("more_")
                    || ENDS.iter().any(|end| name.ends_with(end));
                !is_again && !adds(name)
            }
        }
}

fn adds(name: &str) -> bool {
    ADDING.contains(&name) || ENDS_OF_ADDING.iter().any(|end| name.ends_with(end))
}

/// Words of `more` that nginx counts beside those of a directive of this name, unless that says `off` or everything.
pub(super) fn added<'a>(words: &[&str], more: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if ["off", "*"].iter().any(|all| words.contains(all)) {
        return Vec::new();
    }
    more.filter(|word| !words.contains(word)).collect()
}

/// What of two directives that add up in nginx does not count here, where the first one does.
pub(super) fn lost<'a>(counts: &Directive, other: &'a Directive) -> Vec<&'a str> {
    if counts.name() != other.name() || !adds(counts.name()) {
        return Vec::new();
    }
    added(&words(counts).collect::<Vec<_>>(), words(other))
}

pub(super) fn words(directive: &Directive) -> impl Iterator<Item = &str> {
    directive.arguments().iter().map(|word| word.text.as_str())
}

/// Whether a location is exact, and its path. Expressions and names may be there several times.
fn location(directive: &Directive) -> Option<(bool, String)> {
    let text: String = words(directive).collect();
    if text.starts_with(['~', '@']) {
        return None;
    }
    Some(match text.strip_prefix('=') {
        Some(path) => (true, path.to_owned()),
        None => (false, text.strip_prefix("^~").unwrap_or(&text).to_owned()),
    })
}

/// Whether a word of `valid_referers` is a name, which may be there once.
fn is_host(word: &&str) -> bool {
    !["none", "blocked", "server_names"].contains(word) && !word.starts_with('~')
}

fn zone(directive: &Directive) -> Option<&str> {
    match directive.name() {
        "limit_req" => words(directive).find_map(|word| word.strip_prefix("zone=")),
        _ => words(directive).next(),
    }
}

/// `off` takes no other entry beside it.
pub(super) fn is_off(directive: &Directive) -> bool {
    words(directive).next() == Some("off")
}
