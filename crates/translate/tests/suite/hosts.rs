//! Hosts, paths and backends where several Ingresses meet.

use crate::builders::*;
use model::policy::{ClientCertificate, Origins, Protocol};
use model::{PathKind, ServerName};
use objects::{Ingress, ObjectKey, PathType, PortRef, Reference, Snapshot};
use translate::{Options, references, translate};

#[test]
fn the_older_one_wins_and_of_two_as_old_the_one_whose_name_sorts_last() {
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, simple("demo", "a", "shop.test", "/", "a"));
    put_ingress(&mut snapshot, simple("demo", "b", "shop.test", "/", "b"));
    let owner = |snapshot: &Snapshot| {
        upstream(&translate(snapshot, &Options::default()).configuration, "shop.test", "/")
    };
    assert_eq!(owner(&snapshot).as_deref(), Some("demo-b-80"));
    let mut young = simple("demo", "b", "shop.test", "/", "b");
    young.meta.created = 1;
    put_ingress(&mut snapshot, young);
    assert_eq!(owner(&snapshot).as_deref(), Some("demo-a-80"));
}

#[test]
fn a_path_that_is_an_engines_own_is_closed_and_its_ingress_told() {
    let mut snapshot = cluster();
    let reserved = simple("demo", "a", "shop.test", "/_fairway-auth-0", "a");
    put_ingress(&mut snapshot, reserved);
    let translation = translate(&snapshot, &Options::default());
    let path = "/_fairway-auth-0";
    let found = location(&translation.configuration, "shop.test", path, PathKind::Prefix);
    let remedy = |reason: &str| reason.ends_with("are Fairway's own; write another one");
    let backend = &found.expect("it is there").backend;
    assert!(matches!(backend, model::Backend::Denied(reason) if remedy(reason)), "{backend:?}");
    let told = translation.problems.iter().find(|problem| problem.message.contains(path));
    assert!(told.is_some_and(|told| told.key.as_deref() == Some("spec.rules[0].http.paths[0]")));
}

#[test]
fn names_of_upstreams_that_two_would_have_never_mix_them_up() {
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, simple("a", "one", "one.test", "/", "b-c"));
    put_ingress(&mut snapshot, simple("a-b", "two", "two.test", "/", "c"));
    put_service(&mut snapshot, service("a", "b-c", 80));
    put_service(&mut snapshot, service("a-b", "c", 80));
    put_slice(&mut snapshot, slice("a", "b-c-1", "b-c", vec![endpoint("10.0.0.1")]));
    put_slice(&mut snapshot, slice("a-b", "c-1", "c", vec![endpoint("10.0.0.2")]));
    let configuration = translate(&snapshot, &Options::default()).configuration;
    let addresses = |host| {
        let id = upstream(&configuration, host, "/").expect("an upstream");
        format!("{:?}", configuration.upstreams[&model::UpstreamId::new(id)].endpoints.ready)
    };
    assert_eq!(upstream(&configuration, "one.test", "/").as_deref(), Some("a-b-c-80"));
    assert_eq!(
        (addresses("one.test").as_str(), addresses("two.test").as_str()),
        ("[10.0.0.1:8000]", "[10.0.0.2:8000]")
    );
}

#[test]
fn one_use_of_regex_makes_the_whole_host_match_by_regular_expressions() {
    let mut snapshot = cluster();
    let mut regex = simple("demo", "regex", "shop.test", "/a.*", "s");
    annotate(&mut regex, "use-regex", "true");
    put_ingress(&mut snapshot, regex);
    put_ingress(&mut snapshot, simple("demo", "plain", "shop.test", "/b(", "s"));
    let found = translate(&snapshot, &Options::default());
    assert!(found.configuration.servers[&ServerName::new("shop.test")].regex);
    assert!(
        location(&found.configuration, "shop.test", "/a.*", PathKind::Prefix)
            .expect("served")
            .whole
    );
    assert!(location(&found.configuration, "shop.test", "/b(", PathKind::Prefix).is_none());
    assert!(
        found.problems.to_string().contains("path /b( of host shop.test is left out"),
        "{}",
        found.problems
    );
}

