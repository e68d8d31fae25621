//! What routes are told has a bound, whatever they ask for, and is shared by all of their parents.

use crate::builders::*;
use objects::Kind;
use translate::gateway::{Condition, Sentence};
use translate::{Options, translate};

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: web}
spec: {gatewayClassName: fairway, listeners: [{name: a, protocol: HTTP, port: 80}, {name: b, protocol: HTTP, port: 81}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: long}
spec:
  parentRefs: [{name: web, sectionName: a}, {name: web, sectionName: b}]
  rules:
";

/// What the two parents of a route tell whose rules ask for these expressions, one each.
fn told(expressions: &[&str], more: &str) -> Vec<Vec<Condition>> {
    let rules = expressions.iter().map(|expression| {
        format!(
            "  - matches: [{{headers: [{{type: RegularExpression, name: x, value: \"{expression}\"}}]}}]\n"
        )
    });
    let text = format!("{GATEWAY}{}{more}", rules.collect::<String>());
    let found = translate(&of_gateways(&text), &Options::default());
    let status = &found.statuses.routes[&(Kind::HttpRoute, key("shop", "long"))];
    status.parents.iter().map(|(_, conditions)| conditions.clone()).collect()
}

fn of<'c>(conditions: &'c [Condition], kind: &str) -> &'c Condition {
    conditions.iter().find(|one| one.kind == kind).expect("it is told")
}

#[test]
fn what_expressions_are_refused_for_is_a_line_of_a_thousand_bytes() {
    let odd = format!("({}", "\\u0001".repeat(4095));
    let good = "  - {matches: [{path: {value: /good}}]}\n";
    for (more, kind) in [("", "Accepted"), (good, "PartiallyInvalid")] {
        let told = told(&[odd.as_str(); 16], more);
        let [one, other] = [0, 1].map(|parent| &of(&told[parent], kind).message);
        let expected = "spec.rules[0].matches: \"(\\u{1}\\u{1}";
        assert!(one.contains(expected), "{one}");
        assert!(one.len() <= Sentence::MOST && one.ends_with('…'), "{}: {one}", one.len());
        assert!(std::ptr::eq(&raw const **one, &raw const **other), "both share it");
    }
    // What is short is told whole.
    let told = told(&["("], "");
    let one = &of(&told[0], "Accepted").message;
    assert!(one.contains("\"(\" is no regular expression: ") && !one.contains('…'), "{one}");
}

#[test]
fn a_name_of_any_length_is_cut_where_it_is_too_long() {
    let backend = format!("  - {{backendRefs: [{{name: {}, port: 80}}]}}\n", "ä".repeat(5000));
    let told = told(&[], &backend);
    let one = &of(&told[0], "ResolvedRefs").message;
    assert!(one.len() <= Sentence::MOST && one.ends_with("ä…"), "{}: {one}", one.len());
}
