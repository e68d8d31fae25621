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

#[test]
fn what_an_ingress_that_is_not_taken_guards_its_host_by_closes_the_host() {
    let denies = ("server-snippet", "deny all;");
    let odd = ("server-snippet", "deny all; sett $a 1;");
    let asks = ("auth-tls-secret", "v/missing");
    let beside = made("v", "beside", "/admin", 100, &[]);
    let theirs = made("w", "theirs", "/w", 50, &[]);
    let risk = [("annotations-risk-level", "High")];
    for (word, data, told) in [
        (&[denies, BAD][..], &[][..], "server-snippet"),
        (&[odd, BAD], &[], "server-snippet"),
        (&[denies], &risk, "server-snippet"),
        (&[asks, BAD], &[], "auth-tls-secret"),
        (&[("auth-tls-secret", "no name;"), BAD], &[], "auth-tls-secret"),
    ] {
        let word = made("v", "word", "/app", 900, word);
        let found = with(data, &[&word, &beside, &theirs]);
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/app", "/admin", "/w"]), ["503"; 3], "{said}");
        for whose in ["v/beside", "w/theirs"] {
            let message = format!(
                "Ingress {whose}: nginx.ingress.kubernetes.io/{told}: {told} of Ingress v/word may guard all of host \
                 {HOST}, and is not taken"
            );
            assert!(said.contains(&message), "{said}");
        }
    }
    // What is no guard, does not count, or is another's to say closes nothing.
    let off = ("auth-tls-verify-client", "off");
    for (namespace, age, word, data) in [
        ("v", 900, &[("server-snippet", "add_header A b;"), BAD][..], &[][..]),
        ("v", 900, &[denies, BAD], &[("allow-snippet-annotations", "false")]),
        ("v", 900, &[asks, off, BAD], &[]),
        ("w", 60, &[denies, asks, BAD], &[]),
    ] {
        let word = made(namespace, "word", "/app", age, word);
        let found = with(data, &[&word, &beside, &theirs]);
        let wanted = ["503", "beside", "theirs"];
        let said = found.problems.to_string();
        assert_eq!(answers(&found, ["/app", "/admin", "/w"]), wanted, "{word:?} {said}");
    }
}

#[test]
fn what_another_ingress_says_of_the_host_as_well_is_not_lost() {
    let beside = made("v", "beside", "/admin", 100, &[]);
    let word = |name: &str, age: i64, more: &[(&str, &str)]| {
        made(
            "v",
            name,
            &format!("/{name}"),
            age,
            &[&[("server-snippet", "deny all;")], more].concat(),
        )
    };
    // The older one's counts, and would if both were taken.
    let (older, younger) = (word("older", 900, &[]), word("younger", 500, &[BAD]));
    assert_eq!(answers(&with(&[], &[&older, &younger, &beside]), ["/admin"]), ["beside"]);
    let (older, younger) = (word("older", 900, &[BAD]), word("younger", 500, &[]));
    assert_eq!(answers(&with(&[], &[&older, &younger, &beside]), ["/admin"]), ["503"]);
    // Of certificates the strictest counts, and the first of these.
    let mut snapshot = cluster();
    for name in ["one", "two"] {
        let (authority, _) = certificate(&[name]);
        put_secret(&mut snapshot, secret("v", name, &[("ca.crt", &authority)]));
    }
    put_service(&mut snapshot, service("v", "s", 80));
    let asks = |name: &str, age: i64, secret: &str, how: &str, more: &[(&str, &str)]| {
        let secret = format!("v/{secret}");
        let asks = [("auth-tls-secret", secret.as_str()), ("auth-tls-verify-client", how)];
        made("v", name, &format!("/{name}"), age, &[&asks, more].concat())
    };
    for (secret, age, how, wanted) in [
        ("one", 900, "on", "beside"),
        ("one", 900, "optional", "beside"),
        ("two", 900, "optional", "beside"),
        ("two", 500, "on", "beside"),
        ("two", 900, "on", "503"),
    ] {
        let mut snapshot = snapshot.clone();
        let lost = asks("lost", age, secret, how, &[BAD]);
        for ingress in [&asks("word", 700, "one", "on", &[]), &lost, &beside] {
            put_ingress(&mut snapshot, ingress.clone());
        }
        let found = translate(&snapshot, &Options::default());
        assert_eq!(answers(&found, ["/lost", "/admin"]), ["503", wanted], "{secret} {age} {how}");
    }
}

#[test]
fn with_the_nginx_engine_a_lost_word_about_the_host_closes_it_too() {
    let word = made("v", "word", "/app", 900, &[("server-snippet", "deny all;"), BAD]);
    let beside = made("v", "beside", "/admin", 100, &[]);
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &allowed));
    put_service(&mut snapshot, service("v", "s", 80));
    for ingress in [word, beside] {
        put_ingress(&mut snapshot, ingress);
    }
    let config_map = Some(key("system", "settings"));
    let found = translate(&snapshot, &Options { config_map, raw: true, ..Options::default() });
    assert_eq!(answers(&found, ["/app", "/admin"]), ["503", "503"], "{}", found.problems);
}

/// A Pod that runs keeps the last good version, and with it the guard and what is beside it.
#[test]
fn a_pod_that_runs_keeps_the_word_about_a_host_over_a_mistake() {
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, config_map("system", "settings", &allowed));
    put_service(&mut snapshot, service("v", "s", 80));
    put_ingress(&mut snapshot, made("v", "word", "/app", 900, &[("server-snippet", "deny all;")]));
    put_ingress(&mut snapshot, made("v", "beside", "/admin", 100, &[]));
    let config_map = Some(key("system", "settings"));
    let mut translator = translate::Translator::new(Options { config_map, ..Options::default() });
    let before = translator.update(&snapshot).configuration;
    let bad = made("v", "word", "/app", 900, &[("server-snippet", "deny all;"), BAD]);
    put_ingress(&mut snapshot, bad);
    assert_eq!(translator.update(&snapshot).configuration, before);
}