#[test]
fn the_implicit_root_has_the_policy_of_the_ingress_that_created_the_host() {
    let mut snapshot = cluster();
    let mut first = simple("demo", "z", "shop.test", "/a", "s");
    annotate(&mut first, "force-ssl-redirect", "true");
    annotate(&mut first, "backend-protocol", "GRPC");
    put_ingress(&mut snapshot, first);
    put_ingress(&mut snapshot, simple("demo", "a", "shop.test", "/b", "s"));
    let configuration = translate(&snapshot, &Options::default()).configuration;
    let root =
        location(&configuration, "shop.test", "/", PathKind::Prefix).expect("there is always one");
    assert!(root.policy.tls_redirect.always);
    assert_eq!(root.policy.protocol, Protocol::Http, "the default backend speaks HTTP");
    assert_eq!(root.backend, model::Backend::NotFound);
}

#[test]
fn the_catch_all_takes_the_root_and_a_rule_without_host_its_paths() {
    let mut snapshot = cluster();
    let mut catch_all = ingress("demo", "catch-all");
    catch_all.default_backend = Some(Box::new(backend("all", Some(PortRef::Number(80)))));
    annotate(&mut catch_all, "force-ssl-redirect", "true");
    annotate(&mut catch_all, "rewrite-target", "/x");
    put_ingress(&mut snapshot, catch_all);
    let mut hostless = ingress("demo", "hostless");
    let to = || backend("s", Some(PortRef::Number(80)));
    let paths = vec![path("/", PathType::Prefix, to()), path("/p", PathType::Exact, to())];
    hostless.rules = vec![rule(None, Some(paths))];
    put_ingress(&mut snapshot, hostless);
    let configuration = translate(&snapshot, &Options::default()).configuration;
    assert_eq!(upstream(&configuration, "_", "/").as_deref(), Some("demo-all-80"));
    assert!(location(&configuration, "_", "/p", PathKind::Exact).is_some());
    let root = location(&configuration, "_", "/", PathKind::Prefix).expect("there is always one");
    assert!(!root.policy.tls_redirect.always && root.policy.rewrite.is_none());
    assert!(!configuration.servers[&ServerName::catch_all()].regex);

    let none = translate(&snapshot, &Options { disable_catch_all: true, ..Options::default() })
        .configuration;
    assert_eq!(upstream(&none, "_", "/").as_deref(), Some("demo-s-80"));
}

#[test]
fn an_authority_of_clients_that_is_not_there_closes_the_whole_host_and_no_other() {
    let mut snapshot = cluster();
    let mut guarded = simple("demo", "guarded", "shop.test", "/a", "s");
    annotate(&mut guarded, "auth-tls-secret", "demo/ca");
    put_ingress(&mut snapshot, guarded);
    put_ingress(&mut snapshot, simple("demo", "other", "shop.test", "/b", "s"));
    put_ingress(&mut snapshot, simple("demo", "else", "else.test", "/b", "s"));
    let configuration = translate(&snapshot, &Options::default()).configuration;
    let asked = |host| configuration.servers[&ServerName::new(host)].client_certificate.clone();
    assert!(matches!(asked("shop.test"), Some(ClientCertificate::Closed(_))));
    assert_eq!(asked("else.test"), None);
}

#[test]
fn guards_that_cannot_be_read_deny_and_values_that_switch_them_off_do_not() {
    let cases = [
        ("auth-type", "basic", true),
        ("auth-type", "", false),
        ("auth-url", "nonsense", true),
        ("auth-url", "http://localhost/x", true),
        ("allowlist-source-range", "", true),
        ("whitelist-source-range", "10.0.0.0/33", true),
        ("limit-rps", "0", false),
        ("limit-connections", "many", true),
        ("auth-tls-secret", "demo/none", false),
        ("enable-modsecurity", "false", false),
        ("enable-modsecurity", "true", true),
        ("auth-realm", "x", false),
    ];
    for (name, value, denied) in cases {
        let mut snapshot = cluster();
        let mut guarded = simple("demo", "guarded", "shop.test", "/a", "s");
        annotate(&mut guarded, name, value);
        put_ingress(&mut snapshot, guarded);
        let configuration = translate(&snapshot, &Options::default()).configuration;
        assert_eq!(is_denied(&configuration, "shop.test", "/a"), denied, "{name}: {value}");
    }
}

