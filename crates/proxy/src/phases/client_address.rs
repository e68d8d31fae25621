//! Who the client is, and how it came in: real-IP replacement and the values of X-Forwarded-* (compat/behaviour.md
//! sections 14 and 15). Forwarded headers count only from trusted peers.

use crate::exchange::Exchange;
use crate::known::Forwarded;
use crate::request_id::RequestId;
use crate::variables::{self, in_header};
use bytes::Bytes;
use model::{Global, RealIp, parse_address};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use stream::proxy_protocol::Announced;
use wire::{Headers, tokens};

pub(super) fn find(exchange: &mut Exchange) {
    let global = exchange.generation.global();
    let connection = &exchange.connection;
    let (peer, headers) = (connection.peer.ip(), &exchange.request.headers);
    exchange.client =
        address(&global.real_ip, global.proxy_protocol, peer, connection.announced(), headers);
    let global = exchange.generation.global();
    exchange.request_id = request_id(exchange, global);
    if !exchange.known.came(&exchange.forwarded) {
        exchange.forwarded = came(exchange);
    }
    if exchange.generation.tables.request_id().is_some() {
        name_by_table(exchange);
    }
}

/// A table of the ConfigMap makes `$req_id` in place of the controller; what it calls `$request_id` is a number of its
/// own, as in nginx.
#[cold]
fn name_by_table(exchange: &mut Exchange) {
    exchange.request_id = exchange.worker.numbers.random_id();
    let table = exchange.generation.tables.request_id();
    let id = table.and_then(|table| variables::by_table(table, exchange).ok());
    if let Some(id) = id {
        exchange.request_id = in_header(id.as_bytes()).into();
    }
}

/// Takes back what snippets of a location made of the client's address: the request goes on to another one, whose
/// guards look at it, too.
pub(super) fn forget(exchange: &mut Exchange) {
    if exchange.snippet.is_none() {
        return;
    }
    let generation = exchange.generation.clone();
    let global = generation.global();
    let connection = &exchange.connection;
    let (peer, headers) = (connection.peer.ip(), heard(exchange));
    exchange.client =
        address(&global.real_ip, global.proxy_protocol, peer, connection.announced(), headers);
}

/// The header section as it came: what a snippet writes there makes nobody another client.
fn heard(exchange: &Exchange) -> &Headers {
    let kept = exchange.snippet.as_ref().and_then(|running| running.of_request.heard.as_ref());
    kept.map_or(&exchange.request.headers, |(headers, _)| headers)
}

/// `set_real_ip_from` of a location, once the programs have run; whoever has been replaced stays replaced.
pub(super) fn of_location(exchange: &mut Exchange) {
    if exchange.client == exchange.connection.peer.ip() {
        of_server(exchange);
    }
}

/// `set_real_ip_from` where the request is, whatever the ConfigMap made of the peer.
pub(super) fn of_server(exchange: &mut Exchange) {
    let Some(real) = exchange.effects().and_then(|effects| effects.real_ip.as_ref()) else {
        return;
    };
    let connection = &exchange.connection;
    let (peer, headers) = (connection.peer.ip(), heard(exchange));
    exchange.client = real.client(peer, connection.announced(), headers).unwrap_or(peer);
}

/// The peer; where that is trusted, the PROXY protocol's source; and where that is trusted (or there is none), the last
/// untrusted address of the forwarded-for header. Where both may tell, a trusted source is one more proxy, and tells
/// nothing itself: without the header the client is the peer (nginx.tmpl: `$forwarded_for_proxy_protocol`).
pub(crate) fn address(
    real: &RealIp,
    proxy_protocol: bool,
    peer: IpAddr,
    announced: Option<Announced>,
    headers: &Headers,
) -> IpAddr {
    let believes_header = real.forwarded_headers || (real.enabled && !proxy_protocol);
    if !(believes_header || proxy_protocol) || !real.trusts(peer) {
        return peer;
    }
    let announced = announced.map(|Announced { source, .. }| source.ip().to_canonical());
    if !believes_header {
        return announced.unwrap_or(peer);
    }
    match announced {
        Some(source) if !real.trusts(source) => return source,
        // To nginx a source that is not there is an address of its own.
        None if proxy_protocol && !real.trusts(Ipv4Addr::BROADCAST.into()) => return peer,
        Some(_) | None => {}
    }
    let mut client = peer;
    let values: Vec<&[u8]> = headers.all(&real.forwarded_for_header).collect();
    for member in values.into_iter().rev().flat_map(addresses) {
        let Some(address) = parse_address(member) else { break };
        client = address;
        if !real.trusts(address) {
            break;
        }
    }
    client
}

