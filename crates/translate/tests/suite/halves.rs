//! Lists of the ConfigMap that have the lower half of a path.

use crate::builders::*;
use model::{Location, PathKind, ServerName};
use objects::{PathType, PortRef};
use std::sync::Arc;
use translate::{Options, translate};

/// The locations of a host whose Ingress asks for a password, with these paths and their Services.
fn locations(list: (&str, &str), paths: &[(&str, PathType, &str)]) -> Vec<Arc<Location>> {
    let mut snapshot = cluster();
    put_config_map(&mut snapshot, config_map("demo", "settings", &[list]));
    put_secret(&mut snapshot, secret("demo", "password", &[("auth", "me:$apr1$x$y")]));
    let mut ingress = simple("demo", "shop", "shop.test", "/", "s");
    let to = |service: &str| backend(service, Some(PortRef::Number(80)));
    let paths = paths.iter().map(|(at, kind, service)| path(at, *kind, to(service)));
    ingress.rules = vec![rule(Some("shop.test"), Some(paths.collect()))];
    annotate(&mut ingress, "auth-type", "basic");
    annotate(&mut ingress, "auth-secret", "password");
    put_ingress(&mut snapshot, ingress);
    let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
    let found = translate(&snapshot, &options);
    let untold = |problem: &model::Problem| !problem.to_string().contains("/free");
    assert!(found.problems.iter().all(untold), "{:?}", found.problems);
    found.configuration.servers[&ServerName::new("shop.test")].locations.clone()
}

/// Path, kind, Service and whether a password is asked for.
fn told(locations: &[Arc<Location>]) -> Vec<(String, PathKind, String, bool)> {
    let of = |location: &Arc<Location>| {
        let service = location.service.as_deref().map(|service| service.name.to_string());
        let guarded = location.policy.auth_basic.is_some();
        (location.path.clone(), location.kind, service.unwrap_or_default(), guarded)
    };
    let mut told: Vec<_> = locations.iter().map(of).filter(|told| told.0 != "/").collect();
    told.sort();
    told
}

#[test]
fn a_list_that_has_what_is_below_a_slash_has_no_more() {
    let is = |path: &str, kind: PathKind, service: &str, guarded: bool| {
        (path.to_owned(), kind, service.to_owned(), guarded)
    };
    let one = [("/free", PathType::Prefix, "s")];
    let exact = is("/free", PathKind::Exact, "s", true);
    let open = [exact, is("/free/", PathKind::Prefix, "s", false)];
    assert_eq!(told(&locations(("no-auth-locations", "/free/"), &one)), open);
    // An Exact path that somebody wrote stays theirs, wherever it is written.
    let both = [("/free", PathType::Prefix, "s"), ("/free", PathType::Exact, "t")];
    let open =
        [is("/free", PathKind::Exact, "t", true), is("/free/", PathKind::Prefix, "s", false)];
    assert_eq!(told(&locations(("no-auth-locations", "/free/"), &both)), open);
    // Nothing is cut where the list has the path, too, or where the path has a slash already.
    let whole = [is("/free", PathKind::Prefix, "s", false)];
    assert_eq!(told(&locations(("no-auth-locations", "/free,/free/"), &one)), whole);
    let slash = [("/free/", PathType::Prefix, "s")];
    let whole = [is("/free/", PathKind::Prefix, "s", true)];
    assert_eq!(told(&locations(("no-auth-locations", "/free//"), &slash)), whole);
    let cut = told(&locations(("no-tls-redirect-locations", "/free/"), &one));
    assert!(cut.len() == 2 && cut.iter().all(|(.., guarded)| *guarded), "{cut:?}");
}
