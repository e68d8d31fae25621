//! `auth-url` and its companions (ngx_http_auth_request_module; compat/behaviour.md section 16).

use super::super::location::At;
use super::super::tree::{lua, put, words};
use super::super::{Block, Word, fingerprint};
use super::{client_certificate, upstream_tls};
use model::policy::{AuthCache, AuthExternal};
use model::{Location, is_of_connection, revealed};

/// nginx takes the first of several lines; all of them are meant.
const HEAR: &str = "require(\"fairway.answer\").hear()";
/// And all of them are told.
const TELL: &str = "require(\"fairway.answer\").filter()";

pub(in crate::conf) fn write(policy: Option<&AuthExternal>, at: &mut At<'_, '_>) {
    let Some(policy) = policy else { return };
    let path = at.scope.environment.internal("auth", at.index);
    put!(at.block, "auth_request", Word::plain(&path));
    if policy.always_set_cookie {
        put!(at.block, "add_header", "Set-Cookie", "$auth_cookie", "always")
    } else {
        put!(at.block, "add_header", "Set-Cookie", "$auth_cookie")
    }
    // nginx and Lua write one line of this name each; `answer.lua` leaves the rest of them here.
    at.block.open("header_filter_by_lua_block", vec![], lua(TELL));
    put!(at.block, "add_header", "WWW-Authenticate", "$fairway_challenges", "always");
    for (index, name) in policy.response_headers.iter().enumerate() {
        let header = name.to_ascii_lowercase().replace('-', "_");
        let variable = Word::from("$fairway_said_").then(index);
        let value = Word::plain(format!("$upstream_http_{header}"));
        put!(at.block, "auth_request_set", variable, value);
    }
    if let Some(page) = &policy.sign_in {
        let name = at.scope.environment.named(&format!("fairway_sign_in_{}", at.index));
        put!(at.block, "error_page", 401_u16, "=", Word::plain(&name));
        if at.beside.is_new(&name) {
            let mut redirect = Block::default();
            escape(&mut redirect);
            if let Some(cors) = &at.location.policy.cors {
                redirect.append(super::cors::block(cors));
            }
            put!(redirect, "add_header", "Set-Cookie", "$auth_cookie", "always");
            put!(redirect, "return", 302_u16, Word::template(page));
            let (origin, words) = (at.location.origin.as_deref(), words![Word::plain(name)]);
            at.beside.block.open_for(origin, "location", words, redirect);
        }
    }
    if at.beside.is_new(&path) {
        let question = question(policy, at);
        let (origin, words) = (at.location.origin.as_deref(), words!["=", Word::plain(path)]);
        at.beside.block.open_for(origin, "location", words, question);
    }
}

/// What the application is told of what the authenticator said.
pub(in crate::conf) fn said(policy: Option<&AuthExternal>) -> Vec<(Word, Word)> {
    let names = policy.iter().flat_map(|policy| policy.response_headers.iter().enumerate());
    names
        // What the request is framed by stays our own, whatever an authenticator says.
        .filter(|(_, name)| !is_of_connection(name.as_bytes()))
        .map(|(index, name)| (Word::plain(name), Word::from("$fairway_said_").then(index)))
        .collect()
}

fn escape(block: &mut Block) {
    let code = lua("return ngx.escape_uri(ngx.var.request_uri)");
    block.open("set_by_lua_block", words!["$escaped_request_uri"], code);
}

/// The location that asks.
fn question(policy: &AuthExternal, at: &mut At<'_, '_>) -> Block {
    let AuthExternal {
        url,
        method,
        sign_in: _,
        response_headers: _,
        request_headers,
        // What describes the request says it.
        request_redirect: _,
        always_set_cookie: _,
        cache,
        snippet: _,
    } = policy;
    let mut block = Block::default();
    put!(block, "internal");
    // Or the authenticator of one host would send its question on to that of another one.
    put!(block, "proxy_ignore_headers", "X-Accel-Redirect");
    if !at.scope.configuration.global.logs.auth_access {
        put!(block, "access_log", false);
    }
    escape(&mut block);
    put!(block, "set", "$fairway_challenges", "");
    block.open("header_filter_by_lua_block", vec![], lua(HEAR));
    let to = upstream_tls::url(url, &mut block, at);
    if let Some(cache) = cache {
        remember(policy, cache, at, &mut block);
    }
    put!(block, "proxy_pass_request_body", false);
    if let Some(method) = method {
        put!(block, "proxy_method", Word::literal(method));
    }
    let given =
        |name: &str| request_headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    for (name, value) in described(policy, at).into_iter().filter(|(name, _)| !given(name)) {
        put!(block, "proxy_set_header", name, value);
    }
    for (name, value) in request_headers {
        put!(block, "proxy_set_header", Word::plain(name), Word::of_question(value));
    }
    super::raw::of_auth(at, &mut block);
    let body = at.location.policy.body;
    put!(block, "client_max_body_size", body.max_size.unwrap_or(0));
    // What is remembered passes through buffers.
    put!(block, "proxy_buffering", cache.is_some());
    put!(block, "proxy_buffer_size", body.response_header);
    put!(block, "proxy_buffers", 4_u8, body.response_header);
    put!(block, "proxy_busy_buffers_size", body.response_header.saturating_mul(2));
    put!(block, "proxy_http_version", "1.1");
    // A query after a static URL would be that of the request.
    let target = upstream_tls::target(&url.target, &mut block);
    let slash = if url.target.to_string().starts_with('/') { "" } else { "/" };
    put!(block, "proxy_pass", to.then(slash).then(target));
    block
}

