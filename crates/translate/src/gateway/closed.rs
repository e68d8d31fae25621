//! What is kept of a route, or a rule, that is refused: its places, which answer 500. Nobody comes past a guard because
//! its owner wrote it wrongly, or with a filter that is not known here: a path would be whoever's who has it wider.

use super::expressions::Expressions;
use super::rules::{DraftRule, PLACES, leading, of};
use super::texts;
use super::weights::closed_places;
use model::{Backend, Location};
use objects::gateway::HttpRoute;
use std::sync::Arc;

/// The matches of a route that can be read, each leading nowhere; none where they are too many.
pub(super) fn rules(route: &HttpRoute, reason: &str) -> Vec<DraftRule> {
    if closed_places(route).saturating_mul(route.hostnames.len().max(1)) > PLACES {
        return Vec::new();
    }
    let why = format!("the route is not accepted, {reason}: see its status");
    let place = leading(route, Backend::Broken(why));
    let mut expressions = Expressions::default();
    let all = route.rules.iter().flat_map(|rule| &rule.matches);
    let readable = all.filter(|found| texts::of_match(found).is_ok());
    let read = readable.filter_map(|found| {
        let matches = expressions.read(found).ok()?;
        Some(DraftRule::new(matches, vec![(1, of(&place, found))]))
    });
    read.collect()
}

/// Has all matches of a rule lead nowhere.
pub(super) fn all_of(rule: &mut [DraftRule], route: &HttpRoute, reason: &str) {
    let why = format!("the rule is not accepted, {reason}: see the status of its route");
    let place = leading(route, Backend::Broken(why));
    for one in rule {
        let (path, kind) = (one.matches.path.clone(), one.matches.kind);
        one.shares = vec![(1, Arc::new(Location { path, kind, ..place.clone() }))];
    }
}
