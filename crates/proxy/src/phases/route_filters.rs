//! The filters of the Gateway API: redirect, another path, and edits of header fields in both directions.

use super::Stop;
use crate::exchange::Exchange;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use model::policy::{HeaderEdits, PathChange, RouteFilters};
use route::path::{Canonical, after, behind, canonical, encode};
use std::net::IpAddr;
use wire::Response;

/// What filters do at the location of a request; none if it is of an Ingress, or of nobody.
fn filters(exchange: &Exchange) -> Option<&RouteFilters> {
    exchange.place.as_ref()?.spot().location.policy.route.as_deref()
}

/// Whether nothing that is said of Ingresses counts.
pub(super) fn is_of_gateway(exchange: &Exchange) -> bool {
    filters(exchange).is_some()
}

/// `RequestRedirect`.
pub(super) fn redirect(exchange: &Exchange) -> Result<(), Stop> {
    let Some(redirect) = filters(exchange).and_then(|filters| filters.redirect.as_ref()) else {
        return Ok(());
    };
    let own = if exchange.connection.tls.is_some() { "https" } else { "http" };
    let scheme = redirect.scheme.as_deref().unwrap_or(own);
    let address = || match exchange.connection.local.ip() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let host = match redirect.host.as_deref() {
        Some(host) => host.to_owned(),
        None if exchange.host.is_empty() => address(),
        None => exchange.host.to_string(),
    };
    let port = match (redirect.port, &redirect.scheme) {
        (None, Some(_)) => None,
        (port, _) => Some(port.unwrap_or(redirect.listener_port)),
    };
    let usual = if scheme == "https" { 443 } else { 80 };
    let mut location = BytesMut::from(format!("{scheme}://{host}").as_bytes());
    if let Some(port) = port.filter(|port| *port != usual) {
        location.extend_from_slice(format!(":{port}").as_bytes());
    }
    match redirect.path.as_ref().and_then(|change| changed(exchange, change)) {
        Some(path) => location.extend_from_slice(&path),
        None => location.extend_from_slice(&exchange.request.target),
    }
    let status = StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::FOUND);
    Err(Response::redirect(status, location.freeze()).into())
}

/// `URLRewrite`: whether it changes the path.
pub(super) fn rewrite(exchange: &mut Exchange) -> bool {
    let path = filters(exchange).and_then(|filters| filters.path.as_ref());
    let Some(path) = path.and_then(|change| changed(exchange, change)) else { return false };
    exchange.visit.rewritten = Some(path);
    true
}

