//! Ingresses that are not taken: their last valid version stays, and without one nothing else answers for them.

use crate::builders::*;
use objects::PortRef;
use translate::{Options, Translator, translate};

/// A value that takes the Ingress out.
const BAD: (&str, &str) = ("client-body-buffer-size", "much");

#[test]
fn an_update_that_is_not_taken_leaves_the_last_valid_version_served() {
    let mut snapshot = cluster();
    let mut translator = Translator::new(Options::default());
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/old", "s"));
    translator.update(&snapshot);

    let mut bad = simple("demo", "shop", "shop.test", "/new", "s");
    annotate(&mut bad, BAD.0, BAD.1);
    put_ingress(&mut snapshot, bad);
    let kept = translator.update(&snapshot);
    assert_eq!(upstream(&kept.configuration, "shop.test", "/old").as_deref(), Some("demo-s-80"));
    assert_eq!(upstream(&kept.configuration, "shop.test", "/new"), None);
    assert!(kept.changes.is_empty());
    assert!(
        kept.problems.to_string().contains("the last valid one stays served"),
        "{}",
        kept.problems
    );

    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/new", "s"));
    let mended = translator.update(&snapshot);
    assert_eq!(upstream(&mended.configuration, "shop.test", "/new").as_deref(), Some("demo-s-80"));
    assert!(!mended.problems.to_string().contains("last valid"), "{}", mended.problems);
}

#[test]
fn the_last_valid_version_follows_the_config_map() {
    let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
    let mut snapshot = cluster();
    let mut translator = Translator::new(options);
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/", "s"));
    translator.update(&snapshot);
    let mut bad = simple("demo", "shop", "shop.test", "/", "s");
    annotate(&mut bad, BAD.0, BAD.1);
    put_ingress(&mut snapshot, bad);
    translator.update(&snapshot);
    put_config_map(&mut snapshot, config_map("demo", "settings", &[("proxy-read-timeout", "7")]));
    let now = translator.update(&snapshot).configuration;
    let root = location(&now, "shop.test", "/", model::PathKind::Prefix).expect("it stays served");
    assert_eq!(root.policy.timeouts.read.as_secs(), 7);
}

#[test]
fn an_ingress_that_was_made_anew_has_no_last_valid_version() {
    let mut snapshot = cluster();
    let mut translator = Translator::new(Options::default());
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/a", "s"));
    translator.update(&snapshot);
    let mut bad = simple("demo", "shop", "shop.test", "/a", "s");
    bad.meta.uid = "another".into();
    annotate(&mut bad, BAD.0, BAD.1);
    put_ingress(&mut snapshot, bad);
    assert!(is_denied(&translator.update(&snapshot).configuration, "shop.test", "/a"));
}

#[test]
fn without_a_valid_version_its_own_paths_answer_503_and_nothing_else_does() {
    let mut snapshot = cluster();
    let mut bad = simple("demo", "bad", "shop.test", "/a", "s");
    annotate(&mut bad, BAD.0, BAD.1);
    annotate(&mut bad, "use-regex", "true");
    put_ingress(&mut snapshot, bad);
    put_ingress(&mut snapshot, simple("demo", "good", "shop.test", "/", "s"));
    let configuration = translate(&snapshot, &Options::default()).configuration;
    assert!(is_denied(&configuration, "shop.test", "/a"));
    assert_eq!(upstream(&configuration, "shop.test", "/").as_deref(), Some("demo-s-80"));
    // How paths match does not hang on the mistake.
    assert!(configuration.servers[&model::ServerName::new("shop.test")].regex);
}

#[test]
fn what_is_not_taken_leaves_its_path_to_the_next() {
    let mut snapshot = cluster();
    let mut bad = simple("demo", "z", "shop.test", "/", "s");
    annotate(&mut bad, BAD.0, BAD.1);
    put_ingress(&mut snapshot, bad);
    put_ingress(&mut snapshot, simple("demo", "a", "shop.test", "/", "next"));
    let configuration = translate(&snapshot, &Options::default()).configuration;
    assert_eq!(upstream(&configuration, "shop.test", "/").as_deref(), Some("demo-next-80"));
}

#[test]
fn a_suspicious_ingress_is_left_out_as_a_whole() {
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, simple("demo", "bad", "shop.test", "/etc/nginx", "s"));
    let options = Options::default();
    let found = translate(&snapshot, &options);
    assert_eq!(found.configuration.servers.len(), 1);
    assert!(found.problems.to_string().contains("--deep-inspect"));
    let trusting = translate(&snapshot, &Options { deep_inspect: false, ..options });
    assert_eq!(trusting.configuration.servers.len(), 2);
}

