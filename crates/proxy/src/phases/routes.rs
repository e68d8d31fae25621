//! Which rule of a Gateway has a request, if none of an Ingress is more special: then all that is said of Ingresses and
//! their hosts counts for nothing.

use super::{Stop, choose_backend, client_certificate, find_location};
use crate::error::Error;
use crate::exchange::{Exchange, Place};
use crate::generation::{Asked, Routed, Site};
use http::StatusCode;
use model::{Rule, RuleMatch, Share, Spent};
use route::path::Canonical;
use route::{Found, Rank};
use std::net::SocketAddr;
use std::sync::Arc;
use wire::Response;

/// Where a rule leads, if one does. The more special host goes first, then the more special path; of the same host and
/// path it is the Ingress's. Where that had to be looked up, `found` is what the path leads to among Ingresses. Where
/// patterns of names take too long, nobody knows which Ingress has the host: then only rules before these have it.
pub(super) fn choose(
    exchange: &Exchange,
    canonical: &Canonical<'_>,
    of_ingress: Result<Option<&Arc<Site>>, Spent>,
    found: &mut Option<Found>,
) -> Result<Option<Place>, Error> {
    let routes = &exchange.generation.routes;
    if routes.is_empty() || !is_on_main_port(exchange) {
        return Ok(None);
    }
    // What cannot have the request is not asked: its expressions are nobody else's cost.
    let mut claim = None;
    let may_have = |host: &Routed, rule: &Rule| {
        let site = match of_ingress {
            Ok(Some(site)) => site,
            Ok(None) => return true,
            Err(Spent) => {
                let of_rule = host.host.name.as_str();
                return exchange.generation.goes_before_patterns(of_rule, &exchange.host);
            }
        };
        let claim = *claim.get_or_insert_with(|| {
            let found = found.insert(site.locations.find(canonical, &exchange.steps));
            Claim::of(exchange, site, *found, &canonical.path)
        });
        !claim.stands_before(|| Rank::of_rule(&host.host.name, &rule.matches))
    };
    let hosts = routes.find(&exchange.host);
    let chosen = first(exchange, hosts, canonical, may_have)?;
    let Some((routed, rule)) = chosen else { return Ok(None) };
    let RuleMatch { kind, path, pattern, .. } = &*rule.matches;
    if routed.host.name.as_str() == "_"
        && find_location::is_health(exchange, &canonical.path)
        && (pattern.is_some() || !find_location::says_more(exchange, *kind, path, &canonical.path))
    {
        return Ok(None);
    }
    let index = share(exchange, &routed.site, &rule.shares);
    Ok(index.map(|index| Place::new(routed.site.clone(), index)))
}

/// The first rule that a request meets, of the most special host that has one, among those that may have it. Where that
/// is too hard to tell, the request fails: nobody gets what another one may have asked for.
fn first<'a>(
    exchange: &Exchange,
    hosts: impl Iterator<Item = &'a Arc<Routed>>,
    canonical: &Canonical<'_>,
    mut may_have: impl FnMut(&Routed, &Rule) -> bool,
) -> Result<Option<(&'a Arc<Routed>, &'a Rule)>, Error> {
    let asked = Asked::of(exchange);
    for routed in hosts {
        let found = routed.rule(&asked, &canonical.path, |rule| may_have(routed, rule));
        let too_hard = |_| Error::TooHard(format!("routes (host {})", exchange.host));
        if let Some(rule) = found.map_err(too_hard)? {
            return Ok(Some((routed, rule)));
        }
    }
    Ok(None)
}

/// Ports of servers that snippets have are theirs alone.
fn is_on_main_port(exchange: &Exchange) -> bool {
    let listen = &exchange.worker.listen;
    [listen.http_port, listen.https_port].contains(&exchange.connection.local.port())
}

