//! Paths and hosts that nearly had a request: what users take for the reason.

use super::spelling::Spelling;
use crate::exchange::Exchange;
use crate::generation::{Asked, Routed, Site};
use model::{Location, PathKind, Pattern, Rule, RuleMatch, Scheme, Steps, fixed_start};
use route::path::Canonical;
use std::sync::Arc;

/// Near misses that are told at most, of each kind.
const MOST: usize = 5;
/// Paths that are regular expressions which are compiled to tell near misses of a request: each takes a while, and the
/// thread of a request that is traced does nothing else meanwhile.
const COMPILED: usize = 32;

/// Locations of the server that nearly answered, each with the reason why not.
pub(super) fn paths(exchange: &Exchange, site: &Site, own: &Location) -> Vec<String> {
    let canonical =
        Canonical { path: exchange.path.as_ref().into(), dotted: exchange.dotted, merged: false };
    let path = canonical.text();
    let (steps, mut patterns) = (Steps::default(), COMPILED);
    // What a snippet's `if` has for itself is where its location is; and what no Ingress has is nobody's near miss.
    let is_other = |other: &&Arc<Location>| {
        (other.kind != own.kind || other.path != own.path) && !other.is_of_host()
    };
    let misses = site.server.locations.iter().filter(is_other).filter_map(|location| {
        let why = if site.server.regex {
            missed_pattern(location, &exchange.path, &steps, &mut patterns)?
        } else {
            missed_prefix(location, own, &path)?
        };
        let owner = location.origin.as_deref().map(|origin| format!(" of {origin}"));
        Some(format!("{:?} {}{}: {why}", location.kind, location.path, owner.unwrap_or_default()))
    });
    misses.take(MOST).collect()
}

/// The host of Gateways that this is, of those that share the addresses of the process.
pub(super) fn routed<'a>(exchange: &'a Exchange, site: &Arc<Site>) -> Option<&'a Routed> {
    let mut hosts = exchange.generation.routes.find(&exchange.host);
    hosts.find(|routed| Arc::ptr_eq(&routed.site, site)).map(|routed| &**routed)
}

/// Whether a location is that of a rule whose path is a regular expression.
pub(super) fn is_expression(exchange: &Exchange, site: &Arc<Site>, index: usize) -> bool {
    let mut rules = routed(exchange, site).into_iter().flat_map(|routed| &routed.host.rules);
    let is_its = |rule: &&Rule| rule.shares.iter().any(|share| share.location == index);
    rules.find(is_its).is_some_and(|rule| rule.matches.pattern.is_some())
}

/// Rules of hosts of Gateways that nearly answered, each with what of them the request is not. `chosen` is the one that
/// answers, with the number of its location; none: a path of an Ingress does, or nothing.
pub(super) fn rules(exchange: &Exchange, chosen: Option<(&Routed, usize)>) -> Vec<String> {
    // At an address of its own a Gateway's hosts are those of its listener alone.
    if exchange.connection.door().is_some() {
        return Vec::new();
    }
    let path = String::from_utf8_lossy(&exchange.path);
    let (asked, steps) = (Asked::of(exchange), Steps::default());
    let near = |routed: &Routed, rule: &Rule| {
        let own = chosen.filter(|(host, _)| std::ptr::eq(*host, routed)).map(|(_, own)| own);
        let has_it = own.is_some_and(|own| rule.shares.iter().any(|share| share.location == own));
        let matches = &rule.matches;
        let (kind, written) = (matches.kind, matches.path.as_str());
        let why = match &matches.pattern {
            _ if has_it => return None,
            Some(pattern) if pattern.try_match(&exchange.path, &steps) != Ok(true) => return None,
            None if !covers(kind, written, &path) => missed(kind, written, &path)?.to_owned(),
            _ if is_twin(routed, rule, exchange) => return None,
            _ if asked.is_anothers(rule) => {
                "it matches, too, but a more special listener, which somebody else wrote, has the host".to_owned()
            }
            _ => match asked.lacks(matches, &exchange.path, &steps).as_slice() {
                [] if chosen.is_none() => {
                    "it matches, too, but an Ingress has the path, at least as specially".to_owned()
                }
                [] => "it matches, too, but another rule is more special, or its route is older"
                    .to_owned(),
                lacks => format!("its path matches, but it asks for {}", lacks.join("; for ")),
            },
        };
        let location = routed.host.locations.get(rule.shares.first()?.location)?;
        let owner = location.origin.as_deref().map(|origin| format!(" of {origin}"));
        let kind = match matches.pattern {
            Some(_) => "RegularExpression".to_owned(),
            None => format!("{kind:?}"),
        };
        Some(format!("{kind} {written}{}: {why}", owner.unwrap_or_default()))
    };
    let near = &near;
    let hosts = exchange.generation.routes.find(&exchange.host);
    let misses = hosts.flat_map(|routed| {
        routed.host.rules.iter().filter_map(move |rule| near(routed, rule)).take(MOST)
    });
    misses.take(MOST).collect()
}

