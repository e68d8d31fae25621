//! `proxy-ssl-*`: TLS towards upstreams. Each way to speak it has a block `upstream` of its own, so that a kept
//! connection of one is never used for another.

use super::super::location::At;
use super::super::tree::{lua, put, words};
use super::super::{Block, Word, fingerprint, upstream};
use super::global::protocols;
use crate::pem;
use model::policy::{Protocol, UpstreamTls};
use model::{Template, Url};

/// Where a location's requests go: one block `upstream` for what is in clear, one for what is not.
pub(in crate::conf) struct To {
    pub(in crate::conf) clear: Word,
    pub(in crate::conf) secure: Word,
}

pub(in crate::conf) fn write(policy: &UpstreamTls, protocol: Protocol, at: &mut At<'_, '_>) -> To {
    let (prefix, speaks_tls) = match protocol {
        Protocol::Http => ("proxy", false),
        Protocol::Https | Protocol::AutoHttp => ("proxy", true),
        Protocol::Grpc => ("grpc", false),
        Protocol::Grpcs => ("grpc", true),
        Protocol::Fcgi => ("fastcgi", false),
    };
    let clear = match protocol {
        Protocol::Http | Protocol::Https | Protocol::AutoHttp => "fairway".to_owned(),
        Protocol::Grpc | Protocol::Grpcs => "fairway_grpc".to_owned(),
        Protocol::Fcgi => "fairway_fastcgi".to_owned(),
    };
    let clear = declared(clear, at);
    if !speaks_tls {
        return To { secure: clear.clone(), clear };
    }
    let secure = declared(format!("fairway_{prefix}_tls_{}", name(policy)), at);
    let directives = if prefix == "grpc" { GRPC } else { PROXY };
    settings(policy, &directives, at);
    To { clear, secure }
}

fn declared(name: String, at: &mut At<'_, '_>) -> Word {
    if !at.scope.upstreams.contains_key(&name) {
        upstream::declare(at.scope, &name, None);
    }
    Word::plain(name)
}

/// Tells ways to speak TLS apart, keys included.
fn name(policy: &UpstreamTls) -> String {
    let mut bytes = format!("{policy:?}").into_bytes();
    for authority in policy.authorities.iter() {
        bytes.extend_from_slice(authority);
    }
    if let Some(identity) = &policy.identity {
        identity.chain.iter().for_each(|der| bytes.extend_from_slice(der));
        bytes.extend_from_slice(&identity.key.0);
    }
    fingerprint(&bytes)
}

