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
