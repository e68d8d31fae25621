//! Copies of requests: each becomes what it is a copy of, runs through the phases with nothing sent to anybody, and is
//! counted by what was decided.

use super::Trace;
use crate::connection::{Connection, host_of};
use crate::dry::Outcome;
use crate::exchange::Exchange;
use crate::shadow::{Decided, Said, Shadow};
use http::StatusCode;
use model::{Printable, ServerName, beginning};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use tls::TlsSession;
use wire::{Response, Source, tokens};

/// How much of a host and a path an example shows.
const SHOWN: usize = 200;
/// What meshes put behind the host of a copy (Envoy, and so Istio).
const SUFFIX: &[u8] = b"-shadow";

/// A copy: from now on it is what it is a copy of, as far as its header section says so, and nothing is sent for
/// it.
pub(crate) fn begin(shadow: &Shadow, exchange: &mut Exchange) {
    exchange.trace = Some(Box::new(Trace { dry: true, copy: true, ..Trace::default() }));
    let own = own_host(&exchange.request.authority);
    if own.len() < exchange.request.authority.len() && !is_known(exchange) {
        exchange.request.authority = own.into_owned().into();
    }
    let client = forwarded_for(exchange);
    if client.is_none() && exchange.connection.announced().is_none() {
        shadow.without_client();
    }
    if let Some(original) = original(exchange, client) {
        exchange.connection = Rc::new(original);
    }
    exchange.is_named();
}

/// What was decided about it; whoever copied it is told no more than that.
pub(crate) fn end(shadow: &Shadow, exchange: &Exchange, response: &mut Response) {
    let outcome = Outcome::of(exchange, response);
    shadow.count(decided(&outcome), || example(exchange));
    if outcome.sent {
        response.status = StatusCode::NO_CONTENT;
        response.source = Source::Own;
    }
}

fn decided(outcome: &Outcome) -> Decided {
    let origin = outcome.location.as_ref().and_then(|location| location.origin.as_deref());
    let server = outcome.server.as_ref();
    Decided {
        said: Said::of(outcome.status, outcome.sent),
        host: server.map_or_else(|| "_".to_owned(), |(name, _)| name.as_str().to_owned()),
        ingress: origin.map(|origin| format!("{}/{}", origin.namespace, origin.name)),
        upstream: outcome.upstream.clone().filter(|_| outcome.sent),
        status: (!outcome.sent).then_some(outcome.status),
        end: outcome.end,
    }
}

/// The host without what a mesh puts behind it.
fn own_host(authority: &[u8]) -> Cow<'_, [u8]> {
    let port = authority.iter().rposition(|byte| *byte == b':').unwrap_or(authority.len());
    let (host, port) = authority.split_at(port);
    match host.strip_suffix(SUFFIX).filter(|host| !host.is_empty()) {
        Some(host) => Cow::Owned([host, port].concat()),
        // Envoy appends it to the authority as it is, port and all.
        None => Cow::Borrowed(authority.strip_suffix(SUFFIX).unwrap_or(authority)),
    }
}

/// Whether there is a host of that very name, which then is what was meant.
fn is_known(exchange: &Exchange) -> bool {
    let host = host_of(&exchange.request.authority);
    exchange.generation.configuration.servers.contains_key(&ServerName::new(&*host))
}

/// The last address of X-Forwarded-For, which is whom the copying proxy saw. Nobody gains anything by a wrong one:
/// nothing is served here.
fn forwarded_for(exchange: &Exchange) -> Option<IpAddr> {
    let header = exchange.request.headers.bytes("x-forwarded-for")?;
    let last = tokens(&header).last()?;
    model::parse_address(last)
}

/// The connection that the original came over, where the copy says that it was another one.
fn original(exchange: &Exchange, client: Option<IpAddr>) -> Option<Connection> {
    let (copy, listen) = (&exchange.connection, &exchange.worker.listen);
    let secure = match exchange.request.headers.bytes("x-forwarded-proto").as_deref() {
        Some(b"https") => true,
        Some(b"http") => false,
        _ => copy.tls.is_some(),
    };
    if client.is_none() && secure == copy.tls.is_some() {
        return None;
    }
    let peer = client.map_or(copy.peer, |client| SocketAddr::new(client, copy.peer.port()));
    let port = if secure { listen.https_port } else { listen.http_port };
    let port = if secure == copy.tls.is_some() { copy.local.port() } else { port };
    let local = SocketAddr::new(copy.local.ip(), port);
    let tls = secure.then(|| {
        let host = host_of(&exchange.request.authority);
        let server_name = (!host.is_empty()).then_some(host);
        TlsSession { server_name, ..TlsSession::default() }
    });
    let mut original = Connection::new(copy.serial, peer, local, copy.announced(), tls);
    copy.door().into_iter().for_each(|door| original.came_to(door));
    original.is_believed = copy.is_believed;
    original.requests.set(copy.requests.get());
    Some(original)
}

/// Method, host and path; the query may hold a token.
fn example(exchange: &Exchange) -> String {
    let path = String::from_utf8_lossy(exchange.request.raw_path());
    let place = format!("{}{path}", exchange.host);
    let place = beginning(&place, SHOWN);
    Printable(&format!("{} {place}", exchange.request.method)).to_string()
}

#[cfg(test)]
mod tests {
    use super::own_host;

    #[test]
    fn what_a_mesh_puts_behind_the_host_is_taken_off() {
        for (given, wanted) in [
            ("shop.test-shadow", "shop.test"),
            ("shop.test-shadow:8080", "shop.test:8080"),
            ("shop.test:8080-shadow", "shop.test:8080"),
            ("shop.test", "shop.test"),
            ("-shadow", ""),
            ("", ""),
        ] {
            assert_eq!(*own_host(given.as_bytes()), *wanted.as_bytes(), "{given}");
        }
    }
}
