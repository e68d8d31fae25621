//! What upstreams are told about a request (compat/behaviour.md section 15): `upstream-vhost`,
//! `connection-proxy-header`, `x-forwarded-prefix`, and what `proxy-set-headers` of the ConfigMap says instead.

use super::super::location::At;
use super::super::tree::put;
use super::super::variables::variable_of;
use super::super::{Block, Word};
use super::{auth_external, client_certificate, real_ip};
use model::Template;
use model::policy::{ConnectionHeader, Protocol, Rewrite};

pub(in crate::conf) fn write(
    host: Option<&Template>,
    connection: Option<ConnectionHeader>,
    at: &mut At<'_, '_>,
) {
    let directive = match at.location.policy.protocol {
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => "proxy_set_header",
        Protocol::Grpc | Protocol::Grpcs => "grpc_set_header",
        // Parameters of a FastCGI request are another matter.
        Protocol::Fcgi => return fastcgi(at),
    };
    let own = own(or_own_host(host, at), connection, at);
    let configured = &at.scope.configuration.global.proxy_set_headers;
    let is_configured =
        |name: &str| configured.iter().any(|header| header.name.eq_ignore_ascii_case(name));
    for (name, value) in own {
        if !is_configured(name.as_str()) {
            at.block.put(directive, vec![name, value]);
        }
    }
    for header in configured {
        let value = Word::template(&header.value);
        at.block.put(directive, vec![Word::plain(&header.name), value]);
    }
}

/// The host that is asked for; where nothing is left of it, that of the client.
fn or_own_host(host: Option<&Template>, at: &mut At<'_, '_>) -> Word {
    let clients = Word::from("$fairway_host_of_client");
    let Some(host) = host else { return clients };
    let wanted = Word::template(host);
    if host.literal().is_some() {
        return wanted;
    }
    let print = super::super::fingerprint(host.to_string().as_bytes());
    let variable = Word::plain(format!("$fairway_vhost_{print}"));
    let mut map = Block::default();
    put!(map, "volatile");
    map.entry("default".into(), vec![wanted.clone()]);
    map.entry("".into(), vec![clients]);
    let mut declared = Block::default();
    declared.open("map", vec![wanted, variable.clone()], map);
    at.scope.declared.insert(format!("upstream-vhost {print}"), declared);
    variable
}

fn own(host: Word, connection: Option<ConnectionHeader>, at: &At<'_, '_>) -> Vec<(Word, Word)> {
    let global = &at.scope.configuration.global;
    let policy = &at.location.policy;
    let real = &global.real_ip;
    let is_grpc = matches!(policy.protocol, Protocol::Grpc | Protocol::Grpcs);
    let mut all: Vec<(Word, Word)> = vec![("Host".into(), host)];
    let mut tell = |name: &'static str, value: Word| all.push((name.into(), value));
    for (name, value) in client_certificate::told(at.server) {
        tell(name, value);
    }
    if !is_grpc {
        tell("Upgrade", "$fairway_upgrade".into());
        tell(
            "Connection",
            match connection {
                Some(ConnectionHeader::Close) => "close".into(),
                Some(ConnectionHeader::KeepAlive) => "keep-alive".into(),
                None => "$connection_upgrade".into(),
            },
        );
    }
    tell("X-Request-ID", "$req_id".into());
    tell("X-Real-IP", "$remote_addr".into());
    let full = real.forwarded_headers && real.full_forwarded_for;
    let forwarded = if full { "$full_x_forwarded_for" } else { "$remote_addr" };
    tell("X-Forwarded-For", forwarded.into());
    tell("X-Forwarded-Host", "$fairway_host_of_client".into());
    tell("X-Forwarded-Port", "$fairway_pass_port".into());
    tell("X-Forwarded-Proto", "$fairway_scheme".into());
    tell("X-Forwarded-Scheme", "$fairway_scheme".into());
    tell("X-Scheme", "$fairway_scheme".into());
    if global.original_uri_header {
        tell("X-Original-URI", "$request_uri".into());
    }
    tell("X-Original-Forwarded-For", variable_of(&real.forwarded_for_header));
    tell("X-Original-Forwarded-Host", variable_of(&real.forwarded_host_header));
    let told = if global.proxy_protocol && real.forwarded_headers {
        "$fairway_told_by_proxy_protocol"
    } else {
        ""
    };
    tell("X-Forwarded-For-Proxy-Protocol", told.into());
    tell("Proxy", "".into());
    if real_ip::takes_own_field(at.scope.environment, global) {
        tell(real_ip::FIELD, "".into());
    }
    if policy.auth_basic.is_some() {
        tell("Authorization", "".into());
    }
    if let Some(Rewrite { prefix: Some(prefix), .. }) = &policy.rewrite {
        tell("X-Forwarded-Prefix", Word::template(prefix));
    }
    all.extend(auth_external::said(policy.auth_external.as_deref()));
    all
}

fn fastcgi(at: &mut At<'_, '_>) {
    let policy = at.location.policy.clone();
    let parameter = |name: &str| format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
    if policy.auth_basic.is_some() {
        at.block.put("fastcgi_param", vec!["HTTP_AUTHORIZATION".into(), "".into()]);
    }
    for (name, value) in auth_external::said(policy.auth_external.as_deref()) {
        let name = Word::plain(parameter(name.as_str()));
        at.block.put("fastcgi_param", vec![name, value]);
    }
}