#[test]
fn global_authentication_that_cannot_be_read_denies_all_but_the_exempt() {
    let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
    let mut snapshot = cluster();
    put_config_map(
        &mut snapshot,
        config_map("demo", "settings", &[("global-auth-url", "no url at all")]),
    );
    let mut exempt = simple("demo", "exempt", "exempt.test", "/", "s");
    annotate(&mut exempt, "enable-global-auth", "false");
    put_ingress(&mut snapshot, exempt);
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/", "s"));
    let configuration = translate(&snapshot, &options).configuration;
    assert!(
        is_denied(&configuration, "shop.test", "/")
            && !is_denied(&configuration, "exempt.test", "/")
    );
}

#[test]
fn more_names_of_headers_than_a_guard_may_have_close_the_paths_that_it_guards() {
    let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
    let names = |count: usize| (0..count).map(|at| format!("x-{at}")).collect::<Vec<_>>().join(",");
    for (own, of_all, denied) in
        [(64, 64, [false, false]), (65, 64, [true, false]), (64, 65, [false, true])]
    {
        let mut snapshot = cluster();
        let of_all = names(of_all);
        let settings = [
            ("global-auth-url", "http://auth.example/"),
            ("global-auth-response-headers", of_all.as_str()),
        ];
        put_config_map(&mut snapshot, config_map("demo", "settings", &settings));
        let mut guarded = simple("demo", "own", "own.test", "/", "s");
        annotate(&mut guarded, "auth-url", "http://auth.example/");
        annotate(&mut guarded, "auth-response-headers", &names(own));
        put_ingress(&mut snapshot, guarded);
        put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/", "s"));
        let found = translate(&snapshot, &options);
        let is_denied = |host| is_denied(&found.configuration, host, "/");
        assert_eq!([is_denied("own.test"), is_denied("shop.test")], denied);
        let told = found.problems.to_string().contains("has 65 names, 64 is the most: list fewer");
        assert_eq!(told, denied != [false, false], "{}", found.problems);
    }
}

#[test]
fn of_more_than_a_thousand_origins_the_first_thousand_are_allowed_and_that_is_told() {
    for (count, told) in [(1000, false), (1001, true)] {
        let mut snapshot = cluster();
        let mut shop = simple("demo", "shop", "shop.test", "/", "s");
        let origins: Vec<_> = (0..count).map(|at| format!("https://a{at}.test")).collect();
        annotate(&mut shop, "enable-cors", "true");
        annotate(&mut shop, "cors-allow-origin", &origins.join(","));
        put_ingress(&mut snapshot, shop);
        let found = translate(&snapshot, &Options::default());
        let location = location(&found.configuration, "shop.test", "/", PathKind::Prefix);
        let cors = location.and_then(|location| location.policy.cors.clone()).expect("it is on");
        let Origins::Listed(listed) = &cors.origins else { panic!("everybody is allowed") };
        assert_eq!(listed.len(), 1000);
        let problems = found.problems.to_string();
        assert_eq!(problems.contains("has 1001 origins"), told, "{problems}");
    }
}