/// Whether a route has a rule for both schemes, and this is the one of the scheme that the request did not come over:
/// then the scheme is not what it lacks.
fn is_twin(routed: &Routed, rule: &Rule, exchange: &Exchange) -> bool {
    let is_secure = exchange.connection.tls.is_some();
    let owner = |rule: &Rule| {
        let location = routed.host.locations.get(rule.shares.first()?.location)?;
        location.origin.clone()
    };
    let own = &rule.matches;
    let is_alike = |other: &RuleMatch| {
        other.scheme != own.scheme
            && (other.kind, &other.path) == (own.kind, &own.path)
            && (&other.method, &other.grpc) == (&own.method, &own.grpc)
            && (&other.headers, &other.query) == (&own.headers, &own.query)
    };
    let mut others = routed.host.rules.iter();
    (own.scheme == Scheme::Https) != is_secure
        && others.any(|other| is_alike(&other.matches) && owner(other) == owner(rule))
}

/// `left` is how many patterns may still be compiled.
fn missed_pattern(
    location: &Arc<Location>,
    path: &[u8],
    steps: &Steps,
    left: &mut usize,
) -> Option<&'static str> {
    let start = path.get(..fixed_start(&location.path).len())?;
    if !start.eq_ignore_ascii_case(fixed_start(&location.path).as_bytes()) {
        return None;
    }
    *left = left.checked_sub(1)?;
    let pattern = Pattern::new(&format!("^{}", location.path), true).ok()?;
    let matches = pattern.try_match(path, steps) == Ok(true);
    matches.then_some("it matches, too, but a longer pattern is tried first")
}

/// `chosen` is the location that has the request.
fn missed_prefix(location: &Arc<Location>, chosen: &Location, path: &str) -> Option<&'static str> {
    let own = location.path.as_str();
    match location.kind {
        PathKind::Exact if own == path => None,
        PathKind::Prefix if covers(PathKind::Prefix, own, path) => {
            if chosen.kind == PathKind::Exact {
                Some("it matches, too, but an Exact path does")
            } else if chosen.path.len() > own.len() {
                Some("it matches, too, but a longer path does")
            } else {
                // It would have added a slash to a path that another one has as it is.
                None
            }
        }
        kind => missed(kind, own, path),
    }
}

/// Whether a path is one that another one stands for.
fn covers(kind: PathKind, own: &str, path: &str) -> bool {
    let bare = own.trim_end_matches('/');
    match kind {
        PathKind::Exact => own == path,
        PathKind::Prefix => own == "/" || path == bare || is_below(bare, path),
    }
}

fn is_below(bare: &str, path: &str) -> bool {
    path.strip_prefix(bare).is_some_and(|rest| rest.starts_with('/'))
}

/// Why a path does not cover another one that looks like it.
fn missed(kind: PathKind, own: &str, path: &str) -> Option<&'static str> {
    let bare = own.trim_end_matches('/');
    match kind {
        PathKind::Exact if bare == path.trim_end_matches('/') => {
            Some("only the slash at the end differs, and an Exact path is exact")
        }
        PathKind::Exact if own.eq_ignore_ascii_case(path) => {
            Some("only the case differs, and it matters")
        }
        PathKind::Exact if is_below(bare, path) => Some("an Exact path has nothing below it"),
        PathKind::Exact => None,
        PathKind::Prefix
            if is_below(bare, &path.to_lowercase()) || path.eq_ignore_ascii_case(bare) =>
        {
            Some("only the case differs, and it matters")
        }
        PathKind::Prefix if path.starts_with(bare) => {
            Some("a Prefix ends at a slash: it covers whole segments")
        }
        PathKind::Prefix => None,
    }
}

/// Hosts that nearly are the one asked for, which has no server, each with what differs.
pub(super) fn hosts(exchange: &Exchange) -> Vec<String> {
    let (host, mut spelling) = (&*exchange.host, Spelling::new());
    let of_ingresses = exchange.generation.configuration.servers.keys().map(|name| (name, false));
    let routes = exchange.generation.configuration.routes.keys();
    let shared = routes.filter(|key| key.is_shared());
    let of_gateways = shared.map(|key| (&key.host, true));
    let near = of_ingresses.chain(of_gateways).filter_map(|(name, of_gateway)| {
        let name = name.as_str();
        let covered = name.strip_prefix("*.");
        let below = covered.and_then(|covered| host.strip_suffix(covered));
        let why = match below {
            Some("") => "a wildcard stands for a label, and this has none",
            // With Gateways it stands for any number of them.
            Some(labels) if labels.ends_with('.') && of_gateway => return None,
            Some(labels) if labels.ends_with('.') => {
                "a wildcard stands for one label, and this has more"
            }
            _ if name == "_" || name == host => return None,
            _ if spelling.is_near(name, host) => "the spelling differs",
            _ => return None,
        };
        let whose = if of_gateway { " of a Gateway" } else { "" };
        Some(format!("{name}{whose}: {why}"))
    });
    near.take(MOST).collect()
}