/// The names of the directives, in the order of [`settings`].
type Directives = [&'static str; 10];
const PROXY: Directives = [
    "proxy_ssl_trusted_certificate",
    "proxy_ssl_verify",
    "proxy_ssl_verify_depth",
    "proxy_ssl_name",
    "proxy_ssl_server_name",
    "proxy_ssl_certificate",
    "proxy_ssl_certificate_key",
    "proxy_ssl_protocols",
    "proxy_ssl_ciphers",
    "proxy_ssl_session_reuse",
];
const GRPC: Directives = [
    "grpc_ssl_trusted_certificate",
    "grpc_ssl_verify",
    "grpc_ssl_verify_depth",
    "grpc_ssl_name",
    "grpc_ssl_server_name",
    "grpc_ssl_certificate",
    "grpc_ssl_certificate_key",
    "grpc_ssl_protocols",
    "grpc_ssl_ciphers",
    "grpc_ssl_session_reuse",
];

fn settings(policy: &UpstreamTls, directives: &Directives, at: &mut At<'_, '_>) {
    // Of Gateways, which this engine does not serve, are `system` and `names`.
    let UpstreamTls {
        authorities,
        verify,
        name,
        server_name,
        identity,
        depth,
        versions,
        ciphers,
        system: _,
        names: _,
    } = policy;
    let [trusted, verifies, deep, named, sends, chain_file, key_file, speaks, suites, resumes] =
        *directives;
    if *verify {
        let authorities = if authorities.is_empty() {
            at.scope.environment.nobody.clone()
        } else {
            pem::certificates(authorities.iter().map(AsRef::as_ref))
        };
        let file = at.scope.file("pem", authorities.into_bytes());
        at.block.put(trusted, vec![file]);
        at.block.put(verifies, words![true]);
        at.block.put(deep, words![(*depth).max(1)]);
    }
    // Where nobody names it, the name would be that of the block `upstream`: nothing outside knows it.
    let name = match name {
        Some(name) => Word::literal(name),
        None => Word::from("upstream_balancer"),
    };
    at.block.put(named, vec![name]);
    at.block.put(sends, words![*server_name]);
    if let Some(identity) = identity {
        let chain = pem::certificates(identity.chain.iter().map(AsRef::as_ref));
        let file = at.scope.file("pem", chain.into_bytes());
        at.block.put(chain_file, vec![file]);
        let key = at.scope.file("key", pem::private_key(&identity.key.0).into_bytes());
        at.block.put(key_file, vec![key]);
    }
    if !versions.is_empty() {
        at.block.put(speaks, protocols(versions.iter().copied()));
    }
    if !ciphers.is_empty() {
        at.block.put(suites, words![Word::plain(ciphers.join(":"))]);
    }
    // Sessions would be shared by all that speak TLS in this way; verification is done anew each time.
    at.block.put(resumes, words![!*verify]);
}

/// Finds out where variables lead, with the port of the scheme.
const LEAD: &str = "require(\"fairway.request\").lead(80)";
const LEAD_SECURE: &str = "require(\"fairway.request\").lead(443)";
/// What is asked beside a request is no answer to it: whoever is led there by X-Accel-Redirect gets 404.
const ENTER_ASIDE: &str =
    "require(\"fairway.request\").aside()\nrequire(\"fairway.request\").enter()";

/// The beginning of `proxy_pass` for a URL of ours: external authentication, mirrors.
pub(in crate::conf) fn url(url: &Url, block: &mut Block, at: &mut At<'_, '_>) -> Word {
    let scheme = if url.secure { "https://" } else { "http://" };
    if url.secure {
        put!(block, "proxy_ssl_server_name", true);
        put!(block, "proxy_ssl_name", host_of(url));
    }
    let Some(upstream) = &url.upstream else {
        return Word::from(scheme).then(led(url, block, at));
    };
    put!(block, "set", "$fairway_upstream", Word::literal(upstream.as_str()));
    put!(block, "set", "$fairway_route", "");
    block.open("rewrite_by_lua_block", vec![], lua(ENTER_ASIDE));
    let name = if url.secure {
        let authority = fingerprint(url.authority.to_string().as_bytes());
        declared(format!("fairway_url_tls_{authority}"), at)
    } else {
        declared("fairway".to_owned(), at)
    };
    Word::from(scheme).then(name)
}

/// Who is asked where variables say so: found out for each request by us, since nginx would go anywhere, and take
/// `unix:/…` for a socket.
fn led(url: &Url, block: &mut Block, at: &mut At<'_, '_>) -> Word {
    put!(block, "set", "$fairway_authority", Word::of_question(&url.authority));
    let code = if url.secure { LEAD_SECURE } else { LEAD };
    block.open("rewrite_by_lua_block", vec![], lua(code));
    // Neither a connection nor a session of one host is another one's, and one that was kept may have ended.
    let name = if url.secure { "fairway_led_tls" } else { "fairway_led" };
    if url.secure {
        put!(block, "proxy_ssl_session_reuse", false);
    }
    upstream::declare(at.scope, name, Some(0));
    Word::plain(name)
}

/// The target of a URL of ours in a variable, with everything percent-encoded that would end the request line:
/// variables can hold anything that a client sends.
pub(in crate::conf) fn target(target: &Template, block: &mut Block) -> Word {
    const ESCAPE: &str = "return (ngx.var.fairway_target:gsub(\"[^%g]\", function(c)\n\
        return string.format(\"%%%02X\", c:byte())\n\
        end))";
    put!(block, "set", "$fairway_target", Word::of_question(target));
    block.open("set_by_lua_block", words!["$fairway_escaped_target"], lua(ESCAPE));
    Word::from("$fairway_escaped_target")
}

/// The host of a URL, without its port.
pub(in crate::conf) fn host_of(url: &Url) -> Word {
    let text = url.authority.to_string();
    match (url.authority.literal(), text.rsplit_once(':')) {
        (Some(_), Some((host, port))) if !port.contains(']') => Word::literal(host),
        _ => Word::of_question(&url.authority),
    }
}
