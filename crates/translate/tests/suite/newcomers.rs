//! Objects of the Gateway API that look well and cannot work: each is told of the value that is wrong, and of a remedy
//! that helps.

use crate::builders::*;
use translate::{Options, Translator, check, translate};

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
            &format!("filters: [{{type: Cors}}], backendRefs: [{BACKEND}]"),
            "filters[0] of type Cors is not supported: did you mean CORS?",
        ),
        (
            &format!("filters: [{{type: CROS}}], backendRefs: [{BACKEND}]"),
            "filters[0] of type CROS is not supported: did you mean CORS?",
        ),
        (
            &format!("filters: [{{type: Foo}}], backendRefs: [{BACKEND}]"),
            "filters[0] of type Foo is not supported: take it out",
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
    assert!(long.len() < 600, "{} bytes", long.len());
}

#[test]
fn a_rule_that_answers_nobody_is_told() {
    const ZERO: &str = "backendRefs: [{name: s, port: 80, weight: 0}]";
    for (rule, expected) in [
        (
            "matches: [{path: {value: /x}}]",
            "there are no backendRefs and no redirect, so that every request is answered 500",
        ),
        ("backendRefs: []", "so that every request is answered 500: name a Service in backendRefs"),
        (
            ZERO,
            "no backend has a weight above 0, so that every request is answered 500: give one of them a weight",
        ),
        (
            &format!("{ZERO}, sessionPersistence: {{sessionName: c}}"),
            "every request without a session is answered 500",
        ),
        (
            "timeouts: {request: 5s, backendRequest: 1m}, backendRefs: [{name: s, port: 80}]",
            "HTTPRoute shop/r: spec.rules[0].timeouts: backendRequest is 60s and never counts, as request ends after 5s",
        ),
    ] {
        let told = of_rule(rule);
        assert!(told.contains(expected) && told.lines().count() == 1, "{rule}: {told}");
    }
    for well in [
        "filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]",
        "backendRefs: [{name: s, port: 80, weight: 0}, {name: s, port: 80}]",
        "timeouts: {request: 0s, backendRequest: 1m}, backendRefs: [{name: s, port: 80}]",
        "timeouts: {request: 1m, backendRequest: 1m}, backendRefs: [{name: s, port: 80}]",
    ] {
        assert_eq!(of_rule(well), "", "{well}");
    }
}

/// What is told of a route of this kind with these fields in its spec.
fn of_spec(kind: &str, spec: &str) -> String {
    told(&format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{namespace: shop, name: r}}
spec: {{{spec}}}
"
    ))
}

#[test]
fn a_route_without_a_rule_or_a_backend_is_told() {
    for (kind, rules, expected) in [
        (
            "HTTPRoute",
            "[]",
            "HTTPRoute shop/r: spec.rules: there is no rule, so that no request is",
        ),
        (
            "GRPCRoute",
            "[]",
            "GRPCRoute shop/r: spec.rules: there is no rule, so that no request is",
        ),
        ("GRPCRoute", "[{}]", "there are no backendRefs, so that every call fails (unavailable)"),
        (
            "TCPRoute",
            "[{backendRefs: []}]",
            "backendRefs names nothing, so that connections just end",
        ),
        (
            "UDPRoute",
            "[{backendRefs: []}]",
            "backendRefs names nothing, so that datagrams lead nowhere",
        ),
    ] {
        let told = of_spec(kind, &format!("parentRefs: [{{name: web}}], rules: {rules}"));
        assert!(told.contains(expected), "{told}");
    }
    // Another controller's route is none of our business.
    let foreign = "parentRefs: [{name: s, kind: Service, group: ''}], rules: []";
    assert_eq!(of_spec("HTTPRoute", foreign), "");
}

#[test]
fn host_names_that_are_none_are_told_by_their_value() {
    for (hostname, severity, expected) in [
        ("*", "Warning", "stands for no host"),
        ("", "Warning", "stands for no host"),
        ("a.test:80", "Warning", "is a host name and more, which no request has: write a.test"),
        (
            "http://A.test/x",
            "Warning",
            "is a host name and more, which no request has: write a.test",
        ),
        ("a.test.", "Warning", "ends in a dot, which no request has: write a.test"),
        (
            "a.*.test",
            "Warning",
            "is no host name: write one such as shop.example, or *.shop.example",
        ),
        ("*test", "Warning", "is no host name"),
        ("_", "Notice", "is no host name"),
        ("a_b.test", "Notice", "is no host name"),
        ("10.0.0.1", "Notice", "is an address, which is no host name"),
        ("10.0.0.1:80", "Warning", "is an address, which is no host name"),
        ("[2001:db8::1]:80", "Warning", "is an address"),
        ("Shop.Test", "Notice", "counts as shop.test: write it so"),
    ] {
        let field = format!("hostnames: ['{hostname}', b.test]");
        let all = of_gateways(
            &[GATEWAY, &route(["HTTPRoute", "shop", "r", "1"], "{name: web}", &field, BACKEND)]
                .concat(),
        );
        let found = translate(&all, &Options::default());
        let told = found.problems.of(&model::Origin::new(model::Kind::HttpRoute, "shop", "r"));
        let [told] = told else { panic!("{hostname}: {told:?}") };
        assert_eq!(format!("{:?}", told.severity), severity, "{hostname}");
        let whole = format!("HTTPRoute shop/r: spec.hostnames: {hostname:?} {expected}");
        assert!(told.to_string().starts_with(&whole), "{told}");
        // Of a listener the same is said.
        let text = GATEWAY.replace("calls.test", &format!("'{hostname}'"));
        let found = translate(&of_gateways(&text), &Options::default()).problems.to_string();
        let whole = format!("spec.listeners: hostname of listener calls: {hostname:?} {expected}");
        assert!(hostname.is_empty() || found.contains(&whole), "{found}");
    }
    let well = "hostnames: [a.test, '*.b.test', xn--4ca.test, 1.test]";
    assert_eq!(told(&route(["HTTPRoute", "shop", "r", "1"], "{name: web}", well, BACKEND)), "");
}

