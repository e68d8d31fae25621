//! Objects that name a host and are not served there as they say: what whoever asks about the host takes for served.

use crate::Translation;
use crate::ingress::origin;
use crate::kinds::kind_of;
use model::{Origin, Printable, Problem, Severity, Why};
use objects::gateway::{HttpRoute, ParentRef};
use objects::{Ingress, Kind, ObjectKey, Snapshot};

/// Rules of Ingresses, and routes, that name a host and are left out, wholly or in part: who, and the problem.
pub fn left_out_of_host(
    host: &str,
    snapshot: &Snapshot,
    translation: &Translation,
) -> Vec<(String, String)> {
    let told = |origin: &Origin, is_told: &dyn Fn(&Problem) -> bool| {
        let problems = translation.problems.of(origin).iter().filter(|problem| is_told(problem));
        let said = problems.map(|problem| {
            let key = problem.key.as_deref().unwrap_or("spec");
            (origin.to_string(), format!("{key}: {}", Printable(&problem.message)))
        });
        said.collect::<Vec<_>>()
    };
    let ingresses = snapshot.ingresses.values().filter(|ingress| names_nearly(ingress, host));
    let of_ingresses = ingresses.flat_map(|ingress| {
        // A path that is closed, or leads nowhere, is there, and says so itself.
        told(&origin(&ingress.meta.key), &|problem| problem.is(Why::LeftOut))
    });
    let routes = snapshot.http_routes.iter().filter(|(_, route)| names(route, host));
    let of_routes = routes.flat_map(|((kind, key), route)| {
        let origin = of_route(*kind, key);
        let mut all = told(&origin, &|problem| problem.severity != Severity::Notice);
        all.extend(
            parentless(&route.parents, route.unread.as_ref())
                .map(|why| (origin.to_string(), why.to_owned())),
        );
        all
    });
    of_ingresses.chain(of_routes).collect()
}

/// What is said of a route that no Gateway has.
pub(super) fn parentless(parents: &[ParentRef], unread: Option<&String>) -> Option<&'static str> {
    (parents.is_empty() && unread.is_none())
        .then_some("spec.parentRefs: names no Gateway, so that none has the route: name one")
}

pub(super) fn of_route(kind: Kind, key: &ObjectKey) -> Origin {
    Origin::new(kind_of(kind), key.namespace.clone(), key.name.clone())
}

/// Whether an Ingress has a rule for the host, or one that was meant for it: with a scheme, a port or a path.
fn names_nearly(ingress: &Ingress, host: &str) -> bool {
    let hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
    let mut bare = hosts.map(|named| {
        let named = named.split_once("://").map_or(named, |(_, rest)| rest).trim();
        named.split([':', '/']).next().unwrap_or_default()
    });
    bare.any(|named| named.eq_ignore_ascii_case(host))
}

fn names(route: &HttpRoute, host: &str) -> bool {
    let covers = |named: &String| match named.strip_prefix("*.") {
        Some(end) => {
            host.strip_suffix(end).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        }
        None => named.eq_ignore_ascii_case(host),
    };
    route.hostnames.iter().any(covers)
}