/// Where the most special listener of the Gateway's address leads, which alone has the request; refused as misdirected
/// where the handshake was another listener's (RFC 9110 section 15.5.20).
pub(super) fn at_door(
    exchange: &Exchange,
    door: SocketAddr,
    canonical: &Canonical<'_>,
) -> Result<Place, Stop> {
    let nobody = || Response::page(StatusCode::NOT_FOUND);
    let connection = &exchange.connection;
    let door = exchange.generation.doors.get(&door).ok_or_else(nobody)?;
    let listener = door.listener(&exchange.host).ok_or_else(nobody)?;
    if let Some(session) = &connection.tls {
        let named = session.server_name.as_deref().unwrap_or_default().to_ascii_lowercase();
        let shown = door.listener(named.trim_end_matches('.'));
        if shown.is_none_or(|shown| !std::ptr::eq(&raw const **shown, &raw const **listener)) {
            return Err(Response::page(StatusCode::MISDIRECTED_REQUEST).into());
        }
    }
    if let Some(verifier) = &door.clients {
        client_certificate::of_door(exchange, verifier)?;
    }
    let hosts = listener.routes.find(&exchange.host);
    let (routed, rule) = first(exchange, hosts, canonical, |_, _| true)?.ok_or_else(nobody)?;
    let index = share(exchange, &routed.site, &rule.shares).ok_or_else(nobody)?;
    Ok(Place::new(routed.site.clone(), index))
}

/// What an Ingress or a snippet has of a path, which is the same for all rules that may have it.
#[derive(Clone, Copy, Debug)]
enum Claim {
    /// Nothing stands before a rule.
    Nothing,
    /// Everything does.
    Everything,
    /// What is at most as special, the host first.
    Path(Rank),
    /// Those of hosts that are at most as special.
    Host(Rank),
    /// Those of hosts that are less special.
    LessSpecialHost(Rank),
}

impl Claim {
    /// How specially an Ingress or a snippet has what a path leads to.
    fn of(exchange: &Exchange, site: &Site, found: Found, path: &[u8]) -> Self {
        let index = match found {
            Found::Location { index } | Found::AddSlash { index } => index,
            Found::TooHard { .. } => return Self::Everything,
            Found::None => return Self::Nothing,
        };
        let location = &site.spots[index].location;
        // What snippets have stands behind what Ingresses have; a host as a whole is theirs, too, if they say what it
        // does.
        let Some(of_host) = site.server.locations.get(index) else {
            let rank = Rank::within(&site.server, &exchange.host, location.kind, &location.path);
            return Self::Host(rank);
        };
        let rank = Rank::of_location(&site.server, &exchange.host, of_host, path);
        // No Ingress names what is redirected to the name with `www.`, or without, or the `/` that a host has anyway.
        let is_nobodys = of_host.is_of_host() || site.server.redirects(&exchange.host);
        if !is_nobodys {
            Self::Path(rank)
        } else if site.snippet.is_some() {
            Self::LessSpecialHost(rank)
        } else {
            Self::Nothing
        }
    }

    /// Whether that goes before a rule.
    fn stands_before(self, rule: impl FnOnce() -> Rank) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Path(rank) => rank >= rule(),
            Self::Host(rank) => rank.host >= rule().host,
            Self::LessSpecialHost(rank) => rank.host > rule().host,
        }
    }
}

/// The share of the client's session, or one of them.
fn share(exchange: &Exchange, site: &Site, shares: &[Share]) -> Option<usize> {
    if let [only] = shares {
        return Some(only.location);
    }
    let all = shares.iter().map(|share| share.location);
    choose_backend::share_of_session(exchange, site, all).or_else(|| drawn(exchange, shares))
}

/// One of the shares, as often as their weights say.
fn drawn(exchange: &Exchange, shares: &[Share]) -> Option<usize> {
    let total = shares.iter().map(|share| share.weight as usize).sum();
    let mut at = exchange.worker.numbers.below(total);
    shares.iter().find_map(|share| match at.checked_sub(share.weight as usize) {
        None => Some(share.location),
        Some(rest) => {
            at = rest;
            None
        }
    })
}
