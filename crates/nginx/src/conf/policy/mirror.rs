//! `mirror-target`, `mirror-host`, `mirror-request-body` (ngx_http_mirror_module).

use super::super::location::At;
use super::super::tree::{put, words};
use super::super::{Block, Word};
use super::upstream_tls;
use model::policy::Mirror;

pub(in crate::conf) fn write(policy: Option<&Mirror>, at: &mut At<'_, '_>) {
    let Some(Mirror { url, host, body }) = policy else { return };
    let name = at.scope.environment.internal("mirror", at.index);
    put!(at.block, "mirror", Word::plain(&name));
    put!(at.block, "mirror_request_body", *body);
    if !at.beside.is_new(&name) {
        return;
    }
    let mut copy = Block::default();
    put!(copy, "internal");
    put!(copy, "proxy_ignore_headers", "X-Accel-Redirect");
    put!(copy, "access_log", false);
    let to = upstream_tls::url(url, &mut copy, at);
    let host = match host {
        Some(host) => Word::of_question(host),
        None => upstream_tls::host_of(url),
    };
    put!(copy, "proxy_set_header", "Host", host);
    put!(copy, "proxy_set_header", "Proxy", "");
    for (name, _) in super::client_certificate::told(at.server) {
        put!(copy, "proxy_set_header", name, "");
    }
    let target = match (url.target.parts().is_empty(), url.target.literal()) {
        (true, _) => Word::from("$request_uri"),
        // nginx adds the query of the request.
        (false, Some(literal)) if url.upstream.is_some() => Word::literal(literal),
        (false, _) => upstream_tls::target(&url.target, &mut copy),
    };
    put!(copy, "proxy_pass", to.then(target));
    at.beside.block.open("location", words!["=", Word::plain(name)], copy);
}