/// The members of a list of addresses, the last one first. A space ends one as a comma does
/// (ngx_http_get_forwarded_addr_internal).
fn addresses(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = value.rsplit(|byte| matches!(byte, b',' | b' ' | b'\t'));
    members.filter(|member| !member.is_empty())
}

/// What ingress-nginx tells upstreams in X-Forwarded-For-Proxy-Protocol, where connections announce clients and headers
/// do, too: the header that came through a proxy that is trusted, or the address that is announced.
pub(super) fn told_by_proxy_protocol(exchange: &Exchange) -> Option<Bytes> {
    let global = exchange.generation.global();
    let (real, announced) = (&global.real_ip, exchange.connection.announced()?);
    if !(global.proxy_protocol && real.forwarded_headers) {
        return None;
    }
    let source = announced.source.ip().to_canonical();
    if real.trusts(source) {
        exchange.request.headers.joined(&real.forwarded_for_header)
    } else {
        Some(source.to_string().into())
    }
}

/// How the client came in, which all requests of a connection have in common that name the same host, unless headers
/// may say otherwise.
fn came(exchange: &Exchange) -> Rc<Forwarded> {
    let forwarded = forwarded(exchange, exchange.generation.global());
    if exchange.hears_forwarded() {
        return Rc::new(forwarded);
    }
    let own = |value: &Bytes| Bytes::copy_from_slice(value);
    let Forwarded { host, scheme, port } = forwarded;
    let copy = || Rc::new(Forwarded { host: own(&host), scheme, port });
    exchange.known.forwarded.get_or_init(copy).clone()
}

fn forwarded(exchange: &Exchange, global: &Global) -> Forwarded {
    let host = exchange.forwarded_header("x-forwarded-host").as_ref().and_then(first);
    let destination = exchange
        .connection
        .announced()
        .filter(|_| global.proxy_protocol)
        .map(|to| to.destination.port());
    let own_scheme = if exchange.connection.tls.is_some() { "https" } else { "http" };
    // Of the two that tell, the PROXY protocol is heard last (lua_ingress.lua).
    let scheme = match destination {
        Some(443) => Bytes::from_static(b"https"),
        _ => exchange
            .forwarded_header("x-forwarded-proto")
            .unwrap_or(Bytes::from_static(own_scheme.as_bytes())),
    };
    Forwarded {
        host: host.unwrap_or_else(|| own_host(exchange)),
        scheme,
        port: exchange.known_port(),
    }
}

/// The first of the hosts in X-Forwarded-Host.
pub(crate) fn first(hosts: &Bytes) -> Option<Bytes> {
    tokens(hosts).next().map(|first| hosts.slice_ref(first))
}

/// The host as the client gave it; HTTP/1.0 need not give one, and then meant this address.
fn own_host(exchange: &Exchange) -> Bytes {
    if exchange.request.authority.is_empty() {
        exchange.connection.local.ip().to_string().into()
    } else {
        exchange.request.authority.clone()
    }
}

