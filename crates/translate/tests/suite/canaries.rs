//! Canary Ingresses: beside which routes of others they stand.

use crate::builders::*;
use model::policy::Canary;
use model::{PathKind, ServerName};
use objects::{Ingress, PathType, PortRef, Snapshot};
use std::sync::Arc;
use translate::{Options, Translation, translate};

fn canary(name: &str, host: &str, at: &str, service: &str) -> Ingress {
    let mut ingress = simple("demo", name, host, at, service);
    annotate(&mut ingress, "canary", "true");
    annotate(&mut ingress, "canary-weight", "10");
    ingress
}

fn shop() -> Snapshot {
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, simple("demo", "main", "shop.test", "/p", "s"));
    for service_name in ["s", "next", "other"] {
        put_service(&mut snapshot, service("demo", service_name, 80));
    }
    snapshot
}

fn read(snapshot: &Snapshot) -> Translation {
    translate(snapshot, &Options::default())
}

fn beside(translation: &Translation, host: &str, path: &str) -> Option<Box<Canary>> {
    let server = translation.configuration.servers.get(&ServerName::new(host))?;
    let location = server
        .locations
        .iter()
        .find(|location| location.path == path && location.kind == PathKind::Prefix)?;
    location.canary.clone()
}

fn upstream(canary: Option<Box<Canary>>) -> Option<String> {
    canary.map(|canary| canary.upstream.as_str().to_owned())
}

#[test]
fn a_canary_whose_guard_is_unknown_gets_nobody() {
    let mut snapshot = shop();
    let mut guarded = canary("c", "shop.test", "/p", "next");
    annotate(&mut guarded, "auth-type", "basic");
    annotate(&mut guarded, "auth-secret", "nowhere");
    put_ingress(&mut snapshot, guarded);
    let translation = read(&snapshot);
    assert_eq!(upstream(beside(&translation, "shop.test", "/p")), None);
    let problems = translation.problems.to_string();
    assert!(problems.contains("Secret demo/nowhere does not exist"), "{problems}");
}

#[test]
fn a_guard_that_only_a_canary_asks_for_is_a_problem() {
    let problems_of = |main: Option<&str>| {
        let mut snapshot = shop();
        let mut open = simple("demo", "main", "shop.test", "/p", "s");
        if let Some(list) = main {
            annotate(&mut open, "allowlist-source-range", list);
        }
        put_ingress(&mut snapshot, open);
        let mut guarded = canary("c", "shop.test", "/p", "next");
        annotate(&mut guarded, "allowlist-source-range", "10.0.0.0/8");
        put_ingress(&mut snapshot, guarded);
        let translation = read(&snapshot);
        assert!(beside(&translation, "shop.test", "/p").is_some());
        translation.problems.to_string()
    };
    let said = "reach its Service without this one";
    for main in [None, Some("192.0.2.0/24")] {
        assert!(problems_of(main).contains(said), "{main:?}: {}", problems_of(main));
    }
    let problems = problems_of(Some("10.0.0.0/8"));
    assert!(!problems.contains(said), "{problems}");
}

#[test]
fn a_canary_creates_no_server_and_no_location() {
    let mut snapshot = shop();
    put_ingress(&mut snapshot, canary("c", "other.test", "/p", "next"));
    put_ingress(&mut snapshot, canary("d", "shop.test", "/q", "next"));
    let translation = read(&snapshot);
    assert!(!translation.configuration.servers.contains_key(&ServerName::new("other.test")));
    let server = &translation.configuration.servers[&ServerName::new("shop.test")];
    let paths: Vec<&str> = server.locations.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(paths, ["/p", "/"]);
    let problems = translation.problems.to_string();
    assert!(
        problems.contains("no other Ingress has path /p (Prefix) of host other.test"),
        "{problems}"
    );
    assert!(
        problems.contains("no other Ingress has path /q (Prefix) of host shop.test"),
        "{problems}"
    );
}

#[test]
fn a_path_that_nobody_has_does_not_take_the_canary_from_the_others() {
    let mut snapshot = shop();
    let mut both = canary("c", "shop.test", "/p", "next");
    let lost = path("/lost", PathType::Prefix, backend("next", Some(PortRef::Number(80))));
    both.rules[0].paths.iter_mut().for_each(|paths| paths.insert(0, lost.clone()));
    put_ingress(&mut snapshot, both);
    assert_eq!(
        upstream(beside(&read(&snapshot), "shop.test", "/p")).as_deref(),
        Some("demo-next-80")
    );
}

#[test]
fn another_route_of_the_same_service_has_no_canary() {
    let mut snapshot = shop();
    put_ingress(&mut snapshot, simple("demo", "second", "second.test", "/p", "s"));
    put_ingress(&mut snapshot, simple("demo", "third", "third.test", "/p", "next"));
    put_ingress(&mut snapshot, canary("c", "shop.test", "/p", "next"));
    let translation = read(&snapshot);
    assert_eq!(upstream(beside(&translation, "shop.test", "/p")).as_deref(), Some("demo-next-80"));
    assert_eq!(beside(&translation, "second.test", "/p"), None);
    assert_eq!(beside(&translation, "third.test", "/p"), None);
    assert_eq!(upstream_of(&translation, "third.test", "/p").as_deref(), Some("demo-next-80"));
}

