//! What a guarded Ingress has stays shut where it is not served: by a mistake, beside others, or for want of room.

use crate::builders::*;
use model::{Backend, ServerName};
use objects::{Ingress, PathType, PortRef};
use translate::{Options, Translation, translate};

const HOST: &str = "shop.test";
const ANY: PathType = PathType::ImplementationSpecific;
const BAD: (&str, &str) = ("client-body-buffer-size", "much");
const GUARD: (&str, &str) = ("whitelist-source-range", "10.0.0.0/8");
const REGEX: (&str, &str) = ("use-regex", "true");
const REWRITE: (&str, &str) = ("rewrite-target", "/$2");

/// An Ingress with one path, so many seconds old.
fn made(namespace: &str, name: &str, at: &str, age: i64, annotations: &[(&str, &str)]) -> Ingress {
    let mut made = ingress(namespace, name);
    let to = backend("s", Some(PortRef::Number(80)));
    made.rules = vec![rule(Some(HOST), Some(vec![path(at, ANY, to)]))];
    made.meta.created = 1000 - age;
    annotations.iter().for_each(|(name, value)| annotate(&mut made, name, value));
    made
}

fn with(data: &[(&str, &str)], ingresses: &[&Ingress]) -> Translation {
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &[&allowed, data].concat()));
    for namespace in ["v", "w", "x"] {
        put_service(&mut snapshot, service(namespace, "s", 80));
    }
    for ingress in ingresses {
        put_ingress(&mut snapshot, (*ingress).clone());
    }
    let config_map = Some(key("system", "settings"));
    translate(&snapshot, &Options { config_map, ..Options::default() })
}

/// What answers requests to the host: 503, or the Ingress of a location, with an exclamation mark where it is guarded.
fn answers<const N: usize>(found: &Translation, paths: [&str; N]) -> [String; N] {
    let server = &found.configuration.servers[&ServerName::new(HOST)];
    let locations = route::Locations::compile(server);
    paths.map(|path| {
        let path = route::path::canonical(path.as_bytes()).expect("a valid path");
        let index = match locations.find(&path, &model::Steps::default()) {
            route::Found::Location { index } => index,
            other => return format!("{other:?}"),
        };
        let location = &server.locations[index];
        match &location.backend {
            Backend::Denied(_) => "503".to_owned(),
            Backend::Upstream(_) => {
                let name = location.origin.as_deref().map_or("nobody", |origin| &*origin.name);
                format!("{name}{}", if location.policy.is_guarded() { "!" } else { "" })
            }
            other => format!("{other:?}"),
        }
    })
}

#[test]
fn a_path_that_was_left_to_an_older_one_which_is_not_served_is_closed() {
    let open = made("v", "open", "/", 900, &[]);
    let text = "/admin(/|$)(.*)";
    let theirs = made("w", "theirs", text, 500, &[REWRITE]);
    let guarded = made("v", "guarded", text, 100, &[REWRITE, GUARD]);
    let paths = ["/admin", "/admin/x", "/ADMIN/x", "/other"];
    let found = with(&[], &[&open, &guarded]);
    assert_eq!(answers(&found, paths), ["guarded!", "guarded!", "guarded!", "open"]);
    // The owner's word makes expressions of the host's paths, whoever has the path: theirs is served.
    let found = with(&[], &[&open, &theirs, &guarded]);
    assert_eq!(answers(&found, paths), ["theirs", "theirs", "theirs", "open"]);
    let open = made("v", "open", "/", 900, &[REGEX]);
    // One that Fairway does not know, and one that has to give way to a third namespace's.
    let (odd, wide) = ("/admin/(?|x|y)", "/admin/(.*)");
    let third = made("x", "third", "/admin/v1", 800, &[]);
    for (text, third) in [(odd, None), (wide, Some(&third))] {
        let theirs = made("w", "theirs", text, 500, &[REGEX]);
        let guarded = made("v", "guarded", text, 100, &[REGEX, GUARD]);
        let all: Vec<&Ingress> = third.into_iter().chain([&open, &theirs, &guarded]).collect();
        let found = with(&[], &all);
        assert_eq!(answers(&found, ["/admin/x", "/other"]), ["503", "open"], "{}", found.problems);
        let said = found.problems.to_string();
        assert!(said.contains("v/guarded: spec.rules: path") && said.contains("in vain"), "{said}");
        if third.is_some() {
            assert_eq!(answers(&found, ["/admin/v1"]), ["third"]);
        }
        // Who guards nothing has nothing closed.
        let plain = made("v", "guarded", text, 100, &[REGEX]);
        let all: Vec<&Ingress> = third.into_iter().chain([&open, &theirs, &plain]).collect();
        assert_eq!(answers(&with(&[], &all), ["/admin/x"]), ["open"]);
    }
}

#[test]
fn on_a_plain_host_what_was_left_to_a_path_that_is_not_served_is_closed() {
    // `/p` of w gives way to the Exact `/p/` of x, and that of v has come behind it.
    let open = made("v", "open", "/", 900, &[]);
    let mut exact = made("x", "exact", "/p/", 800, &[]);
    exact.rules[0].paths.iter_mut().flatten().for_each(|path| path.kind = PathType::Exact);
    let theirs = made("w", "theirs", "/p", 500, &[]);
    let guarded = made("v", "guarded", "/p", 100, &[GUARD]);
    let found = with(&[], &[&open, &exact, &theirs, &guarded]);
    let said = found.problems.to_string();
    assert_eq!(answers(&found, ["/p/", "/p/x", "/other"]), ["exact", "503", "open"], "{said}");
}

#[test]
fn an_expression_that_is_closed_is_one() {
    let open = made("v", "open", "/", 900, &[]);
    let text = "/admin(/|$)(.*)";
    let paths = ["/admin", "/admin/x", "/ADMIN/x", "/administrator", "/other"];
    for (name, annotations) in [
        ("not taken", &[GUARD, REWRITE, BAD][..]),
        ("not taken", &[GUARD, REGEX, BAD]),
        ("an unknown variable", &[GUARD, ("rewrite-target", "/$2/$foo")]),
        ("no group", &[GUARD, ("rewrite-target", "/$0")]),
    ] {
        let guarded = made("v", "guarded", text, 100, annotations);
        let found = with(&[], &[&open, &guarded]);
        let wanted = ["503", "503", "503", "open", "open"];
        assert_eq!(answers(&found, paths), wanted, "{name}: {}", found.problems);
    }
}

#[test]
fn how_paths_match_hangs_neither_on_mistakes_nor_on_paths_of_others() {
    let open = made("v", "open", "/", 900, &[]);
    let guarded = made("v", "guarded", "/adm(in|ins)", 100, &[GUARD]);
    let theirs = made("x", "x", "/r", 500, &[]);
    let asks = |more: &[(&str, &str)]| made("v", "asks", "/r", 400, &[&[REGEX], more].concat());
    for (all, r) in [
        (vec![&open, &guarded, &asks(&[])], "asks"),
        (vec![&open, &guarded, &asks(&[]), &theirs], "x"),
        (vec![&open, &guarded, &asks(&[BAD])], "503"),
        (vec![&open, &guarded, &asks(&[BAD]), &theirs], "x"),
    ] {
        let found = with(&[], &all);
        assert_eq!(answers(&found, ["/admin", "/r"]), ["guarded!", r], "{}", found.problems);
    }
    // Nobody else than the owner has a word in it.
    let stranger = made("w", "stranger", "/s", 300, &[REGEX, BAD]);
    let found = with(&[], &[&open, &guarded, &stranger]);
    assert!(!found.configuration.servers[&ServerName::new(HOST)].regex);
}
