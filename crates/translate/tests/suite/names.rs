//! Aliases and redirected names where several hosts meet: who has which name, and what a change of one touches.

use crate::builders::*;
use model::{Configuration, ServerName};
use objects::{PathType, Snapshot};
use translate::{Options, Translator, translate};

fn named(snapshot: &mut Snapshot, name: &str, host: &str, annotations: &[(&str, &str)]) {
    let mut made = simple("demo", name, host, "/", "s");
    for (name, value) in annotations {
        annotate(&mut made, name, value);
    }
    put_ingress(snapshot, made);
}

fn names(configuration: &Configuration, host: &str) -> Vec<String> {
    let server = &configuration.servers[&ServerName::new(host)];
    server.other_names().iter().map(ToString::to_string).collect()
}

#[test]
fn an_alias_that_is_a_host_stays_that_hosts_and_is_given_once_the_host_is_gone() {
    let mut snapshot = cluster();
    let mut translator = Translator::new(Options::default());
    named(&mut snapshot, "a", "a.test", &[("server-alias", "b.test,c.test")]);
    named(&mut snapshot, "b", "b.test", &[]);
    named(&mut snapshot, "z", "z.test", &[]);
    let both = translator.update(&snapshot);
    assert_eq!(names(&both.configuration, "a.test"), ["c.test"]);
    assert!(both.problems.to_string().contains("b.test is a host itself"), "{}", both.problems);

    snapshot.ingresses.remove(&key("demo", "b"));
    let alone = translator.update(&snapshot);
    assert_eq!(names(&alone.configuration, "a.test"), ["b.test", "c.test"]);
    assert!(!alone.problems.to_string().contains("a host itself"), "{}", alone.problems);
    let touched: Vec<&str> = alone.changes.servers.iter().map(ServerName::as_str).collect();
    assert_eq!(touched, ["a.test", "b.test"], "z.test has nothing to do with it");
}

#[test]
fn of_two_hosts_with_one_alias_the_first_by_name_has_it() {
    let mut snapshot = cluster();
    named(&mut snapshot, "b", "b.test", &[("server-alias", "x.test,own.test")]);
    named(&mut snapshot, "a", "a.test", &[("server-alias", "X.test")]);
    let found = translate(&snapshot, &Options::default());
    assert_eq!(names(&found.configuration, "a.test"), ["x.test"]);
    assert_eq!(names(&found.configuration, "b.test"), ["own.test"]);
    let problems = found.problems.to_string();
    assert!(problems.contains("x.test is an alias of a.test, which has it"), "{problems}");
}

#[test]
fn the_first_ingress_with_aliases_gives_those_of_the_host() {
    let mut snapshot = cluster();
    named(&mut snapshot, "z-none", "a.test", &[]);
    named(&mut snapshot, "y-first", "a.test", &[("server-alias", "x.test")]);
    named(&mut snapshot, "x-same", "a.test", &[("server-alias", "x.test")]);
    named(&mut snapshot, "w-late", "a.test", &[("server-alias", "x.test,late.test")]);
    let found = translate(&snapshot, &Options::default());
    assert_eq!(names(&found.configuration, "a.test"), ["x.test"]);
    let ignored: Vec<String> = found
        .problems
        .iter()
        .filter(|problem| problem.message.contains("is ignored"))
        .map(|problem| problem.origin.to_string())
        .collect();
    assert_eq!(ignored, ["Ingress demo/w-late"]);
}

#[test]
fn one_ingress_with_two_hosts_gives_its_alias_to_the_first_without_a_problem() {
    let mut snapshot = cluster();
    let mut both = simple("demo", "both", "b.test", "/", "s");
    let to = || backend("s", Some(objects::PortRef::Number(80)));
    both.rules.push(rule(Some("a.test"), Some(vec![path("/", PathType::Prefix, to())])));
    annotate(&mut both, "server-alias", "x.test");
    put_ingress(&mut snapshot, both);
    let found = translate(&snapshot, &Options::default());
    assert_eq!(names(&found.configuration, "a.test"), ["x.test"]);
    assert!(names(&found.configuration, "b.test").is_empty());
    assert!(!found.problems.to_string().contains("alias"), "{}", found.problems);
}