fn upstream_of(translation: &Translation, host: &str, path: &str) -> Option<String> {
    crate::builders::upstream(&translation.configuration, host, path)
}

#[test]
fn of_two_canaries_the_older_one_counts_and_it_does_not_matter_who_came_last() {
    let mut snapshot = shop();
    let (mut old, mut young) =
        (canary("a", "shop.test", "/p", "next"), canary("b", "shop.test", "/p", "other"));
    (old.meta.created, young.meta.created) = (5, 6);
    put_ingress(&mut snapshot, young);
    assert_eq!(
        upstream(beside(&read(&snapshot), "shop.test", "/p")).as_deref(),
        Some("demo-other-80")
    );
    put_ingress(&mut snapshot, old);
    let translation = read(&snapshot);
    assert_eq!(upstream(beside(&translation, "shop.test", "/p")).as_deref(), Some("demo-next-80"));
    let problems = translation.problems.to_string();
    assert!(problems.contains("has a canary already, Ingress demo/a"), "{problems}");
}

#[test]
fn a_canary_older_than_its_main_ingress_stands_beside_it_all_the_same() {
    let mut snapshot = shop();
    let mut main = simple("demo", "main", "shop.test", "/p", "s");
    main.meta.created = 9;
    put_ingress(&mut snapshot, main);
    put_ingress(&mut snapshot, canary("c", "shop.test", "/p", "next"));
    let translation = read(&snapshot);
    assert_eq!(upstream(beside(&translation, "shop.test", "/p")).as_deref(), Some("demo-next-80"));
    let root = &translation.configuration.servers[&ServerName::new("shop.test")].locations[1];
    let owner = root.origin.as_deref().map(|origin| &*origin.name);
    assert_eq!(owner, Some("main"), "a canary creates no host");
}

#[test]
fn its_default_backend_stands_beside_the_catch_all_of_an_ingress() {
    let mut snapshot = shop();
    let mut beside_all = canary("c", "shop.test", "/nowhere", "next");
    beside_all.default_backend = Some(Box::new(backend("next", Some(PortRef::Number(80)))));
    put_ingress(&mut snapshot, beside_all);
    assert_eq!(beside(&read(&snapshot), "_", "/"), None, "nobody is the catch-all yet");
    let default_backend = Some(Box::new(backend("s", Some(PortRef::Number(80)))));
    put_ingress(&mut snapshot, Ingress { default_backend, ..ingress("demo", "all") });
    assert_eq!(upstream(beside(&read(&snapshot), "_", "/")).as_deref(), Some("demo-next-80"));
}

#[test]
fn sessions_are_those_of_the_main_ingress_unless_the_canary_wants_none() {
    let mut snapshot = shop();
    let mut main = simple("demo", "main", "shop.test", "/p", "s");
    annotate(&mut main, "affinity", "cookie");
    put_ingress(&mut snapshot, main);
    let mut sticky = canary("c", "shop.test", "/p", "next");
    annotate(&mut sticky, "load-balance", "ewma");
    put_ingress(&mut snapshot, sticky.clone());
    let found = beside(&read(&snapshot), "shop.test", "/p").expect("a canary");
    assert!(found.balance.affinity.is_some_and(|affinity| affinity.name == "INGRESSCOOKIE"));
    assert_eq!(found.balance.algorithm, model::policy::Algorithm::Ewma);
    annotate(&mut sticky, "affinity-canary-behavior", "legacy");
    put_ingress(&mut snapshot, sticky);
    let found = beside(&read(&snapshot), "shop.test", "/p").expect("a canary");
    assert_eq!(found.balance.affinity, None);
}

#[test]
fn a_canary_with_a_bad_value_takes_nothing_and_its_last_valid_version_stays() {
    let mut snapshot = shop();
    let valid = canary("c", "shop.test", "/p", "next");
    let mut bad = valid.clone();
    annotate(&mut bad, "load-balance", "magic");
    put_ingress(&mut snapshot, bad.clone());
    assert_eq!(beside(&read(&snapshot), "shop.test", "/p"), None);
    let mut translator = translate::Translator::new(Options::default());
    put_ingress(&mut snapshot, valid);
    translator.update(&snapshot);
    put_ingress(&mut snapshot, bad);
    let translation = translator.update(&snapshot);
    assert_eq!(upstream(beside(&translation, "shop.test", "/p")).as_deref(), Some("demo-next-80"));
    let shared: &Arc<_> = &translation.configuration.servers[&ServerName::new("shop.test")];
    assert_eq!(shared.locations.len(), 2);
}

#[test]
fn paths_of_a_canary_share_its_rules() {
    let mut snapshot = shop();
    put_ingress(&mut snapshot, simple("demo", "second", "shop.test", "/q", "s"));
    let mut both = canary("c", "shop.test", "/p", "next");
    annotate(&mut both, "canary-by-header", "X-Next");
    annotate(&mut both, "canary-by-header-value", &"v".repeat(1000));
    let to = backend("next", Some(PortRef::Number(80)));
    both.rules.push(rule(Some("shop.test"), Some(vec![path("/q", PathType::Prefix, to)])));
    put_ingress(&mut snapshot, both);
    let found = read(&snapshot);
    let rules =
        ["/p", "/q"].map(|path| beside(&found, "shop.test", path).expect("it is there").rules);
    assert!(Arc::ptr_eq(&rules[0], &rules[1]), "each path has a copy");
}
