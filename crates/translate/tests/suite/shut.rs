//! Guarded paths that are not served: nobody else of their namespace gets their requests.

use crate::builders::{
    annotate, backend, cluster, config_map, ingress, key, path, put_config_map, put_ingress,
    put_service, rule, service,
};
use model::{Backend, ServerName};
use objects::{Ingress, PathType, PortRef};
use translate::{Options, Translation, translate};

const HOST: &str = "shop.test";

/// An Ingress with one path, so many seconds old.
fn made(namespace: &str, name: &str, at: &str, kind: PathType, age: i64) -> Ingress {
    let mut made = ingress(namespace, name);
    let to = backend("s", Some(PortRef::Number(80)));
    made.rules = vec![rule(Some(HOST), Some(vec![path(at, kind, to)]))];
    made.meta.created = 1000 - age;
    made
}

fn with(annotations: &[(&str, &str)], mut ingress: Ingress) -> Ingress {
    annotations.iter().for_each(|(name, value)| annotate(&mut ingress, name, value));
    ingress
}

fn translated(ingresses: Vec<Ingress>) -> Translation {
    let mut snapshot = cluster();
    let data = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &data));
    for namespace in ["a", "v"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    ingresses.into_iter().for_each(|ingress| put_ingress(&mut snapshot, ingress));
    let config_map = Some(key("system", "settings"));
    translate(&snapshot, &Options { config_map, ..Options::default() })
}

/// The paths of the host that are closed.
fn closed(found: &Translation) -> Vec<String> {
    let locations = &found.configuration.servers[&ServerName::new(HOST)].locations;
    let is_closed =
        |at: &&std::sync::Arc<model::Location>| matches!(at.backend, Backend::Denied(_));
    locations.iter().filter(is_closed).map(|at| at.path.clone()).collect()
}

const GUARD: [(&str, &str); 1] = [("whitelist-source-range", "10.0.0.0/8")];
const REGEX: (&str, &str) = ("use-regex", "true");

#[test]
fn what_an_older_exact_path_leaves_of_a_guarded_one_is_closed() {
    let open = made("v", "open", "/", PathType::Prefix, 900);
    let theirs = made("a", "theirs", "/admin/", PathType::Exact, 800);
    let guarded = with(&GUARD, made("v", "guarded", "/admin", PathType::Prefix, 10));
    let found = translated(vec![open.clone(), theirs.clone(), guarded]);
    assert_eq!(closed(&found), ["/admin/"], "{}", found.problems);
    assert!(found.problems.to_string().contains("which is older"), "{}", found.problems);
    let unguarded = made("v", "unguarded", "/admin", PathType::Prefix, 10);
    let found = translated(vec![open, theirs, unguarded]);
    assert_eq!(closed(&found), [""; 0]);
}

#[test]
fn what_an_older_path_leaves_of_a_guarded_expression_is_closed() {
    let open = with(&[REGEX], made("v", "open", "/", PathType::Prefix, 900));
    let theirs = made("a", "theirs", "/admin/x", PathType::ImplementationSpecific, 800);
    let guarded = made("v", "guarded", "/admin/(.*)", PathType::ImplementationSpecific, 10);
    let guarded = with(&[GUARD[0], REGEX], guarded);
    let found = translated(vec![open, theirs, guarded]);
    // `/admin/x` stays theirs, and `/` open.
    assert_eq!(closed(&found), ["/admin/"], "{}", found.problems);
}

#[test]
fn snippets_that_keep_nobody_out_are_no_guards() {
    for (snippet, shut) in [
        ("add_header X-One 1;", false),
        ("proxy_read_timeout 5s; set $a 1;", false),
        ("deny 192.0.2.1;", true),
        ("if ($http_x_key = '') { return 403; }", true),
        ("limit_except GET { deny all; }", true),
    ] {
        let snippet = [("configuration-snippet", snippet), REGEX];
        let odd = made("v", "odd", r"/api/(?|v1|v2)/(.*)", PathType::ImplementationSpecific, 10);
        let open = made("v", "open", "/api/v", PathType::ImplementationSpecific, 20);
        let found = translated(vec![with(&snippet, odd), open]);
        let wanted: &[&str] = if shut { &["/api/"] } else { &[] };
        // The path that is open is the longer one of both, and behind the expression.
        let wanted = if shut { [&["/api/v"], wanted].concat() } else { wanted.to_vec() };
        assert_eq!(closed(&found), wanted, "{snippet:?} {}", found.problems);
    }
}

#[test]
fn the_reason_names_the_guarded_path_and_its_ingress() {
    let guarded = made("v", "odd", r"/x\p{L}y{3}", PathType::ImplementationSpecific, 10);
    let open = made("v", "open", "/xy", PathType::ImplementationSpecific, 20);
    let found = translated(vec![with(&[GUARD[0], REGEX], guarded), open]);
    let server = &found.configuration.servers[&ServerName::new(HOST)];
    let at = server.locations.iter().find(|at| at.path == "/xy").expect("it is there");
    let Backend::Denied(reason) = &at.backend else { panic!("{at:?}") };
    for part in [r"path /x\p{L}y{3}", "v/odd", "write it in another way"] {
        assert!(reason.contains(part), "{reason}");
    }
}

/// Compared each with each, these would be 900,000,000 steps.
#[test]
fn many_guarded_paths_that_cannot_be_asked_cost_little() {
    let many = |form: fn(usize) -> String, count: usize| {
        let to = || backend("s", Some(PortRef::Number(80)));
        let kind = PathType::ImplementationSpecific;
        let paths = (0..count).map(|number| path(&form(number), kind, to())).collect();
        Some(paths)
    };
    let mut odd = made("v", "odd", "/", PathType::Prefix, 10);
    odd.rules = vec![rule(Some(HOST), many(|number| format!(r"/b{number}\p{{L}}xxxxxxx"), 15_000))];
    let mut plain = made("v", "plain", "/", PathType::Prefix, 20);
    plain.rules = vec![rule(Some(HOST), many(|number| format!("/a{number}"), 60_000))];
    let found = translated(vec![with(&[GUARD[0], REGEX], odd), plain]);
    assert_eq!(closed(&found).len(), 60_001, "all that comes behind, and the root");
}