/// What describes the request, in the order of ingress-nginx.
fn described(policy: &AuthExternal, at: &At<'_, '_>) -> Vec<(&'static str, Word)> {
    let mut headers: Vec<(&'static str, Word)> = Vec::new();
    let mut tell = |name: &'static str, value: Word| headers.push((name, value));
    tell("Content-Length", "".into());
    tell("X-Forwarded-Proto", "".into());
    tell("X-Request-ID", "$req_id".into());
    if policy.method.is_some() {
        tell("X-Original-URI", "$request_uri".into());
        tell("X-Scheme", "$fairway_scheme".into());
    }
    tell("Host", upstream_tls::host_of(&policy.url));
    tell("X-Original-URL", "$scheme://$http_host$request_uri".into());
    tell("X-Original-Method", "$request_method".into());
    tell("X-Sent-From", "nginx-ingress-controller".into());
    tell("X-Real-IP", "$remote_addr".into());
    let real = &at.scope.configuration.global.real_ip;
    let full = real.forwarded_headers && real.full_forwarded_for;
    let forwarded = if full { "$full_x_forwarded_for" } else { "$remote_addr" };
    tell("X-Forwarded-For", forwarded.into());
    let redirect = policy.request_redirect.as_ref();
    let redirect = redirect.map_or("$request_uri".into(), |redirect| Word::of_question(redirect));
    tell("X-Auth-Request-Redirect", redirect);
    for name in ["Upgrade", "TE", "Expect", "Proxy", "Keep-Alive", "Connection"] {
        tell(name, "".into());
    }
    for (name, value) in client_certificate::told(at.server) {
        tell(name, value);
    }
    headers
}

/// Answers that are remembered (`auth-cache-key`). Each namespace has room of its own, so that none has those of
/// another one forgotten.
fn remember(policy: &AuthExternal, cache: &AuthCache, at: &mut At<'_, '_>, block: &mut Block) {
    let AuthCache { key, durations } = cache;
    let origin = at.location.origin.as_deref();
    let namespace = origin.map(|origin| &*origin.namespace).unwrap_or_default();
    let whose = fingerprint(namespace.as_bytes());
    let folder = at.scope.environment.temporary("auth").join(&whose);
    at.scope.remembered.insert(whose.clone());
    let name = Word::from("fairway_auth_").then(Word::plain(whose));
    let mut zone = Block::default();
    put!(
        zone,
        "proxy_cache_path",
        folder.as_path(),
        "levels=1:2",
        Word::from("keys_zone=").then(name.clone()).then(":2m"),
        "max_size=64m",
        "inactive=30m",
        "use_temp_path=off",
    );
    at.scope.declared.insert(format!("what authenticators of {namespace} said"), zone);
    put!(block, "proxy_cache", name);
    // Who said it of what, in a form that no key can imitate: another one, or that of somebody else, is asked.
    let Location { path, kind, policy: all, .. } = at.location;
    let (host, index) = (&at.server.name, at.index);
    #[expect(clippy::disallowed_methods, reason = "a fingerprint is made of it")]
    let asked = revealed(|| serde_json::to_string(policy)).unwrap_or_default();
    let of_all = at.scope.configuration.global.raw.as_ref().and_then(|raw| raw.auth.as_ref());
    let text = all.raw.as_ref().and_then(|raw| raw.auth.as_ref()).or(of_all);
    let text = text.map(|text| text.as_str()).unwrap_or_default();
    let whole = format!("{origin:?} {host} {kind:?} {path:?} {index} {asked} {text}");
    let id = fingerprint(whole.as_bytes());
    let key = Word::exact(&key.without_groups());
    put!(block, "proxy_cache_key", Word::plain(id).then(" $fairway_form ").then(key));
    for duration in durations {
        let any = duration.statuses.is_empty().then(|| Word::from("any"));
        let statuses = duration.statuses.iter().map(|status| Word::from(*status)).chain(any);
        block.put("proxy_cache_valid", statuses.chain([duration.time.into()]).collect());
    }
}
