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
    let found = translated(vec![open.clone(), theirs.clone(), unguarded]);
    assert_eq!(closed(&found), [""; 0]);
    // On a host of plain paths that is somebody else's, what asks for expressions and is none is as plain.
    let owner = made("a", "owner", "/x", PathType::Prefix, 950);
    let plain = made("v", "plain", "/admin", PathType::Prefix, 10);
    let plain = with(&[GUARD[0], REGEX], plain);
    let found = translated(vec![owner, open, theirs, plain]);
    assert_eq!(closed(&found), ["/admin/"], "{}", found.problems);
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

#[test]
fn what_is_closed_takes_nothing_from_older_paths_of_another_namespace() {
    const ANY: PathType = PathType::ImplementationSpecific;
    let large = r"/api/.x\w{700}\w{700}\w{700}";
    for theirs in ["/api", "/API"] {
        for kind in [PathType::Prefix, PathType::Exact, ANY] {
            for path in ["/api/.*", "/api/.x(?R)", "/api/", "/Api/", large] {
                let older = with(&[REGEX], made("a", "theirs", theirs, kind, 900));
                let root = made("v", "root", "/", PathType::Prefix, 800);
                let guarded = with(&[GUARD[0], REGEX], made("v", "guarded", path, ANY, 10));
                let found = translated(vec![older, root, guarded]);
                // Nor is `/` closed: all that begins like it is theirs.
                assert_eq!(closed(&found), [""; 0], "{theirs} {path}: {}", found.problems);
                assert!(found.problems.to_string().contains("v/guarded"), "{path}");
            }
        }
    }
}

#[test]
fn what_is_closed_for_want_of_memory_takes_nothing_from_older_paths_either() {
    const ANY: PathType = PathType::ImplementationSpecific;
    let older = with(&[REGEX], made("a", "theirs", "/api", PathType::Prefix, 900));
    let mut large = with(&[REGEX], made("v", "large", "/", PathType::Prefix, 10));
    let to = || backend("s", Some(PortRef::Number(80)));
    let many = (0..40).map(|number| path(&format!(r"/z\w{{500}}{number}$"), ANY, to()));
    let last = path(r"/api/.x\w{500}z", ANY, to());
    large.rules = vec![rule(Some(HOST), Some(many.chain([last]).collect()))];
    let found = translated(vec![older, large]);
    assert_eq!(closed(&found), ["/z"], "{}", found.problems);
}

#[test]
fn what_a_guarded_expression_would_have_had_on_a_host_of_plain_paths_is_nobody_else_s() {
    const ANY: PathType = PathType::ImplementationSpecific;
    let kept = ["/se", "/app", "/secret/what/everybody/may/have"];
    for (guarded, shut) in [
        ("/secret(/|$)(.*)", vec!["/", "/secret", "/secrets"]),
        ("/secret/v[0-9]+/.*", vec!["/", "/secret"]),
        ("/Secret.*", vec!["/", "/secret", "/secrets"]),
        ("/app[12]/secret/.*", vec!["/", "/app"]),
    ] {
        for is_guarded in [true, false] {
            let mut all = vec![made("a", "owner", "/x", PathType::Prefix, 900)];
            for (number, path) in ["/", "/secret", "/secrets"].iter().chain(&kept).enumerate() {
                let made = made("v", &format!("open{number}"), path, PathType::Prefix, 500);
                all.push(made);
            }
            all.push(made("v", "exact", "/", PathType::Exact, 500));
            all.push(with(&GUARD, made("v", "alike", "/secre", PathType::Prefix, 500)));
            let guards = if is_guarded { &GUARD[..] } else { &[] };
            all.push(with(guards, with(&[REGEX], made("v", "guarded", guarded, ANY, 10))));
            let found = translated(all);
            let mut closed = closed(&found);
            closed.sort();
            let wanted = if is_guarded { shut.clone() } else { Vec::new() };
            assert_eq!(closed, wanted, "{guarded}: {}", found.problems);
        }
    }
}

#[test]
fn where_nobody_knows_whom_a_path_would_have_let_in_nobody_else_has_it() {
    const ANY: PathType = PathType::ImplementationSpecific;
    let broken = [REGEX, ("auth-type", "basic"), ("auth-secret", "missing")];
    let odd = with(&broken, made("v", "odd", "/(?|a|b)/.*", ANY, 10));
    let found = translated(vec![odd, made("v", "open", "/a", PathType::Prefix, 20)]);
    assert_eq!(closed(&found), ["/a", "/"], "{}", found.problems);
}

/// Where the order of anything hashed counted, hardly any two would be the same.
#[test]
fn what_is_closed_of_several_namespaces_is_in_order() {
    const ANY: PathType = PathType::ImplementationSpecific;
    let all = || {
        let mut all = vec![with(&[REGEX], made("a", "own", "/", PathType::Prefix, 900))];
        for namespace in ["b", "c", "d", "e"] {
            for (number, path) in ["/adm(?R)", "/bb(?R)"].iter().enumerate() {
                let path = format!("{path}{namespace}");
                let odd = made(namespace, &format!("odd{number}"), &path, ANY, 10);
                all.push(with(&[GUARD[0], REGEX], odd));
            }
        }
        translated(all)
    };
    let first = all();
    assert_eq!(closed(&first).len(), 2, "{}", first.problems);
    for _ in 0..20 {
        assert_eq!(all().configuration, first.configuration);
    }
}

/// Paths in one Ingress.
fn many(form: impl Fn(usize) -> String, count: usize) -> Ingress {
    let to = || backend("s", Some(PortRef::Number(80)));
    let all = (0..count).map(|at| path(&form(at), PathType::ImplementationSpecific, to()));
    let mut made = made("v", "many", "/", PathType::Prefix, 10);
    made.rules = vec![rule(Some(HOST), Some(all.collect()))];
    made
}

fn named(name: &str, mut ingress: Ingress) -> Ingress {
    ingress.meta.key = key("v", name);
    ingress
}

/// Compared at each path, these would be 20,000,000,000 steps.
#[test]
fn long_guards_are_compared_once_for_each_ingress() {
    let guarded = |count: usize, name: &str, ingress: Ingress| {
        let one = |at: usize| format!("10.{}.{}.{}", at >> 15, at >> 7 & 255, (at & 127) * 2);
        let networks = (0..count).map(one).collect::<Vec<_>>().join(",");
        named(name, with(&[("whitelist-source-range", &networks)], ingress))
    };
    for (theirs, wanted) in [(15_000, 0), (14_999, 40_000)] {
        let odd = many(|number| format!("/(?R){}{number}", "a".repeat(30)), 32);
        let plain = (0..4).map(|part| {
            let plain = many(|number| format!("/p{part}x{number}"), 10_000);
            guarded(theirs, &format!("plain{part}"), plain)
        });
        let all = plain.chain([with(&[REGEX], guarded(15_000, "odd", odd))]);
        let found = translated(all.collect());
        let closed = closed(&found).into_iter().filter(|path| path != "/").count();
        assert_eq!(closed, wanted, "{}", found.problems);
    }
}

/// Compared each with each, these would be 900,000,000 steps.
#[test]
fn many_guarded_paths_that_cannot_be_asked_cost_little() {
    let odd = named("odd", many(|number| format!(r"/b{number}\p{{L}}xxxxxxx"), 15_000));
    let plain = named("plain", many(|number| format!("/a{number}"), 60_000));
    let found = translated(vec![with(&[GUARD[0], REGEX], odd), plain]);
    assert_eq!(closed(&found).len(), 60_001, "all that comes behind, and the root");
}
