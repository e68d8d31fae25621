//! A server: its names, its listeners, what it asks of all its clients, its locations.

use super::location;
use super::pattern::pattern;
use super::policy::{self, client_certificate};
use super::tree::{lua, put, words};
use super::{Block, Owner, Scope, Word, templates};
use model::policy::Ciphers;
use model::{Alias, Server, ServerName};

/// What a host has as a whole of a key, as far as nginx may refuse it.
pub(crate) const ALIASES: &str = "server-alias";
pub(crate) const CLIENT_CERTIFICATE: &str = "auth-tls-secret";
pub(crate) const CIPHERS: &str = "ssl-ciphers";
pub(crate) const APP_ROOT: &str = "app-root";
/// The host itself.
pub(crate) const HOST: &str = "host";

/// Writes a server.
pub(super) fn write(scope: &mut Scope<'_>, server: &Server, all: &mut Block) {
    let mut block = Block::default();
    names(server, &mut block);
    begin(scope, server.name.as_str() == "_", &mut block);
    if let Some(Ciphers { suites, prefer_server }) = &server.ciphers {
        let owner = || Owner::of_host(server, CIPHERS);
        if !suites.is_empty() {
            block.put_for(owner(), "ssl_ciphers", vec![Word::plain(suites.join(":"))]);
        }
        if let Some(prefer) = prefer_server {
            block.put_for(owner(), "ssl_prefer_server_ciphers", words![*prefer]);
        }
    }
    let mut certificate = Block::default();
    client_certificate::of_host(scope, server, &mut certificate);
    block.append_for(Owner::of_host(server, CLIENT_CERTIFICATE), certificate);
    templates::note_server(server, scope);
    if let Some(target) = &server.app_root {
        let (mut begins, mut redirect) = (Block::default(), Block::default());
        let to = Word::from("$scheme://$http_host").then(Word::template(target));
        put!(redirect, "return", 302_u16, to);
        begins.open("if", words!["(", "$uri", "=", "/", ")"], redirect);
        block.append_for(Owner::of_host(server, APP_ROOT), begins);
    }
    policy::raw::of_server(scope, server, &mut block);
    location::all(scope, server, &mut block);
    // Whose a line is that is nobody's here, is found by halves: the first Ingress of a host may be innocent.
    all.open_server(&server.name, block);
}

/// The server that answers where nothing else does, before there is a catch-all.
pub(super) fn nothing(scope: &mut Scope<'_>, all: &mut Block) {
    write(scope, &Server::new(ServerName::catch_all()), all);
}

/// The server of the name that is redirected to another one (`from-to-www-redirect`).
pub(super) fn redirected(scope: &mut Scope<'_>, to: &Server, from: &ServerName, all: &mut Block) {
    let mut block = Block::default();
    put!(block, "server_name", Word::plain(from.as_str()));
    begin(scope, false, &mut block);
    put!(block, "access_log", false);
    let status = scope.configuration.global.redirect_status;
    let target = Word::from("$fairway_scheme://")
        .then(Word::literal(to.name.as_str()))
        .then(":$fairway_pass_port$fairway_uri_without_slash");
    put!(block, "return", status, target);
    all.open("server", vec![], block);
}

fn names(server: &Server, block: &mut Block) {
    let name = server.name.as_str();
    let own = match name.strip_prefix("*.") {
        // One label, as ingress-nginx has it (compat/behaviour.md section 4).
        Some(parent) => {
            let parent = parent.replace('.', "\\.");
            Word::plain(format!("~^(?<subdomain>[\\w-]+)\\.{parent}$"))
        }
        None => Word::plain(name),
    };
    let aliases = server.aliases.iter().map(|alias| match alias {
        // nginx compares it with the host in lower case.
        Alias::Pattern(alias) => Word::from("~").then(pattern(&format!("(?i){}", alias.source()))),
        other => Word::plain(other.to_string()),
    });
    let owner = Owner::of_host(server, ALIASES).filter(|_| !server.aliases.is_empty());
    block.put_for(owner, "server_name", std::iter::once(own).chain(aliases).collect());
}

/// Listeners and certificates.
fn begin(scope: &Scope<'_>, is_default: bool, block: &mut Block) {
    let global = &scope.configuration.global;
    listen(scope, is_default, block);
    put!(block, "ssl_certificate", "data:$fairway_no_certificate");
    put!(block, "ssl_certificate_key", "data:$fairway_no_certificate");
    let present = lua("require(\"fairway.certificate\").present()");
    block.open("ssl_certificate_by_lua_block", vec![], present);
    if is_default && global.tls.reject_unknown_names {
        put!(block, "ssl_reject_handshake", true);
    }
    for (list, variable) in
        [(&global.block.user_agents, "$block_ua"), (&global.block.referers, "$block_ref")]
    {
        if !list.is_empty() {
            let mut refuse = Block::default();
            put!(refuse, "return", 403_u16);
            block.open("if", words!["(", variable, ")"], refuse);
        }
    }
}

fn listen(scope: &Scope<'_>, is_default: bool, block: &mut Block) {
    let global = &scope.configuration.global;
    let environment = scope.environment;
    let addresses = environment.listens_on(&global.listeners);
    let options = || {
        if is_default {
            vec!["default_server".into(), Word::from("backlog=").then(environment.backlog)]
        } else {
            Vec::new()
        }
    };
    // Not by itself, as ingress-nginx has it: where workers become fewer, whoever waits at the socket of one is reset.
    let reuse = is_default && global.tuning().reuse_port == Some(true);
    let options_of_port = || options().into_iter().chain(reuse.then(|| "reuseport".into()));
    let announced = || global.proxy_protocol.then(|| Word::from("proxy_protocol")).into_iter();
    for address in &addresses {
        let at = |port: u16| Word::plain(std::net::SocketAddr::new(*address, port).to_string());
        let plain = words![at(environment.http_port)].into_iter().chain(announced());
        block.put("listen", plain.chain(options_of_port()).collect());
        if !environment.passthrough {
            let h2 = global.http2.then(|| Word::from("http2"));
            let secure = words![at(environment.https_port), "ssl"].into_iter().chain(h2);
            block.put("listen", secure.chain(announced()).chain(options_of_port()).collect());
        }
    }
    if environment.passthrough {
        let at = Word::from("unix:").then(environment.inner().as_path());
        let h2 = global.http2.then(|| Word::from("http2"));
        let secure = words![at, "ssl", "proxy_protocol"].into_iter().chain(h2);
        block.put("listen", secure.chain(options()).collect());
    }
}
