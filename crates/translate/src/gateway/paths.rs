//! The paths that matches ask for: of HTTP as they are written, of gRPC those of methods.

use model::PathKind;
use objects::gateway::{PathMatch, RouteMatch};
use std::borrow::Cow;

/// The path of a match; of gRPC that of the method (`/SERVICE/METHOD`). Of an expression it is what is shown.
pub(super) fn path_of(found: &RouteMatch) -> (PathKind, Cow<'_, str>) {
    match &found.path {
        PathMatch::Exact(path) | PathMatch::Expression(path) => (PathKind::Exact, path.into()),
        PathMatch::Prefix(path) => (PathKind::Prefix, path.into()),
        PathMatch::Method(called) => match (&called.service, &called.method) {
            (None, None) => (PathKind::Prefix, "/".into()),
            (service, method) if called.is_expression => {
                let part = |text: &Option<String>| text.as_deref().unwrap_or(ANY).to_owned();
                (PathKind::Exact, format!("/{}/{}", part(service), part(method)).into())
            }
            (Some(service), Some(method)) => {
                (PathKind::Exact, format!("/{service}/{method}").into())
            }
            (Some(service), None) => (PathKind::Prefix, format!("/{service}").into()),
            // The method is asked for besides.
            (None, Some(_)) => (PathKind::Prefix, "/".into()),
        },
    }
}

/// Characters of the service and of the method that a match is for, as they are written; where none is, there are none.
/// The more of them, the earlier it is asked.
pub(super) fn characters(found: &RouteMatch) -> (u32, u32) {
    let PathMatch::Method(called) = &found.path else { return (0, 0) };
    let of = |part: &Option<String>| {
        let count = part.as_ref().map_or(0, |text| text.chars().count());
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    (of(&called.service), of(&called.method))
}

/// An expression for any service or method.
pub(super) const ANY: &str = "[^/]+";
