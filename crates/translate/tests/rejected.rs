//! Ingresses that are not taken: their last valid version stays, and without one nothing else answers for them.

mod objects;

use kubernetes::objects::PortRef;
use objects::*;
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
    assert!(!configuration.servers[&model::ServerName::new("shop.test")].regex);
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
    let denied = |snapshot: &kubernetes::Snapshot, options: &Options| {
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
    bad.default_backend = Some(backend("s", Some(PortRef::Number(80))));
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