/// The client's id if it gave one, else 32 random hexadecimal digits.
fn request_id(exchange: &Exchange, global: &Global) -> RequestId {
    match exchange.request.headers.joined("x-request-id") {
        Some(given) => given.into(),
        None if global.generate_request_id => exchange.worker.numbers.random_id(),
        None => RequestId::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::address;
    use model::RealIp;
    use std::net::{IpAddr, SocketAddr};
    use stream::proxy_protocol::Announced;
    use wire::Headers;

    const PEER: [u8; 4] = [10, 0, 0, 1];

    /// The client where the PROXY protocol and headers tell, and these networks are trusted.
    fn of_both(trusted: &[&str], announced: Option<[u8; 4]>, said: Option<&str>) -> IpAddr {
        let trusted = trusted.iter().map(|net| net.parse().expect("a network")).collect();
        let real = RealIp { forwarded_headers: true, trusted, ..RealIp::default() };
        let mut headers = Headers::default();
        said.into_iter().for_each(|said| headers.add("X-Forwarded-For", said));
        let announced = announced.map(|source| {
            let [source, destination] = [source, PEER].map(|ip| SocketAddr::from((ip, 80)));
            Announced { source, destination }
        });
        address(&real, true, PEER.into(), announced, &headers)
    }

    #[test]
    fn a_space_ends_an_address_as_a_comma_does() {
        for said in
            ["1.2.3.4 5.6.7.8", "1.2.3.4, 5.6.7.8", "1.2.3.4,5.6.7.8 ", " 1.2.3.4\t5.6.7.8,"]
        {
            assert_eq!(
                of_both(&["0.0.0.0/0"], None, Some(said)),
                IpAddr::from([1, 2, 3, 4]),
                "{said}"
            );
            assert_eq!(super::addresses(said.as_bytes()).count(), 2, "{said}");
        }
    }

    #[test]
    fn where_both_tell_a_trusted_source_is_one_more_proxy() {
        let (proxy, client) = ([10, 9, 9, 9], [203, 0, 113, 9]);
        let nets: &[&str] = &["10.0.0.0/8"];
        let all: &[&str] = &["0.0.0.0/0"];
        for (trusted, announced, said, wanted) in [
            (nets, Some(proxy), Some("203.0.113.9"), client),
            (nets, Some(proxy), None, PEER),
            (nets, Some(client), Some("198.51.100.1"), client),
            (nets, None, Some("203.0.113.9"), PEER),
            (all, None, Some("203.0.113.9"), client),
            (&["192.0.2.0/24"], Some(client), Some("198.51.100.1"), PEER),
        ] {
            assert_eq!(of_both(trusted, announced, said), IpAddr::from(wanted), "{announced:?}");
        }
    }

    #[test]
    fn where_nobody_says_whom_to_trust_ipv6_addresses_are_clients() {
        let real = RealIp { forwarded_headers: true, ..RealIp::default() };
        let source: IpAddr = "2001:db8::1".parse().expect("an address");
        let destination = SocketAddr::from((PEER, 80));
        let announced = Announced { source: SocketAddr::from((source, 80)), destination };
        let mut headers = Headers::default();
        let of = |headers: &Headers| address(&real, true, PEER.into(), Some(announced), headers);
        assert_eq!(of(&headers), source);
        headers.add("X-Forwarded-For", "203.0.113.9");
        assert_eq!(of(&headers), source);
        let by_header = |peer: IpAddr, said: &str| {
            let mut headers = Headers::default();
            headers.add("X-Forwarded-For", said);
            address(&real, false, peer, None, &headers)
        };
        assert_eq!(by_header(PEER.into(), "10.0.0.5, 2001:db8::1"), source);
        assert_eq!(by_header(PEER.into(), "10.0.0.5, 203.0.113.9"), IpAddr::from([10, 0, 0, 5]));
        assert_eq!(by_header(source, "10.0.0.5"), source);
    }

    #[test]
    fn a_trusted_address_is_passed_over_in_the_clothes_of_ipv6_too() {
        let trusted = ["10.0.0.0/8".parse().expect("the test writes a network")];
        let trusted = trusted.into_iter().collect();
        let real = RealIp { enabled: true, trusted, ..RealIp::default() };
        let mut headers = Headers::default();
        headers.add("X-Forwarded-For", "203.0.113.9, ::ffff:10.1.1.1");
        let client = address(&real, false, IpAddr::from([10, 0, 0, 1]), None, &headers);
        assert_eq!(client, IpAddr::from([203, 0, 113, 9]));
    }
}
