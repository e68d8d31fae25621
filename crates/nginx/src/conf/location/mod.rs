//! The locations of a server: which paths they have in nginx, and what is in them.

mod at;
mod closed;
mod names;
mod texts;

pub(super) use at::{At, Beside};
pub(super) use names::Name;
pub(super) use texts::of_all;
pub(crate) use texts::{Had, had_by_texts, has_location_of_all, with_location_of_all};

use super::policy::{self, client_certificate};
use super::tree::{lua, put, words};
use super::{Block, Scope, Word, templates};
use crate::push;
use model::policy::{Policy, TlsRedirect};
use model::{
    Backend, Configuration, DEFAULT_BACKEND, Kind, Location, PathKind, Server, ServerName,
    is_same_owner,
};
use names::{names, path};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

/// When plain HTTP is redirected to HTTPS.
#[derive(Clone, Copy)]
enum Redirects {
    Never,
    WithCertificate,
    Always,
}

/// The hook that redirects to HTTPS, finds out whether anybody is there, and chooses between main side and canary. What
/// requires a certificate of clients is closed on plain HTTP (compat/decisions.md).
fn enter(redirects: Redirects, closed: bool) -> &'static str {
    match (redirects, closed) {
        (Redirects::Never, false) => "require(\"fairway.request\").enter()",
        (Redirects::WithCertificate, false) => {
            "require(\"fairway.request\").enter(\"certificate\")"
        }
        (Redirects::Always, false) => "require(\"fairway.request\").enter(\"always\")",
        (Redirects::Never, true) => "require(\"fairway.request\").enter(nil, true)",
        (Redirects::WithCertificate, true) => {
            "require(\"fairway.request\").enter(\"certificate\", true)"
        }
        (Redirects::Always, true) => "require(\"fairway.request\").enter(\"always\", true)",
    }
}

/// Whether the certificate that a host would have is of somebody else's wildcard host.
fn is_below_a_stranger(server: &Server, configuration: &Configuration) -> bool {
    let parent = server.name.as_str().split_once('.').map(|(_, parent)| format!("*.{parent}"));
    let above = parent.and_then(|name| configuration.servers.get(&ServerName::new(name)));
    let is_same = |above: &Arc<Server>| is_same_owner(server.owner.as_ref(), above.owner.as_ref());
    server.certificate.is_none() && above.is_some_and(|above| !is_same(above))
}

/// The hook that measures.
pub(super) const LEAVE: &str = "require(\"fairway.request\").leave()";

/// Writes all locations of a server.
pub(super) fn all(scope: &mut Scope<'_>, server: &Server, block: &mut Block) {
    let mut beside = Beside::default();
    let mut taken: HashSet<Name> = texts::of_host(server);
    taken.extend(scope.of_all.iter().cloned());
    for index in order(scope, server) {
        let location = &server.locations[index];
        let is_closed = closed::is_closed(scope, server, location);
        let mut names = if is_closed {
            closed::names(server, location, &taken)
        } else {
            names(server, location)
        };
        names.retain(|(kind, path)| taken.insert((*kind, path.clone())));
        if names.is_empty() {
            continue;
        }
        let body = if is_closed {
            closed::body(location)
        } else {
            body(scope, server, index, &mut beside)
        };
        for (modifier, path) in names {
            let words = match modifier {
                "" => words![Word::plain(path)],
                modifier => words![modifier, Word::plain(path)],
            };
            let mut whole = Block::default();
            if remembers(location) && !is_closed {
                // nginx has two locations where a Prefix path has one, and each remembers for itself.
                put!(
                    whole,
                    "set",
                    "$fairway_form",
                    if modifier == "=" { "whole" } else { "below" }
                );
            }
            whole.append(body.clone());
            block.open_for(location.origin.as_deref(), "location", words, whole);
        }
    }
    block.append(beside.block);
    if server.locations.is_empty() && !taken.contains(&("", "/".to_owned())) {
        // Otherwise nginx would look for files.
        let mut nothing = Block::default();
        put!(nothing, "return", 404_u16);
        block.open("location", words!["/"], nothing);
    }
    let health = &scope.environment.health_path;
    if server.name.as_str() == "_" && !health.is_empty() && !taken.contains(&("", health.clone())) {
        let mut healthy = Block::default();
        put!(healthy, "access_log", false);
        put!(healthy, "return", 200_u16);
        block.open("location", words!["^~", Word::plain(health)], healthy);
    }
}

/// Whether what its authenticator says is remembered.
fn remembers(location: &Location) -> bool {
    let authenticator = location.policy.auth_external.as_ref();
    authenticator.is_some_and(|authenticator| authenticator.cache.is_some())
}

/// Regex hosts try the longest text first; on plain hosts nginx finds the longest prefix itself, but an Exact path
/// goes before what a Prefix path is split into, and both before what is closed in place of another path.
fn order(scope: &Scope<'_>, server: &Server) -> Vec<usize> {
    let mut order: Vec<usize> = (0..server.locations.len()).collect();
    let location = |index: usize| &server.locations[index];
    if server.regex {
        order.sort_by_key(|index| {
            let path = path(location(*index));
            // The root of a host goes before an Exact `/`, which is the same expression.
            let is_second = path == "/" && location(*index).kind == PathKind::Exact;
            (Reverse(path.len()), Reverse(path.to_owned()), is_second)
        })
    } else {
        order.sort_by_cached_key(|index| {
            let location = location(*index);
            (closed::is_closed(scope, server, location), location.kind)
        })
    }
    order
}

