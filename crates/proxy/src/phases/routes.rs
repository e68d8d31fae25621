//! Which rule of a Gateway has a request, if none of an Ingress is more special: then all that is said of Ingresses and
//! their hosts counts for nothing.

use super::find_location;
use crate::exchange::{Exchange, Place};
use crate::generation::{Asked, Site};
use http::StatusCode;
use model::Share;
use route::path::Canonical;
use route::{Found, Rank};
use std::sync::Arc;

/// Where a rule leads, if one does. The more special host goes first, then the more special path; of the same host and
/// path it is the Ingress's.
pub(super) fn choose(
    exchange: &Exchange,
    canonical: &Canonical<'_>,
    of_ingress: Option<&Arc<Site>>,
) -> Option<Place> {
    let routes = &exchange.generation.routes;
    if routes.is_empty() || !is_on_main_port(exchange) {
        return None;
    }
    let asked = Asked::of(exchange);
    let mut hosts = routes.find(&exchange.host);
    let found = hosts.find_map(|routed| Some((routed, routed.rule(&asked, &canonical.path)?)));
    let (routed, rule) = found?;
    if routed.host.name.as_str() == "_" && find_location::is_health(exchange, &canonical.path) {
        return None;
    }
    let own = Rank::of(&routed.host.name, rule.matches.kind, &rule.matches.path);
    if of_ingress.is_some_and(|site| stands_before(exchange, site, canonical, own)) {
        return None;
    }
    Some(Place { site: routed.site.clone(), index: drawn(exchange, &rule.shares)? })
}

/// Ports of servers that snippets have are theirs alone.
fn is_on_main_port(exchange: &Exchange) -> bool {
    let listen = &exchange.worker.listen;
    [listen.http_port, listen.https_port].contains(&exchange.connection.local.port())
}

/// Where the most special listener of the Gateway's address leads, which alone has the request; refused as misdirected
/// where the handshake was another listener's (RFC 9110 section 15.5.20).
pub(super) fn at_door(exchange: &Exchange, canonical: &Canonical<'_>) -> Result<Place, StatusCode> {
    let nobody = || StatusCode::NOT_FOUND;
    let connection = &exchange.connection;
    let door = exchange.generation.doors.get(&connection.local).ok_or_else(nobody)?;
    let listener = door.listener(&exchange.host).ok_or_else(nobody)?;
    if let Some(session) = &connection.tls {
        let named = session.server_name.as_deref().unwrap_or_default().to_ascii_lowercase();
        let shown = door.listener(named.trim_end_matches('.'));
        if shown.is_none_or(|shown| !std::ptr::eq(&raw const **shown, &raw const **listener)) {
            return Err(StatusCode::MISDIRECTED_REQUEST);
        }
    }
    let asked = Asked::of(exchange);
    let mut hosts = listener.routes.find(&exchange.host);
    let found = hosts.find_map(|routed| Some((routed, routed.rule(&asked, &canonical.path)?)));
    let (routed, rule) = found.ok_or_else(nobody)?;
    let index = drawn(exchange, &rule.shares).ok_or_else(nobody)?;
    Ok(Place { site: routed.site.clone(), index })
}

/// Whether an Ingress or a snippet has the path, and at least as specially.
fn stands_before(exchange: &Exchange, site: &Site, canonical: &Canonical<'_>, own: Rank) -> bool {
    let index = match site.locations.find(canonical, &exchange.steps) {
        Found::Location { index } | Found::AddSlash { index } => index,
        Found::TooHard { .. } => return true,
        Found::None => return false,
    };
    let location = &site.spots[index].location;
    let rank = Rank::within(&site.server, &exchange.host, location.kind, &location.path);
    // What snippets have stands behind what Ingresses have; a host as a whole is theirs, too, if they say what it does.
    let Some(of_host) = site.server.locations.get(index) else { return rank.host >= own.host };
    let is_nobodys = of_host.origin.is_none();
    if is_nobodys { site.snippet.is_some() && rank.host > own.host } else { rank >= own }
}

/// One of the shares, as often as their weights say.
fn drawn(exchange: &Exchange, shares: &[Share]) -> Option<usize> {
    if let [only] = shares {
        return Some(only.location);
    }
    let total = shares.iter().map(|share| share.weight as usize).sum();
    let mut at = exchange.worker.below(total);
    shares.iter().find_map(|share| match at.checked_sub(share.weight as usize) {
        None => Some(share.location),
        Some(rest) => {
            at = rest;
            None
        }
    })
}