#[test]
fn classes_say_which_ingresses_are_ours() {
    let by_field = |class: Option<&str>| {
        let mut made = simple("demo", "shop", "shop.test", "/", "s");
        made.class = class.map(str::to_owned);
        made
    };
    let mut annotated = by_field(None);
    annotated.meta.annotations.insert("kubernetes.io/ingress.class".to_owned(), "nginx".to_owned());
    let mut both = by_field(Some("other"));
    both.meta.annotations = annotated.meta.annotations.clone();
    let mut empty = by_field(None);
    empty.meta.annotations.insert("kubernetes.io/ingress.class".to_owned(), String::new());
    let usual = Options::default();
    let by_name = Options {
        ingress_class: "foreign".to_owned(),
        ingress_class_by_name: true,
        ..Options::default()
    };
    let without = Options { watch_ingress_without_class: true, ..Options::default() };
    let mut classes = cluster();
    put_class(&mut classes, class("foreign", "example.com/other"));
    let mut hidden = classes.clone();
    hidden.classes = None;
    let cases = [
        (by_field(Some("nginx")), &usual, &classes, true),
        (by_field(Some("foreign")), &usual, &classes, false),
        (by_field(Some("foreign")), &by_name, &classes, true),
        (by_field(Some("missing")), &without, &classes, false),
        (by_field(None), &usual, &classes, false),
        (by_field(None), &without, &classes, true),
        (annotated.clone(), &usual, &classes, true),
        (annotated, &usual, &hidden, true),
        (empty, &without, &classes, false),
        (both.clone(), &usual, &classes, false),
        (both, &usual, &hidden, true),
        (by_field(Some("nginx")), &without, &hidden, false),
    ];
    for (index, (ingress, options, snapshot, ours)) in cases.into_iter().enumerate() {
        let mut snapshot = snapshot.clone();
        put_ingress(&mut snapshot, ingress);
        let servers = translate(&snapshot, options).configuration.servers.len();
        assert_eq!(servers == 2, ours, "case {index}");
    }
}

#[test]
fn references_are_what_a_change_of_would_matter() {
    let mut shop = simple("demo", "shop", "shop.test", "/", "s");
    shop.default_backend = Some(Box::new(backend("fallback", None)));
    shop.tls = vec![tls(&["shop.test"], Some("cert")), tls(&[], None)];
    annotate(&mut shop, "proxy-ssl-secret", "other/client");
    annotate(&mut shop, "auth-secret", "users");
    annotate(&mut shop, "custom-headers", "demo/headers");
    let found = references(&shop, &Options::default());
    let expected = [
        Reference::Secret(key("demo", "cert")),
        Reference::Secret(key("demo", "users")),
        Reference::Secret(key("other", "client")),
        Reference::ConfigMap(key("demo", "headers")),
        Reference::Service(key("demo", "fallback")),
        Reference::Service(key("demo", "s")),
    ];
    assert_eq!(found, expected);
}

/// An Ingress with `use-regex` and these paths.
fn patterns(name: &str, host: &str, paths: impl Iterator<Item = String>) -> Ingress {
    let to = || backend("s", Some(PortRef::Number(80)));
    let kind = PathType::ImplementationSpecific;
    let paths = paths.map(|text| path(&text, kind, to())).collect();
    let mut ingress = ingress("demo", name);
    ingress.rules = vec![rule(Some(host), Some(paths))];
    annotate(&mut ingress, "use-regex", "true");
    ingress
}

/// The bytes of all compiled paths of a host.
fn compiled(configuration: &model::Configuration, host: &str) -> usize {
    let server = &configuration.servers[&ServerName::new(host)];
    let rewrites = server.locations.iter().filter_map(|location| location.policy.rewrite.as_ref());
    let rewrites = rewrites.map(|rewrite| rewrite.pattern.size()).sum::<usize>();
    server.patterns.iter().map(model::Pattern::size).sum::<usize>() + rewrites
}

#[test]
fn many_paths_with_classes_take_little_memory() {
    let mut snapshot = cluster();
    let paths = (0..1000).map(|number| format!(r"/x{number}@\w{{20}}"));
    let mut ingress = patterns("many", "shop.test", paths);
    annotate(&mut ingress, "rewrite-target", "/$1");
    put_ingress(&mut snapshot, ingress);
    let found = translate(&snapshot, &Options::default());
    let problems = found.problems.to_string();
    assert!(!problems.contains("closed") && !problems.contains("left out"), "{problems}");
    let bytes = compiled(&found.configuration, "shop.test");
    assert!(bytes < 16 << 20, "{bytes}");
}