#[test]
fn risk_words_and_validation_are_matters_of_the_config_map_and_the_command_line() {
    let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
    let mut snapshot = cluster();
    let mut shop = simple("demo", "shop", "shop.test", "/", "s");
    annotate(&mut shop, "rewrite-target", "/x");
    put_ingress(&mut snapshot, shop);
    let denied = |snapshot: &objects::Snapshot, options: &Options| {
        is_denied(&translate(snapshot, options).configuration, "shop.test", "/")
    };
    assert!(!denied(&snapshot, &options));
    put_config_map(
        &mut snapshot,
        config_map("demo", "settings", &[("annotations-risk-level", "low")]),
    );
    assert!(denied(&snapshot, &options));
    put_config_map(
        &mut snapshot,
        config_map("demo", "settings", &[("annotation-value-word-blocklist", "/x,")]),
    );
    assert!(denied(&snapshot, &options));

    let mut snapshot = cluster();
    let mut bad = simple("demo", "shop", "shop.test", "/", "s");
    annotate(&mut bad, BAD.0, BAD.1);
    put_ingress(&mut snapshot, bad);
    assert!(denied(&snapshot, &options));
    assert!(!denied(&snapshot, &Options { validate_annotations: false, ..options }));
}

#[test]
fn a_catch_all_that_is_not_taken_leaves_the_root_to_who_is() {
    let mut snapshot = cluster();
    let mut bad = ingress("demo", "bad");
    bad.default_backend = Some(Box::new(backend("s", Some(PortRef::Number(80)))));
    annotate(&mut bad, BAD.0, BAD.1);
    put_ingress(&mut snapshot, bad);
    let options = Options::default();
    assert!(is_denied(&translate(&snapshot, &options).configuration, "_", "/"));
    let mut hostless = simple("demo", "good", "x.test", "/", "s");
    hostless.rules[0].host = None;
    put_ingress(&mut snapshot, hostless);
    let configuration = translate(&snapshot, &options).configuration;
    assert_eq!(upstream(&configuration, "_", "/").as_deref(), Some("demo-s-80"));
}

#[test]
fn a_canary_creates_nothing_even_if_it_is_not_taken() {
    let mut snapshot = cluster();
    let mut canary = simple("demo", "canary", "shop.test", "/", "s");
    annotate(&mut canary, "canary", "true");
    put_ingress(&mut snapshot, canary.clone());
    assert_eq!(translate(&snapshot, &Options::default()).configuration.servers.len(), 1);
    annotate(&mut canary, BAD.0, BAD.1);
    put_ingress(&mut snapshot, canary);
    assert_eq!(translate(&snapshot, &Options::default()).configuration.servers.len(), 1);
}

#[test]
fn the_last_valid_version_survives_a_config_map_that_forbids_it_for_a_while() {
    let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
    let mut snapshot = cluster();
    let mut translator = Translator::new(options);
    let mut shop = simple("demo", "shop", "shop.test", "/", "s");
    annotate(&mut shop, "rewrite-target", "/x");
    put_ingress(&mut snapshot, shop.clone());
    translator.update(&snapshot);
    annotate(&mut shop, BAD.0, BAD.1);
    put_ingress(&mut snapshot, shop);
    translator.update(&snapshot);
    put_config_map(
        &mut snapshot,
        config_map("demo", "settings", &[("annotations-risk-level", "Low")]),
    );
    assert!(is_denied(&translator.update(&snapshot).configuration, "shop.test", "/"));
    put_config_map(&mut snapshot, config_map("demo", "settings", &[]));
    let back = translator.update(&snapshot).configuration;
    assert_eq!(upstream(&back, "shop.test", "/").as_deref(), Some("demo-s-80"));
}

/// Options with a ConfigMap that allows snippets, and what an Ingress with these annotations becomes with them.
fn with_snippets(
    annotations: &[(&str, &str)],
    validate_annotations: bool,
) -> translate::Translation {
    let config_map = Some(key("demo", "settings"));
    let options = Options { config_map, validate_annotations, ..Options::default() };
    let mut snapshot = cluster();
    let allowed = [("allow-snippet-annotations", "true"), ("annotations-risk-level", "Critical")];
    put_config_map(&mut snapshot, crate::builders::config_map("demo", "settings", &allowed));
    put_service(&mut snapshot, service("demo", "s", 80));
    let mut shop = simple("demo", "shop", "shop.test", "/a", "s");
    annotations.iter().for_each(|(name, value)| annotate(&mut shop, name, value));
    put_ingress(&mut snapshot, shop);
    translate(&snapshot, &options)
}

