//! `$1` to `$9` in texts of annotations that the request itself fills in: the groups of what it has matched last, as in
//! nginx. Whoever is asked about a request, or gets a copy of it, has matched nothing ([`as_asked`](super::as_asked)).

use super::{filled, text_of};
use crate::exchange::{Exchange, Place};
use crate::snippet::Level;
use model::{Location, Pattern, Server, Spent, Template};

/// A template with the values of a request, and the groups of what it has matched last.
pub(crate) fn of_request(template: &Template, exchange: &Exchange) -> String {
    match &exchange.place {
        Some(place) if template.has_groups() => with_groups(template, exchange, place),
        Some(_) | None => text_of(template, exchange),
    }
}

#[cold]
#[inline(never)]
fn with_groups(template: &Template, exchange: &Exchange, place: &Place) -> String {
    let spot = place.spot();
    if let (Some(running), Some(_)) = (&exchange.snippet, &spot.extras().snippet) {
        let groups: Vec<_> =
            (0..10).map(|group| route::path::bytes(running.state.capture(group))).collect();
        let groups: Vec<Option<&[u8]>> = groups.iter().map(|group| Some(&**group)).collect();
        return filled(template, exchange, &groups);
    }
    let rewrite = spot.location.policy.rewrite.as_ref().map(|rewrite| &rewrite.pattern);
    let Some(pattern) = rewrite.or(spot.extras().expression.as_ref()) else {
        return text_of(template, exchange);
    };
    match pattern.captures(&exchange.path, &exchange.steps) {
        Ok(groups) => filled(template, exchange, &groups.unwrap_or_default()),
        // Nobody knows the text: the request ends.
        Err(Spent) => {
            exchange.texts.fail();
            String::new()
        }
    }
}

/// The expression whose groups the texts of a location have, where nobody else keeps them: snippets do, and so does
/// what rewrites the path.
pub(crate) fn expression(
    server: &Server,
    location: &Location,
    level: Option<&Level>,
) -> Option<Pattern> {
    let Location { path, policy, .. } = location;
    if !server.regex || level.is_some() || policy.rewrite.is_some() || !location.asks_for_groups() {
        return None;
    }
    // A path that is no expression matches nothing.
    Pattern::new(&format!("^{path}"), true).ok()
}
