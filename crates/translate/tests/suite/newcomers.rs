//! Objects of the Gateway API that look well and cannot work: each is told of the value that is wrong, and of a remedy
//! that helps.

use crate::builders::*;
use translate::{Options, Translator, translate};

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: web}
spec:
  gatewayClassName: fairway
  listeners:
  - {name: http, protocol: HTTP, port: 80}
  - {name: calls, protocol: HTTP, port: 80, hostname: calls.test, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}
  - {name: typo, protocol: HTTPs, port: 443}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: s}
spec: {ports: [{port: 80}]}
";

const BACKEND: &str = "{name: s, port: 80}";

/// All that is told of these objects beside a Gateway with its Service, but for what is told of the Gateway.
fn told(text: &str) -> String {
    let found = translate(&of_gateways(&format!("{GATEWAY}{text}")), &Options::default());
    let others = found.problems.iter().map(ToString::to_string);
    others.filter(|line| !line.starts_with("Gateway shop/web")).collect::<Vec<_>>().join("\n")
}

fn of_kind(kind: &str, namespace: &str, parent: &str) -> String {
    told(&route([kind, namespace, "r", "1"], parent, "", BACKEND))
}

#[test]
fn a_listener_of_another_protocol_and_one_for_other_namespaces_are_told_apart() {
    for (kind, parent, expected) in [
        ("TLSRoute", "{name: web, sectionName: http}", "of protocol TLS, and here it is \"HTTP\""),
        ("TCPRoute", "{name: web, sectionName: http}", "of protocol TCP, and here it is \"HTTP\""),
        ("UDPRoute", "{name: web}", "of protocol UDP, and here it is \"HTTP\" and \"HTTPs\""),
        ("HTTPRoute", "{name: web, sectionName: typo}", "HTTP or HTTPS, and here it is \"HTTPs\""),
        (
            "HTTPRoute",
            "{name: web, sectionName: calls}",
            "allowedRoutes.kinds of the listener has no HTTPRoute",
        ),
    ] {
        let told = of_kind(kind, "shop", parent);
        assert!(told.contains("NotAllowedByListeners: "), "{told}");
        assert!(told.contains(expected) && !told.contains("namespace;"), "{told}");
    }
    let elsewhere = of_kind("HTTPRoute", "news", "{name: web, namespace: shop}");
    assert!(elsewhere.contains("takes no HTTPRoutes of this namespace"), "{elsewhere}");
}

const ABROAD: &str = "---
apiVersion: v1
kind: Service
metadata: {namespace: far, name: s}
spec: {ports: [{port: 80}]}
";

fn grant(from: &str, to: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {{namespace: far, name: for-shop}}
spec: {{from: [{from}], to: [{to}]}}
"
    )
}

#[test]
fn a_grant_that_nearly_fits_is_named_with_the_field_that_differs() {
    const FROM: &str = "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}";
    const TO: &str = "{group: '', kind: Service}";
    let of = |from: &str, to: &str| {
        let to_far = "{name: s, namespace: far, port: 80}";
        let asks = route(["HTTPRoute", "shop", "r", "1"], "{name: web}", "", to_far);
        told(&[ABROAD, &grant(from, to), &asks].concat())
    };
    assert_eq!(of(FROM, TO), "");
    for (from, to, expected) in [
        (FROM, "{group: '', kind: Services}", "to.kind is \"Services\", not \"Service\""),
        (FROM, "{group: v1, kind: Service}", "to.group is \"v1\", not \"\""),
        (FROM, "{group: '', kind: Service, name: t}", "to.name is \"t\", not \"s\""),
        (
            "{kind: HttpRoute, namespace: shop}",
            TO,
            "from.group is \"\", not \"gateway.networking.k8s.io\" and from.kind is \"HttpRoute\", not \"HTTPRoute\"",
        ),
    ] {
        let told = of(from, to);
        let whole = format!("add a ReferenceGrant there; for-shop does not fit: its {expected}");
        assert!(told.contains("RefNotPermitted") && told.ends_with(&whole), "{told}");
    }
    // What is for others, or differs in everything, is no help.
    for (from, to) in [
        ("{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: news}", TO),
        ("{kind: Route, namespace: shop}", "{group: v1, kind: Secret}"),
    ] {
        assert!(of(from, to).ends_with("add a ReferenceGrant there"), "{}", of(from, to));
    }
}

