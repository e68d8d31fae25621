//! What is kept of a route, or a rule, that is refused or gives way: its places, which answer 500. Nobody comes past a
//! guard because its owner wrote it wrongly, or with a filter that is not known here, or because somebody else came
//! first: a path would be whoever's who has it wider.

use super::expressions::Expressions;
use super::rules::{DraftRule, PLACES, leading};
use super::texts;
use super::weights::closed_places;
use model::{Backend, Location, RuleMatch};
use objects::gateway::{HttpRoute, RouteFilter, RouteMatch, RouteRule};
use std::sync::Arc;

/// Whether somebody is asked before some requests of a rule pass.
pub(super) fn is_guarded(rule: &RouteRule) -> bool {
    let of_backends = rule.backends.iter().flat_map(|one| &one.filters);
    rule.filters.iter().chain(of_backends).any(|one| matches!(one, RouteFilter::Auth(_)))
}

/// Where a match leads that leads nowhere.
pub(super) fn place(route: &HttpRoute, matches: &RuleMatch, why: String) -> Arc<Location> {
    let (path, kind) = (matches.path.clone(), matches.kind);
    Arc::new(Location { path, kind, ..leading(route, Backend::Broken(why)) })
}

/// A match that leads nowhere.
pub(super) fn rule(
    route: &HttpRoute,
    (found, matches): (&RouteMatch, RuleMatch),
    why: String,
) -> DraftRule {
    let place = place(route, &matches, why);
    DraftRule::new((found, matches), vec![(1, place)])
}

/// The matches of a route that can be read, each leading nowhere, and what those with an expression that Fairway does
/// not know may have, where there may be a guard; none where they are too many.
pub(super) fn rules(route: &HttpRoute, reason: &str) -> Vec<DraftRule> {
    if closed_places(route).saturating_mul(route.hostnames.len().max(1)) > PLACES {
        return Vec::new();
    }
    let why = format!("the route is not accepted, {reason}: see its status");
    let mut expressions = Expressions::default();
    let all = route.rules.iter().flat_map(|rule| rule.matches.iter().map(move |one| (rule, one)));
    let readable = all.filter(|(_, found)| texts::of_match(found).is_ok());
    let read = readable.filter_map(|(of, found)| {
        let matches = expressions.read(found).ok().or_else(|| {
            let may_guard = route.unread.is_some() || of.unread.is_some() || is_guarded(of);
            may_guard.then(|| expressions.at_least(found).ok())?
        })?;
        Some(rule(route, (found, matches), why.clone()))
    });
    read.collect()
}

/// Has all matches of a rule lead nowhere.
pub(super) fn all_of(rule: &mut [DraftRule], route: &HttpRoute, reason: &str) {
    let why = format!("the rule is not accepted, {reason}: see the status of its route");
    for one in rule {
        one.shares = vec![(1, place(route, &one.matches, why.clone()))];
    }
}
