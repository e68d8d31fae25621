//! Who the client is, and how it came in: real-IP replacement and the values of X-Forwarded-* (compat/behaviour.md
//! sections 14 and 15). Forwarded headers count only from trusted peers.

use crate::exchange::{Exchange, Forwarded};
use crate::http::tokens;
use bytes::Bytes;
use model::{Global, RealIp};
use std::net::IpAddr;
use stream::proxy_protocol::Announced;

pub(super) fn find(exchange: &mut Exchange) {
    let generation = exchange.generation.clone();
    let global = generation.global();
    exchange.client = address(exchange, global);
    exchange.forwarded = forwarded(exchange, global);
    exchange.request_id = request_id(exchange, global);
}

/// The peer; where that is trusted, the PROXY protocol's source; and where that is trusted (or there is none), the last
/// untrusted address of the forwarded-for header.
fn address(exchange: &Exchange, global: &Global) -> IpAddr {
    let (real, peer) = (&global.real_ip, exchange.connection.peer.ip());
    let believes_header = real.forwarded_headers || (real.enabled && !global.proxy_protocol);
    if !(believes_header || global.proxy_protocol) || !is_trusted(real, peer) {
        return peer;
    }
    let announced =
        exchange.connection.announced.map(|Announced { source, .. }| source.ip().to_canonical());
    let peer = announced.unwrap_or(peer);
    if !believes_header || !is_trusted(real, peer) {
        return peer;
    }
    let mut client = peer;
    let values: Vec<&Bytes> = exchange.request.headers.all(&real.forwarded_for_header).collect();
    for member in
        values.iter().rev().flat_map(|value| tokens(value).collect::<Vec<_>>().into_iter().rev())
    {
        let Some(address) = parse_address(member) else { break };
        client = address;
        if !is_trusted(real, address) {
            break;
        }
    }
    client
}

/// What ingress-nginx tells upstreams in X-Forwarded-For-Proxy-Protocol, where connections announce clients and headers
/// do, too: the header of a proxy that is trusted, else the address that is announced.
pub(super) fn told_by_proxy_protocol(exchange: &Exchange) -> Option<Bytes> {
    let global = exchange.generation.global();
    let (real, announced) = (&global.real_ip, exchange.connection.announced?);
    if !(global.proxy_protocol && real.forwarded_headers) {
        return None;
    }
    let source = announced.source.ip().to_canonical();
    match exchange.request.headers.get(&real.forwarded_for_header) {
        Some(header) if is_trusted(real, source) => Some(header.clone()),
        _ => Some(source.to_string().into()),
    }
}

fn is_trusted(real: &RealIp, address: IpAddr) -> bool {
    real.trusted.iter().any(|net| net.contains(&address))
}

/// An address as nginx's realip module takes it: bare, with a port, or in brackets.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let without_port = text.rsplit_once(':').map(|(address, _)| address);
    [Some(text), bracketed, without_port].into_iter().flatten().find_map(|text| text.parse().ok())
}

/// The value of a forwarded header, if the peer is believed about it.
pub(super) fn told<'a>(exchange: &'a Exchange, name: &str) -> Option<&'a Bytes> {
    let real = &exchange.generation.global().real_ip;
    if !real.forwarded_headers || !is_trusted(real, exchange.connection.peer.ip()) {
        return None;
    }
    exchange.request.headers.get(name).filter(|value| !value.is_empty())
}

fn forwarded(exchange: &Exchange, global: &Global) -> Forwarded {
    let header = |name| told(exchange, name).cloned();
    let host = header("x-forwarded-host").and_then(|hosts| {
        let first = tokens(&hosts).next()?;
        Some(hosts.slice_ref(first))
    });
    let destination = exchange
        .connection
        .announced
        .filter(|_| global.proxy_protocol)
        .map(|to| to.destination.port());
    let own_scheme = if exchange.connection.tls.is_some() { "https" } else { "http" };
    let scheme = match destination {
        Some(443) => "https",
        _ => own_scheme,
    };
    let port = match destination.unwrap_or(exchange.connection.local.port()) {
        // A PROXY header without addresses says nothing about the port either.
        _ if global.proxy_protocol && destination.is_none() => Bytes::new(),
        port if port == exchange.worker.listen.https_port => exchange.worker.decimal(443),
        port => exchange.worker.decimal(port),
    };
    Forwarded {
        host: host.unwrap_or_else(|| own_host(exchange)),
        scheme: header("x-forwarded-proto").unwrap_or(Bytes::from_static(scheme.as_bytes())),
        port: header("x-forwarded-port").unwrap_or(port),
    }
}

/// The host as the client gave it; HTTP/1.0 need not give one, and then meant this address.
fn own_host(exchange: &Exchange) -> Bytes {
    match exchange.request.authority.is_empty() {
        true => exchange.connection.local.ip().to_string().into(),
        false => exchange.request.authority.clone(),
    }
}

/// The client's id if it gave one, else 32 random hexadecimal digits.
fn request_id(exchange: &Exchange, global: &Global) -> Bytes {
    match exchange.request.headers.get("x-request-id").filter(|id| !id.is_empty()) {
        Some(given) => given.clone(),
        None if global.generate_request_id => exchange.worker.random_id(),
        None => Bytes::new(),
    }
}
