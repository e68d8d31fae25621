//! The block `http`: what counts for every server.

use super::tree::{lua, put, words};
use super::{Block, Scope, Word, policy, server, templates, upstream, variables};
use crate::push::text_of_http;
use model::ServerName;

/// Everything under `http`.
pub(super) fn write(scope: &mut Scope<'_>) -> Block {
    let servers = servers(scope);
    let mut http = base(scope);
    // Sizes of hashes come before what is hashed.
    policy::global::write(scope, &mut http);
    templates::note_global(&scope.configuration.global, scope);
    variables::write(scope, &mut http);
    policy::raw::of_http(scope, &mut http);
    for (_, block) in std::mem::take(&mut scope.declared) {
        http.append(block);
    }
    upstream::declare(scope, "fairway", None);
    // What snippets call it that were written for ingress-nginx.
    upstream::declare(scope, "upstream_balancer", None);
    for (name, block) in std::mem::take(&mut scope.upstreams) {
        http.open("upstream", words![Word::plain(name)], block);
    }
    http.append(servers);
    http.append(control(scope));
    http
}

/// `http` without traffic.
pub(super) fn idle(scope: &mut Scope<'_>) -> Block {
    let mut http = base(scope);
    http.append(control(scope));
    http
}

/// Lua, and the folders that nginx writes to.
fn base(scope: &Scope<'_>) -> Block {
    let environment = scope.environment;
    let mut http = Block::default();
    let path = Word::from(environment.lua().as_path()).then("/?.lua;;");
    put!(http, "lua_package_path", path);
    for (name, size) in [
        ("fairway", "320m"),
        ("fairway_certificates", "384m"),
        ("fairway_turns", "1m"),
        ("fairway_scores", "10m"),
        ("fairway_staples", "5m"),
        ("fairway_digests", "10m"),
        ("fairway_mistakes", "10m"),
    ] {
        put!(http, "lua_shared_dict", name, size);
    }
    for (name, bytes) in &scope.configuration.global.tuning().shared_dicts {
        put!(http, "lua_shared_dict", Word::plain(name), *bytes);
    }
    put!(http, "lua_regex_match_limit", 100_000_u32);
    http.open("init_by_lua_block", vec![], lua("require(\"fairway.start\").init()"));
    http.open("init_worker_by_lua_block", vec![], lua("require(\"fairway.start\").worker()"));
    for (directive, what) in [
        ("client_body_temp_path", "body"),
        ("proxy_temp_path", "proxy"),
        ("fastcgi_temp_path", "fastcgi"),
        ("uwsgi_temp_path", "uwsgi"),
        ("scgi_temp_path", "scgi"),
    ] {
        http.put(directive, words![environment.temporary(what).as_path()]);
    }
    if !environment.resolvers.is_empty() {
        let servers = environment.resolvers.iter().map(|address| match address {
            std::net::IpAddr::V4(four) => Word::plain(four.to_string()),
            std::net::IpAddr::V6(six) => Word::plain(format!("[{six}]")),
        });
        let six =
            environment.ipv6 && scope.configuration.global.tuning().only_ipv4_names != Some(true);
        let valid = words!["valid=30s", if six { "ipv6=on" } else { "ipv6=off" }];
        http.put("resolver", servers.chain(valid).collect());
    }
    http
}

/// The servers in the order of their names, the catch-all first.
fn servers(scope: &mut Scope<'_>) -> Block {
    let configuration = scope.configuration;
    let mut all = Block::default();
    if let Some(rest) = configuration.servers.get(&ServerName::catch_all()) {
        server::write(scope, rest, &mut all);
    } else {
        server::nothing(scope, &mut all);
    }
    for server in configuration.servers.values().filter(|server| server.name.as_str() != "_") {
        server::write(scope, server, &mut all);
        if let Some(www) = &server.www {
            server::redirected(scope, server, www, &mut all);
        }
    }
    all
}

/// The socket for what changes without a reload, in a folder that is ours alone.
fn control(scope: &Scope<'_>) -> Block {
    let mut server = Block::default();
    let socket = Word::from("unix:").then(scope.environment.control().as_path());
    put!(server, "listen", socket);
    put!(server, "access_log", false);
    put!(server, "keepalive_requests", 1_000_000_u32);
    put!(server, "client_max_body_size", "64m");
    put!(server, "client_body_buffer_size", "64m");
    put!(server, "client_body_in_single_buffer", true);
    unguarded(scope, &mut server);
    put!(server, "set", "$fairway_secret", Word::plain(&scope.environment.password));
    server.open("access_by_lua_block", vec![], lua("require(\"fairway.control\").admit()"));
    let mut location = Block::default();
    let serve = lua("require(\"fairway.control\").serve()");
    location.open("content_by_lua_block", vec![], serve);
    server.open("location", words!["/configuration"], location);
    let mut ready = Block::default();
    ready.open("content_by_lua_block", vec![], lua("require(\"fairway.control\").ready()"));
    server.open("location", words!["=", "/is-dynamic-lb-initialized"], ready);
    let mut status = Block::default();
    put!(status, "stub_status");
    server.open("location", words!["=", "/nginx_status"], status);
    let mut all = Block::default();
    all.remark("What changes without a reload comes in here.");
    all.open("server", vec![], server);
    all
}

/// What the ConfigMap says for all of `http` is for clients: the socket has a lock of its own, and hears us whatever
/// that is, or nothing would change any more.
fn unguarded(scope: &Scope<'_>, server: &mut Block) {
    let configuration = scope.configuration;
    if policy::raw::wants_modsecurity(configuration) {
        put!(server, "modsecurity", false);
    }
    let Some(text) = text_of_http(configuration) else { return };
    put!(server, "satisfy", "all");
    put!(server, "allow", "all");
    put!(server, "auth_basic", false);
    // What comes in is in memory, and nobody is slow.
    put!(server, "client_body_in_file_only", false);
    put!(server, "limit_rate", 0_u32);
    // They count, and hold nobody up.
    put!(server, "limit_req_dry_run", true);
    put!(server, "limit_conn_dry_run", true);
    // nginx may have been built without it.
    if text.contains("auth_request") {
        put!(server, "auth_request", false);
    }
    // They would write into what the socket says. Who has something to replace has nothing of what stands above.
    if text.contains("sub_filter") {
        put!(server, "sub_filter", "\n\n", "\n\n");
    }
    if text.contains("charset") {
        put!(server, "charset", false);
    }
    // Older modules do not have it.
    if text.contains("server_rewrite_by_lua") {
        server.open("server_rewrite_by_lua_block", vec![], lua("return"));
    }
    for hook in ["rewrite_by_lua_block", "header_filter_by_lua_block", "body_filter_by_lua_block"] {
        server.open(hook, vec![], lua("return"));
    }
}