#[test]
fn what_does_no_harm_denies_nobody() {
    let auth = ("auth-url", "http://auth.demo.svc/check");
    let harmless: [&[(&str, &str)]; 19] = [
        &[auth, ("auth-cache-key", "$remote_user"), ("auth-cache-duration", "200 5m, any 1m")],
        &[("auth-cache-duration", "nonsense")],
        &[("permanent-redirect-code", "200")],
        &[("temporal-redirect-code", "moved")],
        &[("temporal-redirect", "https://a.test"), ("permanent-redirect-code", "moved")],
        &[("client-body-buffer-size", "1b")],
        &[("client-body-buffer-size", "1g")],
        &[("client-body-buffer-size", "0")],
        &[("proxy-body-size", "8b")],
        &[("configuration-snippet", "")],
        &[("configuration-snippet", "  \n")],
        &[("configuration-snippet", "# nothing\n\n  # to see")],
        &[("server-snippet", "# nothing")],
        &[("auth-snippet", "proxy_cache a;")],
        &[auth, ("auth-snippet", "proxy_set_header A b;")],
        &[("configuration-snippet", "# a guard\ndeny all;")],
        &[("modsecurity-snippet", "SecRuleEngine On"), ("enable-modsecurity", "false")],
        &[("auth-secret-type", "nonsense"), ("auth-realm", "\"")],
        &[
            ("auth-tls-match-cn", "alice"),
            ("auth-tls-error-page", "?"),
            ("auth-tls-pass-certificate-to-upstream", "x"),
        ],
    ];
    for annotations in harmless {
        let found = with_snippets(annotations, true);
        let is_served = upstream(&found.configuration, "shop.test", "/a").is_some();
        assert!(is_served, "{annotations:?}: {}", found.problems);
    }
    let guards: [&[(&str, &str)]; 5] = [
        &[auth, ("auth-cache-duration", "5 whatever")],
        &[auth, ("auth-snippet", "proxy_cache a;")],
        &[("configuration-snippet", "# a guard\ndeny everybody;")],
        &[("auth-type", "basic"), ("auth-secret-type", "nonsense")],
        &[("client-body-buffer-size", "much")],
    ];
    for annotations in guards {
        let found = with_snippets(annotations, true);
        assert!(is_denied(&found.configuration, "shop.test", "/a"), "{annotations:?}");
    }
}

#[test]
fn without_validation_values_are_taken_as_they_are() {
    let value = |name: &str, text: &str, validate| {
        let found = with_snippets(&[(name, text)], validate);
        let location = location(&found.configuration, "shop.test", "/a", model::PathKind::Prefix);
        let policy = location.expect("it is served").policy.clone();
        (policy.rewrite.clone(), policy.redirect.clone(), policy.upstream_host.clone())
    };
    let (rewrite, ..) = value("rewrite-target", "/b?from=$uri", false);
    assert_eq!(rewrite.expect("a rewrite").target.to_string(), "/b?from=${uri}");
    assert_eq!(value("rewrite-target", "/b?from=$uri", true).0, None);
    let (_, redirect, _) = value("permanent-redirect", "https://a.test/#top", false);
    assert_eq!(redirect.expect("a redirect").target.to_string(), "https://a.test/#top");
    assert_eq!(value("permanent-redirect", "https://a.test/\u{7f}", false).1, None);
    let (.., host) = value("upstream-vhost", "a b", false);
    assert_eq!(host.expect("a host").to_string(), "a b");
}

#[test]
fn errors_of_the_config_map_stay_where_nobody_answers_in_their_place() {
    let mut snapshot = cluster();
    let data = [("custom-http-errors", "404,503")];
    put_config_map(&mut snapshot, config_map("demo", "settings", &data));
    put_ingress(&mut snapshot, simple("demo", "shop", "shop.test", "/a", "s"));
    let errors = |default_backend_service| {
        let config_map = Some(key("demo", "settings"));
        let options = Options { config_map, default_backend_service, ..Options::default() };
        let found = translate(&snapshot, &options);
        let location = location(&found.configuration, "shop.test", "/a", model::PathKind::Prefix);
        let errors = location.expect("it is served").policy.errors.clone();
        (errors, found.problems.to_string())
    };
    let (none, problems) = errors(None);
    assert!(none.is_none() && problems.contains("custom-http-errors: has no effect"), "{problems}");
    let (some, problems) = errors(Some(key("demo", "errors")));
    assert!(some.is_some() && !problems.contains("has no effect"), "{problems}");
}

#[test]
fn an_ingress_of_another_namespace_than_the_watched_one_is_not_served() {
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, simple("demo", "a", "a.test", "/", "s"));
    put_ingress(&mut snapshot, simple("else", "b", "b.test", "/", "s"));
    let options = Options { watch_namespace: Some("demo".to_owned()), ..Options::default() };
    let servers = translate(&snapshot, &options).configuration.servers;
    let names: Vec<String> = servers.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["_", "a.test"]);
}