#[test]
fn what_a_guarded_expression_that_cannot_be_asked_would_have_had_is_nobody_else_s() {
    let large = format!(
        "/({})(/|$)(.*)",
        (0..400).map(|number| format!("admin{number}[a-z]{{20}}")).collect::<Vec<_>>().join("|")
    );
    for (guarded, closed) in [
        (large, vec!["/", "/xyz"]),
        // What begins alike is closed at `/x`, so nothing of it comes to `/`.
        (r"/x\p{Unknown}+[a-z]{20}".to_owned(), vec!["/xyz", "/x"]),
        (r"/x\w{700}\w{700}\w{700}".to_owned(), vec!["/xyz", "/x"]),
        (r"/other\p{Unknown}+[a-z]".to_owned(), vec!["/other"]),
    ] {
        for is_guarded in [true, false] {
            let mut snapshot = cluster();
            let mut one = patterns("guarded", "shop.test", std::iter::once(guarded.clone()));
            if is_guarded {
                annotate(&mut one, "whitelist-source-range", "10.0.0.0/8");
            }
            put_ingress(&mut snapshot, one);
            put_ingress(&mut snapshot, simple("demo", "root", "shop.test", "/", "s"));
            put_ingress(&mut snapshot, simple("demo", "plain", "shop.test", "/xyz", "s"));
            let mut alike = simple("demo", "alike", "shop.test", "/xy", "s");
            annotate(&mut alike, "whitelist-source-range", "10.0.0.0/8");
            put_ingress(&mut snapshot, alike);
            put_ingress(
                &mut snapshot,
                patterns("re", "shop.test", std::iter::once("/re.*".to_owned())),
            );
            let found = translate(&snapshot, &Options::default());
            let is_closed = |path: &&str| {
                let at = location(&found.configuration, "shop.test", path, PathKind::Prefix);
                at.is_some_and(|at| matches!(at.backend, model::Backend::Denied(_)))
            };
            let all: Vec<&str> = ["/", "/xyz", "/xy", "/x", "/other", "/re.*"]
                .into_iter()
                .filter(is_closed)
                .collect();
            let of_large = guarded.starts_with("/(");
            let wanted = match is_guarded {
                true if of_large => [&closed[..], &["/re.*"]].concat(),
                true => closed.clone(),
                false if guarded.contains("700") => vec!["/x"],
                false => Vec::new(),
            };
            assert_eq!(all, wanted, "{guarded} {is_guarded}: {}", found.problems);
        }
    }
}

#[test]
fn paths_that_would_take_too_much_memory_are_closed_and_nobody_else_is_touched() {
    let mut snapshot = cluster();
    let hungry = (0..600).map(|number| format!(r"/x\w{{500}}{number:04}$"));
    put_ingress(&mut snapshot, patterns("hungry", "shop.test", hungry));
    let all = (0..100).map(|number| format!(r"/(a|b)\w{{500}}{number:04}$"));
    put_ingress(&mut snapshot, patterns("more", "shop.test", all.chain(["/more/.*".to_owned()])));
    put_ingress(&mut snapshot, simple("demo", "other", "shop.test", "/other/(.*)", "s"));
    put_ingress(&mut snapshot, simple("demo", "z", "other.test", "/", "s"));
    let found = translate(&snapshot, &Options::default());
    let bytes = compiled(&found.configuration, "shop.test");
    assert!(bytes < 16 << 20, "{bytes}");
    let at = |host, path| location(&found.configuration, host, path, PathKind::Prefix);
    let is_closed = |path| {
        at("shop.test", path)
            .is_some_and(|location| matches!(location.backend, model::Backend::Denied(_)))
    };
    assert!(is_closed("/x") && !is_closed("/") && !is_closed("/other/(.*)"));
    assert!(at("shop.test", r"/x\w{500}0000$").is_some() && at("other.test", "/").is_some());
    assert!(at("shop.test", r"/x\w{500}0599$").is_none());
    let problems = found.problems.to_string();
    let told = problems.matches("and others after it, are closed").count();
    assert!((2..=4).contains(&told), "{problems}");
    assert!(problems.contains("demo/hungry") && problems.contains("spec.rules"), "{problems}");
}