#[test]
fn a_grant_that_is_mended_or_broken_is_followed() {
    let text = |kind: &str| {
        let from = format!("{{group: gateway.networking.k8s.io, kind: {kind}, namespace: shop}}");
        let asks = "{name: s, namespace: far, port: 80}";
        let asks = route(["HTTPRoute", "shop", "r", "1"], "{name: web}", "", asks);
        of_gateways(&[GATEWAY, ABROAD, &grant(&from, "{group: '', kind: Service}"), &asks].concat())
    };
    let mut translator = Translator::new(Options::default());
    for kind in ["HTTPRoute", "HTTPRoutes", "GRPCRoute", "HTTPRoute"] {
        let now = text(kind);
        let anew = translate(&now, &Options::default());
        assert_eq!(translator.update(&now).problems.to_string(), anew.problems.to_string());
        assert_eq!(
            anew.problems.to_string().contains("for-shop does not fit"),
            kind != "HTTPRoute"
        );
    }
}

/// What is told of a route with these lines in its rule.
fn of_rule(rule: &str) -> String {
    told(&format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{namespace: shop, name: r}}
spec: {{parentRefs: [{{name: web}}], hostnames: [shop.test], rules: [{{{rule}}}]}}
"
    ))
}

#[test]
fn misspelt_kinds_groups_and_types_are_told_with_what_was_meant() {
    const SET: &str = "requestHeaderModifier: {set: [{name: a, value: b}]}";
    for (rule, expected) in [
        (
            "backendRefs: [{name: s, kind: Servce, port: 80}]",
            "kind Servce are not known; name a Service",
        ),
        (
            "backendRefs: [{name: s, group: v1, port: 80}]",
            "backends of kind Service and group v1 are not known; name a Service, and no group",
        ),
        (
            &format!("filters: [{{type: RequestHeaderModifer, {SET}}}], backendRefs: [{BACKEND}]"),
            "filters[0] of type RequestHeaderModifer is not supported: did you mean RequestHeaderModifier?",
        ),
        (
            &format!("filters: [{{type: Headers, {SET}}}], backendRefs: [{BACKEND}]"),
            "filters[0] of type Headers is not supported: did you mean RequestHeaderModifier?",
        ),
        (
            &format!("filters: [{{{SET}}}], backendRefs: [{BACKEND}]"),
            "filters[0] has no type: write type: RequestHeaderModifier",
        ),
        (
            &format!("filters: [{{type: URLRewrite}}], backendRefs: [{BACKEND}]"),
            "filters[0] of type URLRewrite has no urlRewrite: add it",
        ),
        (
            &format!(
                "filters: [{{type: ExternalAuth, externalAuth: {{protocol: http}}}}], backendRefs: [{BACKEND}]"
            ),
            "filters[0].externalAuth.protocol is not known: write HTTP or GRPC",
        ),
        (
            &format!("filters: [{{type: ExtensionRef}}], backendRefs: [{BACKEND}]"),
            "filters[0] of type ExtensionRef is not supported: take it out",
        ),
        (
            &format!("matches: [{{path: {{type: Prefix, value: /}}}}], backendRefs: [{BACKEND}]"),
            "path.type Prefix is not supported: write PathPrefix, Exact or RegularExpression",
        ),
        (
            &format!(
                "matches: [{{headers: [{{type: Regex, name: a, value: b}}]}}], backendRefs: [{BACKEND}]"
            ),
            "headers.type Regex is not supported: write Exact or RegularExpression",
        ),
    ] {
        let told = of_rule(rule);
        assert!(told.contains(expected), "{rule}: {told}");
    }
    let long = of_rule(&format!("filters: [{{type: {}}}]", "x".repeat(5000)));
    assert!(long.len() < 300, "{} bytes", long.len());
}