fn body(scope: &mut Scope<'_>, server: &Server, index: usize, beside: &mut Beside) -> Block {
    let location = &server.locations[index];
    let block = templates::keep_groups(server, &location.policy, scope);
    let mut at = At { scope, server, location, index, block, beside };
    variables(&mut at);
    policy::hsts::write(&mut at);
    if matches!(location.backend, Backend::Denied(_)) {
        policy::errors::write(location.policy.errors.as_ref(), &mut at);
        put!(at.block, "return", 503_u16);
        return at.block;
    }
    policy::real_ip::of_location(&mut at);
    policies(&mut at);
    at.block
}

fn variables(at: &mut At<'_, '_>) {
    let Location { path, kind: _, whole: _, backend, canary: _, service, origin, policy, .. } =
        at.location;
    let block = &mut at.block;
    if let Some(origin) = origin.as_deref().filter(|origin| origin.kind == Kind::Ingress) {
        put!(block, "set", "$namespace", Word::literal(&origin.namespace));
        put!(block, "set", "$ingress_name", Word::literal(&origin.name));
    }
    if let Some(service) = service {
        put!(block, "set", "$service_name", Word::literal(&service.name));
        put!(block, "set", "$service_port", Word::literal(&service.port));
    }
    put!(block, "set", "$location_path", Word::literal(path));
    let upstream = match backend {
        Backend::Upstream(id) => id.as_str(),
        Backend::NotFound => DEFAULT_BACKEND,
        Backend::Denied(_) | Backend::Broken(_) => return,
    };
    put!(block, "set", "$proxy_upstream_name", Word::literal(upstream));
    // Lua can only write what is set somewhere.
    put!(block, "set", "$proxy_alternative_upstream_name", "");
    put!(block, "set", "$fairway_stands_in", "");
    let TlsRedirect { with_certificate, always, preserve_trailing_slash, with_port } =
        policy.tls_redirect;
    let global = &at.scope.configuration.global;
    let spared = global.no_tls_redirect.iter().any(|prefix| path.starts_with(prefix));
    let redirects = match (always, with_certificate) {
        _ if spared => Redirects::Never,
        (true, _) => Redirects::Always,
        (false, true) if is_below_a_stranger(at.server, at.scope.configuration) => Redirects::Never,
        (false, true) => Redirects::WithCertificate,
        (false, false) => Redirects::Never,
    };
    let slash = if preserve_trailing_slash { "keep" } else { "cut" };
    put!(block, "set", "$fairway_tls_redirect_slash", slash);
    if with_port {
        put!(block, "set", "$fairway_tls_redirect_port", at.scope.environment.https_port);
    }
    if let Backend::Upstream(id) = backend {
        put!(block, "set", "$fairway_upstream", Word::literal(id.as_str()));
        let route = push::route_key(&at.server.name, at.location);
        put!(block, "set", "$fairway_route", Word::literal(&route));
    }
    let closed = client_certificate::is_closed_on_plain_http(at);
    at.block.open("rewrite_by_lua_block", vec![], lua(enter(redirects, closed)));
    // A hook costs each request something, so it is there only if there is something to measure.
    if at.scope.environment.measures || at.location.is_measured() {
        at.block.open("log_by_lua_block", vec![], lua(LEAVE));
    }
}

/// Every policy, in the order in which nginx's rewrite directives have to stand.
fn policies(at: &mut At<'_, '_>) {
    let location = at.location;
    let Policy {
        protocol,
        http_version,
        fastcgi,
        upstream_tls,
        timeouts,
        retries,
        body,
        // Lua redirects.
        tls_redirect: _,
        client_certificate,
        // Suites are a matter of the server.
        ciphers: _,
        redirect,
        relative_redirects,
        upstream_host,
        rewrite,
        errors,
        default_backend,
        mirror,
        logging,
        auth_basic,
        auth_external,
        access,
        limits,
        limit_rate,
        cors,
        answer_rewrites,
        connection_header,
        custom_headers,
        // Debian has no module for it: the native engine alone makes spans.
        opentelemetry: _,
        // Lua balances.
        balance: _,
        // nginx reads the texts themselves.
        snippet: _,
        // Only locations of Gateways have any, and none of those comes here: their class is refused.
        route: _,
        raw,
    } = &*location.policy;
    client_certificate::of_location(client_certificate.as_ref(), at);
    policy::logging::write(*logging, at);
    policy::access::write(access, at);
    policy::cors::write(cors.as_deref(), at);
    policy::custom_headers::write(custom_headers, at);
    policy::redirects::spell(*relative_redirects, at);
    policy::auth_basic::write(auth_basic.as_deref(), at);
    policy::auth_external::write(auth_external.as_deref(), at);
    policy::limits::write(limits, at);
    policy::limit_rate::write(*limit_rate, at);
    policy::mirror::write(mirror.as_deref(), at);
    policy::body::write(*body, at);
    policy::timeouts::write(*timeouts, *protocol, at);
    policy::retries::write(retries, *protocol, at);
    policy::errors::write(errors.as_ref(), at);
    // Snippets come before the redirect and the rewrite, which end what the rewrite module does.
    policy::raw::write(raw.as_deref(), at);
    policy::redirects::write(redirect.as_ref(), at);
    policy::rewrite::write(rewrite.as_ref(), at);
    policy::request_headers::write(upstream_host.as_ref(), *connection_header, at);
    if default_backend.is_some() {
        policy::errors::stand_in(at);
    }
    policy::answer_rewrites::write(answer_rewrites, at);
    policy::fastcgi::write(fastcgi, *protocol, at);
    let to = policy::upstream_tls::write(upstream_tls, *protocol, at);
    policy::protocol::write(*protocol, *http_version, &to, at);
}