/// The target with another path and the same query; none if the path does not begin as it should.
fn changed(exchange: &Exchange, change: &PathChange) -> Option<Bytes> {
    let mut target = match change {
        PathChange::Full(to) => to.clone().into_bytes(),
        PathChange::Prefix(to) => {
            let written = exchange.request.raw_path();
            replaced((written, &exchange.path), &exchange.spot().location.path, to)?
        }
    };
    if let Some(query) = exchange.request.query() {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    Some(target.into())
}

/// A path with another beginning; what follows stands behind one slash, as the client wrote it. Where there are dot
/// segments it stands as it is meant: whoever gets it may resolve them to something that was not matched.
fn replaced((written, path): (&[u8], &[u8]), from: &str, to: &str) -> Option<Vec<u8>> {
    let from = canonical(if from.is_empty() { b"/" } else { from.as_bytes() }).ok()?;
    let from = from.path.strip_suffix(b"/").unwrap_or(&from.path);
    let meant = encode(path.strip_prefix(from)?);
    let means = |found: Canonical<'_>| !found.dotted && *found.path == *path;
    let is_it = |path: &&[u8]| !path.is_empty() && canonical(path).is_ok_and(means);
    let written = Some(written).filter(is_it);
    let rest = written.and_then(|path| behind(path, from)).unwrap_or(meant.as_bytes());
    if rest.is_empty() {
        return Some(if to.is_empty() { b"/".to_vec() } else { to.as_bytes().to_vec() });
    }
    let mut changed = to.strip_suffix('/').unwrap_or(to).as_bytes().to_vec();
    let mut rest = after(rest, b'/').unwrap_or(rest);
    // A path that begins with two slashes names a host to many who read it.
    while let Some(more) = rest.strip_prefix(b"/").filter(|_| changed.is_empty()) {
        rest = more;
    }
    changed.push(b'/');
    changed.extend_from_slice(rest);
    Some(changed)
}

/// Whether a field of the request does not travel on as it is.
pub(super) fn replaces(edits: &HeaderEdits, name: &[u8]) -> bool {
    let is_it = |known: &String| name.eq_ignore_ascii_case(known.as_bytes());
    edits.set.iter().any(|(known, _)| is_it(known)) || edits.remove.iter().any(is_it)
}

/// What becomes of the fields of a request.
pub(super) fn of_request(exchange: &Exchange) -> Option<&HeaderEdits> {
    filters(exchange).map(|filters| &filters.request)
}

/// The fields that edits bring.
pub(super) fn brought(edits: &HeaderEdits) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pairs = edits.set.iter().chain(&edits.add);
    pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

/// Whether `ResponseHeaderModifier` sets or removes this field.
pub(super) fn says(exchange: &Exchange, name: &[u8]) -> bool {
    filters(exchange).is_some_and(|filters| replaces(&filters.response, name))
}

/// `ResponseHeaderModifier`.
pub(super) fn answer(exchange: &Exchange, response: &mut Response) {
    let Some(filters) = filters(exchange) else { return };
    let edits = &filters.response;
    response.headers.retain(|field| !replaces(edits, field.name));
    for (name, value) in edits.set.iter().chain(&edits.add) {
        response.headers.push(name, value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::replaced;
    use route::path::canonical;

    /// What becomes of a path that a client writes so.
    fn of(path: &str, from: &str, to: &str) -> Option<String> {
        let meant = canonical(path.as_bytes()).expect("a path").path;
        let found = replaced((path.as_bytes(), &meant), from, to)?;
        Some(String::from_utf8(found).expect("text"))
    }

    #[test]
    fn a_prefix_is_replaced_by_whole_segments_and_something_is_left_of_every_path() {
        for (path, from, to, expected) in [
            ("/prefix/one", "/prefix", "/new", "/new/one"),
            ("/prefix", "/prefix", "/new", "/new"),
            ("/prefix/", "/prefix", "/new", "/new/"),
            ("/strip", "/strip", "/", "/"),
            ("/strip", "/strip", "", "/"),
            ("/strip/a%20b", "/strip", "/", "/a%20b"),
            ("/a", "", "/new/", "/new/a"),
            ("/", "", "/new", "/new/"),
            ("", "", "/new", "/new/"),
        ] {
            assert_eq!(of(path, from, to).as_deref(), Some(expected), "{path} {from} {to}");
        }
        assert_eq!(of("/other", "/prefix", "/new"), None);
    }

    #[test]
    fn behind_a_replaced_prefix_a_path_stays_as_the_client_wrote_it() {
        for (path, from, to, expected) in [
            ("/foo/a%2Fb%20c", "/foo", "/", "/a%2Fb%20c"),
            ("/red/a%2Fb%3Fq", "/red", "/x", "/x/a%2Fb%3Fq"),
            ("/api/queues/%2F/q", "/api", "/", "/queues/%2F/q"),
            ("/foo/%2F/q", "/foo", "/", "/%2F/q"),
            ("/foo/a//b", "/foo", "/x", "/x/a//b"),
            ("/foo//a", "/foo", "/x", "/x//a"),
            ("/foo//a", "/foo", "/", "/a"),
            ("/f%6Fo%2Fa%2fb", "/foo", "/x", "/x/a%2fb"),
            ("//a%2F/b%7ec/d", "/a/b~c", "/x", "/x/d"),
            ("/a%20b/c%22", "/a%20b", "/x", "/x/c%22"),
            // Nobody gets dot segments.
            ("/foo/x%2F../a%2Fb", "/foo", "/x", "/x/a/b"),
            ("/foo/%2e%2e/foo/a//b", "/foo", "/x", "/x/a/b"),
        ] {
            assert_eq!(of(path, from, to).as_deref(), Some(expected), "{path} {from} {to}");
        }
        // Where the path is another one than the client wrote, that one counts.
        let other = replaced((&b"/foo/a%2Fb"[..], &b"/foo/c d"[..]), "/foo", "/x");
        assert_eq!(other.as_deref(), Some(&b"/x/c%20d"[..]));
    }
}
