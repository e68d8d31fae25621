//! Objects of the Gateway API that look well and cannot work: each is told of the value that is wrong, and of a remedy
//! that helps.

use crate::builders::*;
use translate::{Options, translate};

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