#[test]
fn a_parent_of_a_misspelt_kind_or_group_is_told() {
    for (parent, expected) in [
        (
            "kind: Gatway",
            "kind \"Gatway\" is none that routes attach to, as Gateways and ListenerSets are; did you mean Gateway?",
        ),
        ("kind: XListenerSet", "did you mean ListenerSet?"),
        (
            "group: ''",
            "there is no Gateway of group \"\": leave group out, or write gateway.networking.k8s.io",
        ),
        ("group: networking.k8s.io", "there is no Gateway of group \"networking.k8s.io\""),
        (
            "group: gateway.networking.k8s.io/v1",
            "there is no Gateway of group \"gateway.networking.k8s.io/v1\"",
        ),
        (
            "group: gateways.networking.k8s.io",
            "there is no Gateway of group \"gateways.networking.k8s.io\"",
        ),
        ("group: networking.istio.io", ""),
        ("group: '', kind: Service", ""),
    ] {
        let told = of_kind("HTTPRoute", "shop", &format!("{{name: web, {parent}}}"));
        let whole = format!("HTTPRoute shop/r: spec.parentRefs: {expected}");
        assert!(
            told.is_empty() == expected.is_empty() && told.contains(expected),
            "{parent}: {told}"
        );
        assert!(
            expected.starts_with("did") || expected.is_empty() || told.starts_with(&whole),
            "{told}"
        );
    }
}

#[test]
fn a_class_of_a_misspelt_controller_is_told_and_another_controllers_is_not() {
    let of = |name: &str, own: &str| {
        let text = format!(
            "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: other}}
spec: {{controllerName: {name}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{namespace: shop, name: web}}
spec: {{gatewayClassName: other, listeners: [{{name: http, protocol: HTTP, port: 80}}]}}
"
        );
        let options = Options { gateway_controller: own.to_owned(), ..Options::default() };
        translate(&of_gateways(&text), &options).problems.to_string()
    };
    const OWN: &str = "fairway/gateway-controller";
    for name in [
        "fairway/gateway-controler",
        "fairway/gatewaycontroller",
        "farway/gateway-controller",
        "Fairway/Gateway-Controller",
    ] {
        let whole = format!(
            "Notice: GatewayClass other: spec.controllerName: {name:?} is not this controller, which is {OWN}"
        );
        let told = of(name, OWN);
        assert!(told.starts_with(&whole), "{told}");
        assert!(
            told.contains(
                "Gateway shop/web: spec.gatewayClassName: GatewayClass other is not this"
            ),
            "{told}"
        );
    }
    for (name, own) in [
        (OWN, OWN),
        ("fairway/gateway-controller-b", OWN),
        ("fairway-b/gateway-controller", OWN),
        ("fairway/gateway-2", "fairway/gateway-1"),
        ("example.net/gateway-controller", OWN),
        ("istio.io/gateway-controller", OWN),
    ] {
        assert!(!of(name, own).contains("other"), "{name}");
    }
}

#[test]
fn check_finds_what_a_name_means_in_another_namespace() {
    let told = |text: &str, watched: Option<&str>| {
        let all = of_gateways(&format!("{GATEWAY}{text}"));
        let options = Options { watch_namespace: watched.map(str::to_owned), ..Options::default() };
        let found = check(&all, &options, 0).gateway.notes;
        found
            .into_iter()
            .map(|note| format!("{} {}", note.key.unwrap_or_default(), note.message))
            .collect::<Vec<_>>()
    };
    let notes = |text: &str| told(text, None);
    let lost = notes(&route(["HTTPRoute", "news", "r", "1"], "{name: web}", "", BACKEND));
    let whole = "HTTPRoute news/r spec.parentRefs Gateway shop/web has the name: write namespace: shop if it is meant";
    assert!(lost.iter().any(|note| note == whole), "{lost:?}");
    let asks = |namespace: &str| {
        let from = format!(
            "{{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: {namespace}}}"
        );
        let grant = grant(&from, "{group: '', kind: Service}");
        let to_far = "{name: s, namespace: far, port: 80}";
        let route = route(["HTTPRoute", "shop", "r", "1"], "{name: web}", "", to_far);
        notes(&[ABROAD, &grant, &route].concat())
    };
    let whole = "ReferenceGrant far/for-shop spec.from lets HTTPRoutes of namespace shp in, and none of namespace shop, \
                 which asks for it; did you mean shop?";
    assert_eq!(asks("shp"), [whole]);
    assert!(asks("news").is_empty() && asks("shop").is_empty(), "{:?}", asks("news"));
    // Of a namespace that is not watched a controller would see nothing.
    let lost = route(["HTTPRoute", "news", "r", "1"], "{name: web}", "", BACKEND);
    for watched in ["shop", "news", "far"] {
        let told = told(&lost, Some(watched));
        assert!(!told.iter().any(|note| note.contains("has the name")), "{watched}: {told:?}");
    }
}
