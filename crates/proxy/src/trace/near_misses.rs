//! Paths and hosts that nearly had a request: what users take for the reason.

use crate::exchange::Exchange;
use crate::generation::{Asked, Routed, Site};
use model::{Location, PathKind, Pattern, Rule, Steps};
use route::path::Canonical;
use std::sync::Arc;

/// Near misses that are told at most, of each kind.
const MOST: usize = 5;
/// Letters in which a host may differ from the one asked for.
const LETTERS: usize = 2;

/// Locations of the server that nearly answered, each with the reason why not.
pub(super) fn paths(exchange: &Exchange, site: &Site, own: &Location) -> Vec<String> {
    let canonical =
        Canonical { path: exchange.path.as_ref().into(), dotted: exchange.dotted, merged: false };
    let path = canonical.text();
    let steps = Steps::default();
    // What a snippet's `if` has for itself is where its location is; and what no Ingress has is nobody's near miss.
    let is_other = |other: &&Arc<Location>| {
        (other.kind != own.kind || other.path != own.path) && !other.is_of_host()
    };
    let misses = site.server.locations.iter().filter(is_other).filter_map(|location| {
        let why = if site.server.regex {
            missed_pattern(location, &exchange.path, &steps)?
        } else {
            missed_prefix(location, &path)?
        };
        let owner = location.origin.as_ref().map(|origin| format!(" of {origin}"));
        Some(format!("{:?} {}{}: {why}", location.kind, location.path, owner.unwrap_or_default()))
    });
    misses.take(MOST).collect()
}

/// The host of Gateways that this is, of those that share the addresses of the process.
pub(super) fn routed<'a>(exchange: &'a Exchange, site: &Arc<Site>) -> Option<&'a Routed> {
    let mut hosts = exchange.generation.routes.find(&exchange.host);
    hosts.find(|routed| Arc::ptr_eq(&routed.site, site)).map(|routed| &**routed)
}

/// Rules of a host of Gateways that nearly answered. What a rule asks for besides the path may hold passwords, and is
/// only named by what it is.
pub(super) fn rules(exchange: &Exchange, routed: &Routed, chosen: usize) -> Vec<String> {
    let has_it = |rule: &&Rule| rule.shares.iter().any(|share| share.location == chosen);
    let path = String::from_utf8_lossy(&exchange.path);
    let asked = Asked::of(exchange);
    let others = routed.host.rules.iter().filter(|rule| !has_it(rule));
    let misses = others.filter_map(|rule| {
        let matches = &rule.matches;
        let (kind, own) = (matches.kind, matches.path.as_str());
        let why = match &matches.pattern {
            Some(pattern) if pattern.try_match(&exchange.path, &Steps::default()) != Ok(true) => None?,
            None if !covers(kind, own, &path) => missed(kind, own, &path)?,
            _ if asked.meets(matches, &exchange.path) == Ok(true) => {
                "it matches, too, but another rule is more special, or its route is older"
            }
            _ => "its path matches, but not all that it asks for (scheme, method, header fields, query parameters)",
        };
        let location = routed.host.locations.get(rule.shares.first()?.location)?;
        let owner = location.origin.as_ref().map(|origin| format!(" of {origin}"));
        Some(format!("{kind:?} {own}{}: {why}", owner.unwrap_or_default()))
    });
    misses.take(MOST).collect()
}

fn missed_pattern(location: &Arc<Location>, path: &[u8], steps: &Steps) -> Option<&'static str> {
    let pattern = Pattern::new(&format!("^{}", location.path), true).ok()?;
    let matches = pattern.try_match(path, steps) == Ok(true);
    matches.then_some("it matches, too, but a longer pattern is tried first")
}

fn missed_prefix(location: &Arc<Location>, path: &str) -> Option<&'static str> {
    let own = location.path.as_str();
    match location.kind {
        PathKind::Exact if own == path => None,
        PathKind::Prefix if covers(PathKind::Prefix, own, path) => {
            Some("it matches, too, but a longer path does, or an Exact one")
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

/// Hosts that are spelled nearly as the one asked for, which has no server.
pub(super) fn hosts(exchange: &Exchange) -> Vec<String> {
    let names = exchange.generation.configuration.servers.keys();
    let near = names.filter(|name| {
        let name = name.as_str();
        let parent = exchange.host.split_once('.').map(|(_, parent)| parent);
        let deeper = name.strip_prefix("*.").is_some_and(|covered| {
            parent.is_some_and(|parent| parent.ends_with(&format!(".{covered}")))
        });
        deeper || strsim::osa_distance(name, &exchange.host) <= LETTERS
    });
    near.filter(|name| name.as_str() != "_").map(ToString::to_string).take(MOST).collect()
}