#[test]
fn what_neighbours_fill_with_patterns_is_not_what_the_owner_of_a_host_needs() {
    let mut snapshot = cluster();
    let put = |snapshot: &mut Snapshot, namespace: &str, created: i64, mut ingress: Ingress| {
        ingress.meta.key = ObjectKey::new(namespace, &*ingress.meta.key.name);
        ingress.meta.created = created;
        put_ingress(snapshot, ingress);
    };
    let one = |path: &str| std::iter::once(path.to_owned());
    put(&mut snapshot, "owner", 1, patterns("first", "shop.test", one("/app(/|$)(.*)")));
    put(&mut snapshot, "owner", 9, patterns("last", "shop.test", one("/shop(/|$)(.*)")));
    for number in 0..4 {
        let many = (0..1900).map(|path| format!("/e{number}z{path}(/|$)(.*)"));
        let many = patterns(&format!("many{number}"), "shop.test", many);
        put(&mut snapshot, "neighbour", 5, many);
    }
    let found = translate(&snapshot, &Options::default());
    let problems = found.problems.to_string();
    assert!(problems.contains("neighbour/many3"), "its share is full: {problems}");
    for path in ["/app(/|$)(.*)", "/shop(/|$)(.*)"] {
        let location = location(&found.configuration, "shop.test", path, PathKind::Prefix)
            .expect("it is there");
        let is_closed = matches!(location.backend, model::Backend::Denied(_));
        assert!(!is_closed, "{path}: {problems}");
    }
}

#[test]
fn names_that_are_patterns_are_bounded_and_a_review_compiles_none() {
    let named = |text: &str| {
        let mut named = simple("demo", "named", "shop.test", "/", "s");
        annotate(&mut named, "server-alias", text);
        named
    };
    let patterns = |count: usize, pattern: &str| -> String {
        (0..count).map(|number| format!("~{pattern}{number}")).collect::<Vec<_>>().join(",")
    };
    let outcome = |text: &str| {
        let (mut snapshot, ingress) = (cluster(), named(text));
        let nothing = translate(&snapshot, &Options::default()).configuration;
        let review = translate::review(&ingress, &snapshot, &nothing, &Options::default());
        put_ingress(&mut snapshot, ingress);
        let found = translate(&snapshot, &Options::default());
        let server = &found.configuration.servers[&ServerName::new("shop.test")];
        (review.refusal, server.aliases.len(), found.problems.to_string())
    };
    let (refusal, aliases, problems) = outcome(&patterns(100, r"\w{20}"));
    assert_eq!((refusal, aliases), (None, 100));
    assert!(!problems.contains("server-alias"), "{problems}");
    let refused = [patterns(900, r"\w{20}"), "x".repeat(3 << 20), "a.test,".repeat(2000)];
    for text in refused {
        let (refusal, aliases, problems) = outcome(&text);
        assert!(
            refusal.is_some_and(|refusal| refusal.contains("divide it among several Ingresses"))
        );
        assert_eq!(aliases, 0);
        assert!(problems.contains("server-alias"), "{problems}");
    }
    for (pattern, reason) in [
        (r"\w{20000}", "more than 64 KiB"),
        (r"[ab]*a[ab]{100}", "every unknown name is compared with"),
    ] {
        let (refusal, aliases, problems) = outcome(&patterns(1, pattern));
        assert_eq!((refusal, aliases), (None, 0), "nothing is compiled for a review");
        assert!(problems.contains(reason) && problems.contains("answer 503"), "{problems}");
    }
}
