//! Whatever text stands in an annotation, in the ConfigMap, in a host or a path: a meaning, never a panic.

use crate::builders::{annotate, cluster, config_map, key, put_config_map, put_ingress, simple};
use proptest::prelude::*;
use proptest::sample::select;
use translate::{Options, annotation_rows, config_map_rows, translate};

/// Texts that are nearly right.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,24}",
        "[0-9]{1,22}[a-zA-Zµ]{0,3}",
        "[$({a-z*+?)}\\[\\]|^\\\\/0-9]{0,16}",
        "(TLSv1\\.[0-9] ?|on|off|true|[a-z]+_[0-9]+ ?|, ?|:|~\\*?){0,4}",
        "[a-z]{1,5}/[a-z/]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_text_has_a_meaning(
        annotations in proptest::collection::vec((select(annotation_rows()), text()), 0..6),
        settings in proptest::collection::vec((select(config_map_rows()), text()), 0..6),
        host in prop_oneof![Just("shop.test".to_owned()), text()],
        path in prop_oneof![text(), text().prop_map(|text| format!("/{text}"))],
    ) {
        let mut shop = simple("demo", "shop", &host, &path, "s");
        for (row, value) in &annotations {
            annotate(&mut shop, row.name, value);
        }
        let settings: Vec<(&str, &str)> = settings.iter().map(|(row, value)| (row.name, value.as_str())).collect();
        let mut snapshot = cluster();
        put_ingress(&mut snapshot, shop);
        put_config_map(&mut snapshot, config_map("demo", "settings", &settings));
        let options = Options { config_map: Some(key("demo", "settings")), ..Options::default() };
        let once = translate(&snapshot, &options);
        let again = translate(&snapshot, &options);
        prop_assert_eq!(once.configuration, again.configuration);
        prop_assert_eq!(once.problems, again.problems);
    }
}

#[test]
fn thousands_of_misspelt_annotations_are_told_of_and_few_are_compared() {
    let mut shop = simple("demo", "shop", "shop.test", "/", "s");
    for number in 0..5000 {
        annotate(&mut shop, &format!("proxy-body-siz{number}"), "1m");
    }
    let mut snapshot = cluster();
    put_ingress(&mut snapshot, shop);
    let problems = translate(&snapshot, &Options::default()).problems.to_string();
    assert_eq!(problems.matches("did you mean").count(), 8);
    assert!(problems.matches("unknown annotation").count() > 8);
}

#[test]
fn annotations_of_a_misspelt_prefix_are_told_of_and_those_of_others_are_not() {
    let told = |names: &[&str]| {
        let mut shop = simple("demo", "shop", "shop.test", "/", "s");
        shop.meta.annotations =
            names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let mut snapshot = cluster();
        put_ingress(&mut snapshot, shop);
        translate(&snapshot, &Options::default()).problems.to_string()
    };
    for (name, meant) in [
        ("nginx.ingress.kubernets.io/auth-url", "auth-url"),
        ("nginx.ingress.kubernetes.io./auth-type", "auth-type"),
        ("nginx.ingress.kuberentes.io/rewrite-target", "rewrite-target"),
        ("Nginx.Ingress.kubernetes.io/rewrite-targt", "rewrite-target"),
        ("ngnix.ingress.kubernetes.io/ssl-redirect", "ssl-redirect"),
        ("nginx.kubernetes.io/auth-url", "auth-url"),
        ("kubernetes.io/auth-url", "auth-url"),
        ("ingress.kubernetes.io/canary-weight", "canary-weight"),
        ("nginx.ingress.kubernetes.io.rewrite-target", "rewrite-target"),
        ("auth-url", "auth-url"),
    ] {
        let problems = told(&[name]);
        let wanted = format!("did you mean nginx.ingress.kubernetes.io/{meant}?");
        assert!(problems.starts_with("Warning: ") && problems.contains(name), "{name}: {problems}");
        assert!(problems.contains(&wanted), "{name}: {problems}");
    }
    let others = [
        "ingress.kubernetes.io/ssl-redirect",
        "ingress.kubernetes.io/force-ssl-redirect",
        "ingress.kubernetes.io/auth-url",
        "kubernetes.io/ingress.class",
        "kubernetes.io/tls-acme",
        "haproxy.org/rewrite-target",
        "traefik.ingress.kubernetes.io/auth-type",
        "nginx.org/proxy-read-timeout",
        "nginx2.ingress.kubernetes.io/auth-url",
        "cert-manager.io/cluster-issuer",
        "canary",
        "team-name",
    ];
    let problems = told(&others);
    assert!(!problems.contains("prefix"), "{problems}");
}

#[test]
fn where_another_prefix_is_chosen_the_usual_one_is_told_of_unless_both_are_there() {
    let told = |names: &[&str]| {
        let mut shop = simple("demo", "shop", "shop.test", "/", "s");
        shop.meta.annotations =
            names.iter().map(|name| ((*name).to_owned(), "/".to_owned())).collect();
        let mut snapshot = cluster();
        put_ingress(&mut snapshot, shop);
        let options =
            Options { annotations_prefix: "edge.example.com".to_owned(), ..Options::default() };
        translate(&snapshot, &options).problems.to_string()
    };
    let usual = "nginx.ingress.kubernetes.io/whitelist-source-range";
    let problems = told(&[usual]);
    assert!(problems.starts_with("Warning: ") && problems.contains(usual), "{problems}");
    assert!(problems.contains("write edge.example.com/whitelist-source-range, or"), "{problems}");
    for others in
        [[usual, "edge.example.com/app-root"], ["nginx.ingress.kubernetes.io/theirs", "b"]]
    {
        let problems = told(&others);
        assert!(!problems.contains("--annotations-prefix"), "{problems}");
    }
}
