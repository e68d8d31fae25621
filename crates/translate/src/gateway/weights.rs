//! What a route takes: places, and regular expressions.

use super::filters;
use objects::gateway::{HttpRoute, PathMatch, RouteFilter, RouteMatch, ValueMatch};

/// Matches times backends: what a route takes under each host where it answers. Long texts count as more, since each
/// place has them.
pub(super) fn places(route: &HttpRoute) -> usize {
    let of_filters = |all: &[RouteFilter]| all.iter().map(filters::bytes).sum::<usize>();
    let rules = route.rules.iter().map(|rule| {
        let own = of_filters(&rule.filters);
        let backends = rule.backends.iter().map(|one| own + of_filters(&one.filters));
        let backends: usize = backends.map(|bytes| 1 + kilobytes(bytes)).sum();
        let backends = backends.max(1 + kilobytes(own));
        matches(&rule.matches).saturating_mul(backends)
    });
    rules.fold(0, usize::saturating_add)
}

/// The same of a route whose matches lead nowhere.
pub(super) fn closed_places(route: &HttpRoute) -> usize {
    route.rules.iter().map(|rule| matches(&rule.matches)).sum()
}

fn matches(all: &[RouteMatch]) -> usize {
    all.iter().map(|found| 1 + kilobytes(bytes(found))).sum()
}

fn kilobytes(bytes: usize) -> usize {
    bytes / 1024
}

/// Bytes of text that a match has.
fn bytes(found: &RouteMatch) -> usize {
    let values = found.headers.iter().chain(&found.query).map(|one| match &one.value {
        ValueMatch::Exact(value) | ValueMatch::Expression(value) => one.name.len() + value.len(),
    });
    values.sum()
}

/// How many regular expressions a route has, and bytes of their text.
pub(super) fn expressions(route: &HttpRoute) -> (usize, usize) {
    let matches = route.rules.iter().flat_map(|rule| &rule.matches);
    let all = matches.flat_map(|found| {
        let path = match &found.path {
            PathMatch::Expression(source) => [Some(source), None],
            PathMatch::Method(called) if called.is_expression => {
                [called.service.as_ref(), called.method.as_ref()]
            }
            PathMatch::Exact(_) | PathMatch::Prefix(_) | PathMatch::Method(_) => [None, None],
        };
        let values = found.headers.iter().chain(&found.query);
        path.into_iter().flatten().chain(values.filter_map(|one| match &one.value {
            ValueMatch::Expression(source) => Some(source),
            ValueMatch::Exact(_) => None,
        }))
    });
    all.fold((0, 0), |(number, bytes), source| (number + 1, bytes + source.len()))
}