#[test]
fn the_name_with_or_without_www_is_redirected_unless_it_is_a_host() {
    let mut snapshot = cluster();
    let www = [("from-to-www-redirect", "true")];
    named(&mut snapshot, "a", "a.test", &www);
    named(&mut snapshot, "b", "www.b.test", &www);
    named(&mut snapshot, "c", "c.test", &www);
    named(&mut snapshot, "cw", "www.c.test", &www);
    named(&mut snapshot, "d", "d.test", &[("server-alias", "www.a.test,b.test,e.test")]);
    let found = translate(&snapshot, &Options::default());
    let of = |host| names(&found.configuration, host);
    assert_eq!(
        (of("a.test"), of("www.b.test")),
        (vec!["www.a.test".into()], vec!["b.test".into()])
    );
    assert!(of("c.test").is_empty() && of("www.c.test").is_empty());
    assert_eq!(of("d.test"), ["e.test"], "redirects go before aliases");
    let problems = found.problems.to_string();
    assert!(problems.contains("www.c.test is a host itself and not redirected"), "{problems}");
    assert!(problems.contains("www.a.test is redirected to a.test"), "{problems}");
}

#[test]
fn what_nginx_takes_for_no_name_denies_its_ingress_alone() {
    let mut snapshot = cluster();
    named(&mut snapshot, "wild", "*.wild.test", &[("from-to-www-redirect", "true")]);
    named(&mut snapshot, "odd", "odd.test", &[("server-alias", "a.*.b,fine.test")]);
    named(&mut snapshot, "pattern", "pattern.test", &[("server-alias", "~[a")]);
    named(&mut snapshot, "good", "good.test", &[]);
    let found = translate(&snapshot, &Options::default()).configuration;
    for host in ["*.wild.test", "odd.test", "pattern.test"] {
        assert!(is_denied(&found, host, "/"), "{host}");
    }
    assert!(!is_denied(&found, "good.test", "/"));
    assert_eq!(names(&found, "odd.test"), ["fine.test"]);
}

#[test]
fn a_canary_gives_no_names_and_an_ingress_that_is_not_taken_keeps_its_aliases() {
    let mut snapshot = cluster();
    named(&mut snapshot, "main", "a.test", &[]);
    let canary = [("canary", "true"), ("server-alias", "x.test"), ("app-root", "/x")];
    named(&mut snapshot, "canary", "a.test", &canary);
    let refused = [
        ("server-alias", "y.test"),
        ("from-to-www-redirect", "true"),
        ("client-body-buffer-size", "much"),
    ];
    named(&mut snapshot, "refused", "b.test", &refused);
    let found = translate(&snapshot, &Options::default()).configuration;
    assert!(names(&found, "a.test").is_empty());
    assert_eq!(
        names(&found, "b.test"),
        ["y.test"],
        "they lead to what is closed, and nowhere else"
    );
    assert_eq!(found.servers[&ServerName::new("b.test")].www, None);
    assert_eq!(found.servers[&ServerName::new("a.test")].app_root, None);
}

#[test]
fn the_longest_path_decides_about_app_root_and_the_implicit_root_counts() {
    let mut snapshot = cluster();
    let at = |name: &str, path: &str, root: &str| {
        let mut made = simple("demo", name, "a.test", path, "s");
        annotate(&mut made, "app-root", root);
        made
    };
    put_ingress(&mut snapshot, at("z", "/a", "/of-a"));
    put_ingress(&mut snapshot, at("y", "/b/long", "/of-b"));
    put_ingress(&mut snapshot, simple("demo", "x", "a.test", "/much/longer/path", "s"));
    let root = |snapshot: &Snapshot| {
        let found = translate(snapshot, &Options::default()).configuration;
        found.servers[&ServerName::new("a.test")].app_root.as_ref().map(ToString::to_string)
    };
    assert_eq!(root(&snapshot).as_deref(), Some("/of-b"));
    snapshot.ingresses.remove(&key("demo", "y"));
    assert_eq!(root(&snapshot).as_deref(), Some("/of-a"));
}
